"""A failed attempt that published nothing -> its files removed.

A retry on a full disk would add its own to them. Names tell whose a file is: they carry the run's token and its
attempt. What tasks write that are still at work is left to a sweep.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from nightkeep.errors import CorruptMetadata, NightkeepError, RefusedTable, UnknownOutcome, UsageError
from nightkeep.model import Run
from nightkeep.protocol import OpenTable
from nightkeep.protocol.table_files import Sweeps

_LEFT: Final = (CorruptMetadata, RefusedTable, UnknownOutcome, UsageError)
"""Failures after which nothing goes: files that contradict their metadata are evidence, a commit may have happened,
or nothing was written."""


@contextmanager
def removing_unpublished(
    table: OpenTable, run: Run, *, earlier: Collection[int], after: type[Exception]
) -> Iterator[None]:
    """Where what is done inside raises `after`, what the attempt wrote is removed before that goes on its way.

    `after` is what certainly means that nothing of it was published.
    """
    try:
        yield
    except _LEFT:
        raise
    except after:
        remove_unpublished(table, run, earlier=earlier)
        raise


def remove_unpublished(table: OpenTable, run: Run, *, earlier: Collection[int]) -> None:
    """Remove what this attempt wrote. Nothing goes where the run has published another version than `earlier`, or
    where it cannot be told; what cannot be removed stays: the failure that led here is what is to be told."""
    if not isinstance(table, Sweeps):
        return
    # Naming of each format: a unit may stand between token and attempt, a task's own mark follows.
    mine = re.compile(rf"\bnk-{run.token}-(?:(?:[0-9a-f]{{8}}|table)-)?{run.attempt}[0-9a-f]*[-./]")
    with suppress(NightkeepError, OSError):
        territory = table.territory()
        batches = (batch for place in territory.places for batch in territory.storage.walk(place.folder))
        names = [file.name for batch in batches for file in batch if mine.search(file.name)]
        if names and {each.version for each in table.committed(run)} <= set(earlier):
            territory.storage.delete_all(names)
