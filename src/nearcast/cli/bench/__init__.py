"""The commands of `nearcast bench`: commands.py declares them, actions.py does their work."""
