"""The group of all commands: each is built when it is called, and words that are no command are answered with one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo

from nightkeep.commands.command_table import COMMANDS
from nightkeep.commands.from_signature import callback
from nightkeep.model import Operation
from nightkeep.model.operations import OPERATION_TABLE

MEANT: Final[Mapping[str, str]] = {
    **{each: f"run TABLE --operation {each}" for each, row in OPERATION_TABLE.items() if row.in_run},
    "compact": f"run TABLE --operation {Operation.OPTIMIZE}",
    "vacuum": "sweep TABLE",
}
"""Words typed as commands, and the arguments that do it."""
_TABLE: Final = {each.name: each for each in COMMANDS}


class CommandGroup(TyperGroup):
    """A command is built of its function's signature, whose modules take a second to import if all are."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*_TABLE]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _TABLE and cmd_name not in self.commands:
            self.add_command(_built(cmd_name))
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in MEANT:
            ctx.fail(f"No such command '{args[0]}'. Did you mean 'nightkeep {MEANT[args[0]]}'?")
        if args and args[0] not in _TABLE:
            # Typer suggests one of those that are built.
            for name in _TABLE:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def _built(name: str) -> Any:
    each = _TABLE[name]
    info = CommandInfo(name=name, callback=callback(each), help=each.help, epilog=f"Example: nightkeep {each.example}")
    return typer.main.get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode="rich")
