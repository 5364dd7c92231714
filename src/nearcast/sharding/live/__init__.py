"""A sharded index while it is in use: changes to its subscriptions, and the micro-batches that see the changes.

changes.py reads change files; delta.py collects what they changed since the base index was built; checkpoint.py records
what each micro-batch is matched against; stream_output.py commits the matches of each micro-batch.
"""
