"""Care that breaks on the way, at the catalog too. Apart from tests, so that a process of its own starts at once."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection

import pytest
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.runs import care_for, configure
from tests.support.breaking import Ours, pause, paused
from tests.support.faulty_store import FaultyStorage, Fuse, Moment, Point, kill

from nightkeep.formats.iceberg import format as iceberg_format
from nightkeep.formats.iceberg.catalog import catalog as iceberg_catalog
from nightkeep.formats.iceberg.catalog.sql_pointers import SqlPointers
from nightkeep.formats.iceberg.metadata.table_metadata import Raw

SWAP = "swap"
"""The step at which the catalog learns of the new metadata."""


@contextmanager
def breaking(fuse: Fuse) -> Iterator[None]:
    swapped = SqlPointers.swap

    def swap(pointers: SqlPointers, identifier: tuple[str, ...], *, old: str, new: str, after: Raw) -> bool:
        fuse.pass_on(Point(Moment.BEFORE, SWAP, new))
        done = swapped(pointers, identifier, old=old, new=new, after=after)
        fuse.pass_on(Point(Moment.AFTER, SWAP, new))
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iceberg_catalog, "store_of", lambda location, *told: FaultyStorage("/", fuse))
        patch.setattr(SqlPointers, "swap", swap)
        yield


def care_and_pause(pipe: Connection, table: Table, run_id: str, stage: str, settings: dict[str, object]) -> None:
    configure(table.warehouse)
    pause(pipe, lambda: care_for(table, run_id=run_id, **settings), iceberg_format, stage)


def waiting(table: Table, *, before: str = "publish", run_id: str = "ours") -> AbstractContextManager[Ours]:
    """A run in a process of its own, which waits before the stage."""
    return paused(care_and_pause, table, run_id, before, {})  # type: ignore[arg-type]


def care_and_die(pipe: Connection, table: Table, run_id: str, at: int) -> None:
    configure(table.warehouse)
    with breaking(Fuse(at, kill)):
        care_for(table, run_id=run_id)
    os._exit(1)
