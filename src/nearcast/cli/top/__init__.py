"""The command `nearcast top`."""
