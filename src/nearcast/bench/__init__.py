"""Workloads, and methods measured on them side by side. Start at sweep.py (what is run) and runner.py (how)."""
