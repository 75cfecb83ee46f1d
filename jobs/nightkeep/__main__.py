"""The command `nightkeep`, also as `python -m nightkeep`. Signals are heard before its imports, which take a second."""

from __future__ import annotations

import importlib

from nightkeep.commands.interruption import ended_by_signals
from nightkeep.errors import STOPS


def main() -> None:
    """Run the command with the arguments of this process."""
    with ended_by_signals("nightkeep"):
        try:
            app = importlib.import_module("nightkeep.commands.app")
        except STOPS as stop:
            stop.add_note("it had not begun")
            raise
        app.main()


if __name__ == "__main__":
    main()
