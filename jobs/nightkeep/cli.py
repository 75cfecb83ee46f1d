"""The command `nightkeep`: its verbs, and what its exit status says. Everything but the answer goes to stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer
from rich.console import Console

from nightkeep.commands.advise import advise
from nightkeep.commands.care import plan, run, sql
from nightkeep.commands.delete import delete
from nightkeep.commands.judge import check, diff
from nightkeep.commands.tell import explain, history, release, report
from nightkeep.commands.upkeep import expire, restore, sweep
from nightkeep.errors import NightkeepError, RefusedTable, UsageError
from nightkeep.model import Outcome
from nightkeep.redaction import redacted_output

USAGE_STATUS = 2

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Nightly care for lakehouse tables: plan, rewrite, prove, publish, check, report.",
)  # fmt: skip
for _verb in (
    plan, run, sql, delete, sweep, restore, expire, advise, check, diff, explain, history, release, report,
):  # fmt: skip
    app.command()(_verb)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point. Failures a caller can act on become one line on stderr and an exit status; nothing is printed with
    its credentials."""
    with redacted_output():
        _run(argv)


def _run(argv: Sequence[str] | None) -> None:
    try:
        app(args=argv, standalone_mode=True)
    except UsageError as failure:
        _fail(failure, USAGE_STATUS)
    except RefusedTable as failure:
        _fail(failure, Outcome.REFUSED.exit_status)
    except NightkeepError as failure:
        _fail(failure, Outcome.FAILED.exit_status)


def _fail(failure: Exception, status: int) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"nightkeep: {failure}", markup=False)
    sys.exit(status)


if __name__ == "__main__":
    main()
