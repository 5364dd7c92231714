"""`python -m nearcast`: the same as the command `nearcast`."""

from nearcast.cli.main import main

main()
