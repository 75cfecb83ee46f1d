"""Upgrades that break or wait on the way. Apart from their tests, so that a process of its own starts at once."""

from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path

from tests.formats.paimon.upgrade import upgrade
from tests.support.breaking import Ours, die, pause, paused
from tests.support.breaking import breaking as breaking_of
from tests.support.faulty_store import Fuse

from nightkeep.formats.paimon import format as paimon_format


def breaking(fuse: Fuse) -> AbstractContextManager[None]:
    return breaking_of(paimon_format, fuse)


def upgrade_and_die(pipe: Connection, table: Path, run_id: str, at: int) -> None:
    die(upgrade, paimon_format, table, run_id, at=at)


def upgrade_and_pause(pipe: Connection, table: Path, run_id: str, stage: str, settings: dict[str, object]) -> None:
    pause(pipe, lambda: upgrade(table, run_id=run_id, **settings), paimon_format, stage)


def waiting(
    table: Path, *, before: str = "publish", run_id: str = "ours", **settings: object
) -> AbstractContextManager[Ours]:
    return paused(upgrade_and_pause, table, run_id, before, settings)
