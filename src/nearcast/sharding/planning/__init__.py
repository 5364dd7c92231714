"""The shard plan: a router whose shards all have about the same work, made from a sample of the workload.

plan.py asks for a sample (workload_sample.py), grows a k-d tree over it (kd_tree.py, cuts.py), decides what is divided
by text (text_division.py), places the keywords of ranked rows (keyword_routing.py, keyword_placement.py), and compares
the resulting loads (loads.py, costs.py). capacity.py is separate: it estimates the size of a cluster.
"""
