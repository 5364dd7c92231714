"""The router: which shards store a subscription, and which shards a message visits. router.py is the front."""
