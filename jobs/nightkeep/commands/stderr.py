"""What a command prints on stderr beside its last sentence: warnings, its whole log, or nothing."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import typer

from nightkeep.environment import SPARK_LOG
from nightkeep.errors import UsageError

_OURS: Final = "nightkeep"


def show_log(*, verbose: bool, quiet: bool) -> None:
    """Print the log from here on. Raises UsageError for both options."""
    if verbose and quiet:
        raise UsageError("--verbose and --quiet: expected one of the two, found both")
    level = logging.INFO if verbose else logging.CRITICAL if quiet else logging.WARNING
    logging.getLogger(_OURS).setLevel(level)
    if verbose:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")


@contextmanager
def spark_in_a_file(*, verbose: bool) -> Iterator[None]:
    """What Spark prints in the `with` block goes to a file, which is named if the command does not end well, and
    removed otherwise. With `verbose`, or where the variable names a file, it goes where it went."""
    if verbose or SPARK_LOG in os.environ:
        yield
        return
    try:
        opened, file = tempfile.mkstemp(prefix="nightkeep-spark-", suffix=".log")
    except OSError:
        # A disk that is full is the command's to report.
        yield
        return
    os.close(opened)
    os.environ[SPARK_LOG] = file
    is_well = False
    try:
        yield
        is_well = True
    except typer.Exit as stop:
        is_well = stop.exit_code == 0
        raise
    finally:
        del os.environ[SPARK_LOG]
        with suppress(OSError):
            if is_well or not os.path.getsize(file):
                os.remove(file)
            else:
                print(f"what Spark printed is in {file}", file=sys.stderr)
