"""The shard plan: where to divide subscriptions so that all shards work equally hard."""
