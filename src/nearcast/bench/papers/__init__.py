"""The papers' experiments as data, run and compared with what the papers claim."""
