"""Care that breaks on the way, at the catalog too. Apart from tests, so that a process of its own starts at once."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import Connection

import pytest
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.runs import care_for, configure
from tests.support.breaking import Ours, pause, paused
from tests.support.faulty_store import FaultyStorage, Fuse, Moment, Point, kill

from nightkeep.admission.order import Order
from nightkeep.formats.iceberg import format as iceberg_format
from nightkeep.formats.iceberg.catalog import catalog as iceberg_catalog
from nightkeep.formats.iceberg.catalog.sql_pointers import SqlPointers
from nightkeep.formats.iceberg.metadata.table_metadata import Raw
from nightkeep.model import Address, Operation
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

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
    _die(table, at, lambda: care_for(table, run_id=run_id))


def optimize_and_die(pipe: Connection, table: Table, branch: str, run_id: str, at: int, *, respec: bool) -> None:
    _die(table, at, lambda: optimize(table, branch=branch, run_id=run_id, respec=respec))


def optimize(table: Table, *, branch: str = "", run_id: str, respec: bool = False) -> RunDocument:
    """A night of the table, or of one of its branches."""
    policy = EffectivePolicy(branch_of(table, branch), Settings().model_copy(update={"respec": respec}), {})
    order = Order(Operation.OPTIMIZE, run_id, str(table.warehouse.folder / "reports"))
    return run_operation(policy, order, mapper=lambda: inline)


def branch_of(table: Table, branch: str) -> Address:
    location = f"{table.warehouse.name}/{table.name}{f'$branch_{branch}' if branch else ''}"
    return Address("iceberg", location, location)


def _die(table: Table, at: int, care: Callable[[], object]) -> None:
    configure(table.warehouse)
    with breaking(Fuse(at, kill)):
        care()
    os._exit(1)
