"""A command that does not exist -> the one that was meant: an operation of `run`, or another engine's word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typer.core import TyperGroup

from nightkeep.model import Operation
from nightkeep.model.operations import OPERATION_TABLE

MEANT: Final[Mapping[str, str]] = {
    **{each: f"run TABLE --operation {each}" for each, row in OPERATION_TABLE.items() if row.in_run},
    "compact": f"run TABLE --operation {Operation.OPTIMIZE}",
    "vacuum": "sweep TABLE",
}
"""Words typed as commands, and the arguments that do it."""


class Commands(TyperGroup):
    """The commands of `nightkeep`, with a hint for words in `MEANT`. Typer finds misspelled ones itself."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in MEANT:
            ctx.fail(f"No such command '{args[0]}'. Did you mean 'nightkeep {MEANT[args[0]]}'?")
        return super().resolve_command(ctx, args)
