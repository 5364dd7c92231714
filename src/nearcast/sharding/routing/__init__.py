"""Routing: which shards hold a subscription, and which shards a message visits."""
