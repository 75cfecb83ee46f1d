"""The command `nightkeep`: arguments -> its verbs -> an exit status. Everything but the answer goes to stderr."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, ParamSpec

import typer

from nightkeep.commands.advise import advise
from nightkeep.commands.check import check, diff
from nightkeep.commands.delete import delete, update
from nightkeep.commands.exit_status import one_line
from nightkeep.commands.reports import explain, history, release, report
from nightkeep.commands.retention import expire, restore, sweep
from nightkeep.commands.run import plan, run, sql
from nightkeep.commands.status import status
from nightkeep.commands.tables import tables, validate
from nightkeep.errors import DEBUG, STOPS, NightkeepError, Surprise
from nightkeep.model.version import __version__

P = ParamSpec("P")

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Nightly care for lakehouse tables: plan, rewrite, prove, publish, check, report.",
)  # fmt: skip


_Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a surprise (also NIGHTKEEP_DEBUG=1)")]


def _print_version(asked: bool) -> None:  # noqa: FBT001 -- typer calls it so
    if asked:
        print(f"nightkeep {__version__}")
        raise typer.Exit


_Version = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end")
]


@app.callback()
def _options(*, debug: _Debug = False, version: _Version = False) -> None:
    """Nightly care for lakehouse tables: plan, rewrite, prove, publish, check, report."""
    if debug:
        os.environ[DEBUG] = "1"


def _named(verb: Callable[P, None]) -> Callable[P, None]:
    """The verb, with its name and the table added to any unexpected failure."""

    @functools.wraps(verb)
    def call(*arguments: P.args, **options: P.kwargs) -> None:
        try:
            verb(*arguments, **options)
        except (NightkeepError, typer.Exit, typer.Abort):
            raise
        except STOPS as stop:
            if verb in _READING and not getattr(stop, "__notes__", None):
                stop.add_note("it changes nothing")
            raise
        except Exception as failure:
            subject = options.get("table") or options.get("statement")
            raise Surprise(f"{subject}: {verb.__name__}" if subject else verb.__name__, failure) from failure

    return call


_READING: Final = frozenset({plan, advise, check, diff, explain, tables, status, history, validate})

for _verb in (
    plan, run, sql, delete, update, sweep, restore, expire, advise, check, diff, explain, tables, status, history,
    release, report, validate,
):  # fmt: skip
    app.command()(_named(_verb))


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point. Every failure, also an unexpected one, becomes one line on stderr and an exit status.

    Credentials are never printed."""
    sys.exit(one_line(lambda: _command()(args=argv, standalone_mode=True), program="nightkeep"))


@functools.cache
def _command() -> Any:
    # Typer would read the signatures of all verbs anew at each call.
    return typer.main.get_command(app)


if __name__ == "__main__":
    main()
