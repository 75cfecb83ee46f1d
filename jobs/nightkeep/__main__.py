"""The command `nightkeep`, also as `python -m nightkeep`. Signals are handled before its imports, which take a
second."""

from __future__ import annotations

import sys

from nightkeep.commands.interruption import ended_by_signals
from nightkeep.errors import STOPS
from nightkeep.model.version import VERSION_LINE


def main() -> None:
    """Run the command with the arguments of this process."""
    with ended_by_signals("nightkeep"):
        if sys.argv[1:] == ["--version"]:
            # Scripts ask for it, and need nothing else.
            print(VERSION_LINE)
            return
        try:
            from nightkeep.commands import app  # noqa: PLC0415 -- takes a second, in which a signal may come
        except STOPS as stop:
            stop.add_note("it had not started")
            raise
        app.main()


if __name__ == "__main__":
    main()
