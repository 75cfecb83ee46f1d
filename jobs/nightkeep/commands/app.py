"""The command `nightkeep`: arguments -> its verbs -> an exit status. Everything but the answer goes to stderr."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from nightkeep.commands.command_group import CommandGroup
from nightkeep.commands.exit_status import one_line
from nightkeep.errors import DEBUG
from nightkeep.model.version import VERSION_LINE

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Nightly maintenance of lakehouse tables: plan, rewrite, prove, publish, check, report.",
)


_Debug = Annotated[
    bool, typer.Option("--debug", metavar="", help="Show the traceback of an unexpected error (also NIGHTKEEP_DEBUG=1)")
]


def _print_version(asked: bool) -> None:  # noqa: FBT001 -- typer calls it so
    if asked:
        print(VERSION_LINE)
        raise typer.Exit


_Version = Annotated[
    bool,
    typer.Option("--version", metavar="", callback=_print_version, is_eager=True, help="Print the version and end"),
]


@app.callback()
def _options(*, debug: _Debug = False, version: _Version = False) -> None:
    """Nightly maintenance of lakehouse tables: plan, rewrite, prove, publish, check, report."""
    if debug:
        os.environ[DEBUG] = "1"


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point. Every failure, also an unexpected one, becomes one line on stderr and an exit status.

    Credentials are never printed."""
    sys.exit(
        one_line(
            functools.partial(_command(), args=argv, prog_name="nightkeep", standalone_mode=True), program="nightkeep"
        )
    )


@functools.cache
def _command() -> Any:
    # Typer would read the signatures of all verbs anew at each call.
    return typer.main.get_command(app)


if __name__ == "__main__":
    main()
