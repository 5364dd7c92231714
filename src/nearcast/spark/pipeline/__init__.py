"""A whole pipeline: stages.py defines its steps, run.py runs those that steps.py does not find up to date."""
