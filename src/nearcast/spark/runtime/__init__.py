"""What every job on Spark needs: Java, the session, the worker daemon, tasks, failures and progress.

session.py is the entry, tasks.py runs tasks; one_process.py replaces a session in tests and warm-ups.
"""
