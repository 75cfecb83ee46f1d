"""Any failure of a command or job script -> one sentence on stderr without secrets, and an exit status.

An unexpected failure is printed like an expected one. Its traceback is printed only on request (`--debug`).
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from nightkeep.commands.interruption import ended_by_signals
from nightkeep.errors import DEBUG, USAGE_STATUS, NightkeepError, RefusedTable, Surprise, UsageError
from nightkeep.model import Outcome
from nightkeep.redaction import redacted_output


def one_line(work: Callable[[], int | None], *, program: str | None = None) -> int:
    """Run `work` and return its exit status; None counts as 0. A failure is printed: 2 for usage, 3 for a refused
    table, 1 for any other.

    `program` begins the printed line; by default the name of the running script. Everything that the process prints
    meanwhile is redacted. A SystemExit is raised. SIGINT and SIGTERM end the process.
    """
    name = program or Path(sys.argv[0]).name
    with redacted_output(), ended_by_signals(name):
        try:
            return _planned_for(work) or 0
        except NightkeepError as failure:
            if os.environ.get(DEBUG) and isinstance(failure, Surprise):
                traceback.print_exception(failure.__cause__)
            sys.stderr.write(f"{name}: {failure}\n")
            return status_of(failure)


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """A script's arguments, with the option `--debug` of the command. Raises SystemExit as argparse does."""
    parser.add_argument(
        "--debug", action="store_true", help=f"show the traceback of an unexpected error (also {DEBUG}=1)"
    )
    arguments = parser.parse_args(argv)
    if arguments.debug:
        os.environ[DEBUG] = "1"
    return arguments


def _planned_for(work: Callable[[], int | None]) -> int | None:
    try:
        return work()
    except NightkeepError:
        raise
    except Exception as failure:
        raise Surprise("ended by an unexpected error", failure) from failure


def status_of(failure: NightkeepError) -> int:
    """2 for usage, 3 for a refused table, 1 for any other failure."""
    if isinstance(failure, UsageError):
        return USAGE_STATUS
    return (Outcome.REFUSED if isinstance(failure, RefusedTable) else Outcome.FAILED).exit_status
