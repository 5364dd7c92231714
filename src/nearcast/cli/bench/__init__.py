"""The commands of `nearcast bench`: run.py, results.py (report, costs, sweeps), paper.py, spark.py."""
