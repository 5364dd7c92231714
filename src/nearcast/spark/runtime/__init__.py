"""What every job on Spark needs: Java, the session, the worker daemon, data exchange, failures and progress.

session.py is the entry; it finds Java (java.py), starts it (gateway.py), sends the package to remote workers
(package_zip.py) and lets them fork from daemon.py. tasks.py runs tasks, arrow_payload.py moves Arrow tables
between them, failures.py turns Spark's errors into one line, progress.py counts tasks, and one_process.py replaces a
session in tests and warm-ups.
"""
