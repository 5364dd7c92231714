"""The shard plan: a router whose shards all have about the same work, made from a sample of the workload (plan.py).

capacity.py is separate: it estimates the size of a cluster.
"""
