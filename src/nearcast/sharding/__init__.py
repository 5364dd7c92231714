"""Subscriptions divided over shards, independent of the framework that runs the shards.

planning/ makes a router from a sample of the workload; routing/ is the router; shard_build.py and sharded_index.py save
shards and versions of the whole index; match_shards.py matches messages; live/ changes an index while it is in use.
"""
