"""What every job on Spark needs: Java, the session, the worker daemon, tasks and failures.

session.py is the entry, tasks.py runs tasks.
"""
