"""Upgrades over a store that breaks. Apart from its tests, so that a process that is going to die starts at once."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.faults import FaultyStorage, Fuse, kill
from tests.paimon.upgrade import upgrade

from nightkeep.formats.paimon import format as paimon_format


@contextmanager
def breaking(fuse: Fuse) -> Iterator[None]:
    """Tables that are opened here write through `fuse`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paimon_format, "open_storage", lambda location: FaultyStorage(location, fuse))
        yield


def upgrade_and_die(pipe: Connection, table: Path, run_id: str, at: int) -> None:
    """For a process of its own: it is killed at the `at`-th point; where it is not, it ends with status 1."""
    with breaking(Fuse(at, kill)):
        upgrade(table, run_id=run_id)
    os._exit(1)
