"""A whole pipeline: stages.py defines its steps, steps.py skips those that are up to date.

pipeline_file.py reads a pipeline from TOML; replay.py streams the messages of a batch and compares the matches.
"""
