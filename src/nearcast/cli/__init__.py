"""The command line. Nothing imports it."""
