"""`python -m nightkeep` is the command `nightkeep`."""

from nightkeep.commands.app import main

main()
