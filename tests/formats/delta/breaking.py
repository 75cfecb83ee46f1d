"""Optimizing that breaks or waits on the way. Apart from its tests, so that a process of its own starts at once."""

from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path

from tests.formats.delta.runs import delete_where, optimize
from tests.support.breaking import Ours, die, pause, paused
from tests.support.breaking import breaking as breaking_of
from tests.support.faulty_store import Fuse

from nightkeep.formats.delta import format as delta_format


def breaking(fuse: Fuse) -> AbstractContextManager[None]:
    return breaking_of(delta_format, fuse)


def optimize_and_die(pipe: Connection, table: Path, run_id: str, at: int) -> None:
    die(optimize, delta_format, table, run_id, at=at)


def optimize_and_pause(pipe: Connection, table: Path, run_id: str, stage: str, settings: dict[str, object]) -> None:
    pause(pipe, lambda: optimize(table, run_id=run_id, **settings), delta_format, stage)


def waiting(
    table: Path, *, before: str = "publish", run_id: str = "ours", **settings: object
) -> AbstractContextManager[Ours]:
    return paused(optimize_and_pause, table, run_id, before, settings)


def delete_and_pause(pipe: Connection, table: Path, run_id: str, stage: str, settings: dict[str, object]) -> None:
    rows = str(settings["rows"])
    pause(pipe, lambda: delete_where(table, rows, run_id=run_id), delta_format, stage)


def deleting(table: Path, rows: str, *, before: str = "publish", run_id: str = "ours") -> AbstractContextManager[Ours]:
    return paused(delete_and_pause, table, run_id, before, {"rows": rows})
