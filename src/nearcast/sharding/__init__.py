"""Subscriptions divided over shards, independent of the framework that runs the shards.

The parts, in the order in which data meets them:

    normalise.py                      messages, subscriptions and rejects in one schema each
    weights.py                        token weights of ranked subscriptions, the same in every shard
    planning/                         a sample of the workload -> a router (the shard plan)
    routing/                          which shards store a subscription, which shards a message visits
    shard_build.py, sharded_index.py  one shard built and saved; versions of the whole index on disk
    match_shards.py, merging.py       messages matched against one shard or all shards; results merged
    live/                             changes to an index in use, and what each micro-batch reads and writes
"""
