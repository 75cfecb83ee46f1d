"""`python -m nightkeep` is the command `nightkeep`."""

from nightkeep.cli import main

main()
