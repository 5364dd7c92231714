"""The command `nearcast`. main.py registers all commands; console.py prints what they show."""
