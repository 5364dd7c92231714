"""A sharded index while it is in use: changes to its subscriptions, and the micro-batches that see the changes."""
