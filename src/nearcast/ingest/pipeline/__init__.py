"""A pipeline in a file, and steps that are skipped when nothing changed. Spark runs the steps (spark/pipeline.py)."""
