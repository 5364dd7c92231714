"""The router: which shards store a subscription, and which shards a message visits.

router.py is the front. areas.py divides by place, keyword_shards.py by keyword; rank_routes.py decides which of the two
applies to a ranked row; visits.py routes messages; replicas.py makes one shard report a pair that several shards find.
"""
