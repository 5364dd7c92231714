"""The pipeline: steps from raw files to matches that are skipped while nothing changed."""
