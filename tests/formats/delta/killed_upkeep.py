"""Checkpoints and cleanups of a Delta log that die at one of their writes, each in a process of its own."""

import os
from multiprocessing.connection import Connection
from pathlib import Path

from tests.formats.delta.checkpointed import checkpointed, run_at
from tests.support.faulty_store import FaultyStorage, Fuse, kill

from nightkeep.formats.delta.upkeep.log_cleanup import carry_out_upkeep
from nightkeep.model import Address
from nightkeep.protocol.log_upkeep import LogRequest

SIDECARS = 2
"""How many actions a sidecar holds, so that a small table has several."""


def checkpoint_and_die(pipe: Connection, table: Path, now_ms: int, at: int) -> None:
    """Killed at the `at`-th point; where it is not, it ends with status 1."""
    checkpointed(table, storage=FaultyStorage(str(table), Fuse(at, kill)), now_ms=now_ms, sidecar_actions=SIDECARS)
    os._exit(1)


def clean_up_and_die(pipe: Connection, table: Path, now_ms: int, at: int) -> None:
    store, address = FaultyStorage(str(table), Fuse(at, kill)), Address("delta", str(table), "logged")
    carry_out_upkeep(address, store, LogRequest(now_ms), run_at(now_ms))
    os._exit(1)
