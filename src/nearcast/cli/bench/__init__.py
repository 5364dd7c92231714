"""The `nearcast bench` commands."""
