"""Benchmark runs: methods are built over the same rows, compared pair by pair, and timed in turns.

case.py            how a run measures (Settings), and one workload to measure (Case)
run_case.py        all measurements of one case, by the parts:
                   groups.py (matching), updates.py, mixed.py, threads.py, table_api.py
sweep.py           one case for each combination of parameters; results.py stores what was measured
method_factory.py  empty methods of a workload's kind;  agreement.py  comparison of what methods found
timing.py, memory.py, environment.py   clocks, memory, the machine
"""
