"""The `nearcast pipeline` commands."""
