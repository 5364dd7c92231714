"""Data structures that several methods share, over rows of the store."""
