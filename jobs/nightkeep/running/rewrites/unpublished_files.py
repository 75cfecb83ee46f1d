"""A failed attempt that published nothing -> its files removed.

Otherwise each retry would add more files, even on a full disk. A file belongs to an attempt if its name contains the
run's token and the attempt. Files that tasks are still writing are left to a sweep.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from nightkeep.errors import CorruptMetadata, NightkeepError, RefusedRows, RefusedTable, UnknownOutcome, UsageError
from nightkeep.model import Run
from nightkeep.protocol import OpenTable

_LEFT: Final = (CorruptMetadata, RefusedTable, UnknownOutcome, UsageError)
"""Failures after which no file is removed: the files are evidence, a commit may have happened, or nothing was written.
"""


@contextmanager
def removing_unpublished(
    table: OpenTable, run: Run, *, earlier: Collection[int], after: type[Exception]
) -> Iterator[None]:
    """If the `with` block raises `after` or RefusedRows, remove the files of this attempt, then raise it again.

    `after` must be an error that certainly means that nothing was published.
    """
    try:
        yield
    except RefusedRows:
        remove_unpublished(table, run, earlier=earlier)
        raise
    except _LEFT:
        raise
    except after:
        remove_unpublished(table, run, earlier=earlier)
        raise


def remove_unpublished(table: OpenTable, run: Run, *, earlier: Collection[int]) -> None:
    """Remove the files of this attempt.

    Removes nothing if the run has published a version that is not in `earlier`, or if that cannot be determined. Errors
    of the removal are ignored: the failure that led here is the one to report.
    """
    if table.retention is None:
        return
    # File names of every format: token, then perhaps a unit, then the attempt, then the task's own digits.
    mine = re.compile(rf"\bnk-{run.token}-(?:(?:[0-9a-f]{{8}}|table)-)?{run.attempt}[0-9a-f]*[-./]")
    with suppress(NightkeepError, OSError):
        table_files = table.retention.table_files()
        batches = (batch for place in table_files.places for batch in table_files.storage.walk(place.folder))
        names = [file.name for batch in batches for file in batch if mine.search(file.name)]
        if names and {commit.version for commit in table.commits.committed(run)} <= set(earlier):
            table_files.storage.delete_all(names)
