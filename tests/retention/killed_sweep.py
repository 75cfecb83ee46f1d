"""Sweeps that die or wait at one point of their writes, in a process of their own."""

import errno
import os
from multiprocessing.connection import Connection

from tests.retention.toy_table import NOW, Toy
from tests.support.faulty_store import FaultyStorage, Fuse, Point, kill

from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.retention.orphans.quarantine import restore

LATER = NOW + 31 * DAY_MS
"""When what was quarantined at NOW is purged."""


def act(toy: Toy, what: str, run_id: str, attempt: str) -> None:
    match what:
        case "restore":
            restore(toy.table_files(), run_id, now_ms=NOW)
        case "purge":
            toy.swept(SweepMode.QUARANTINE, run_id, attempt=attempt, now_ms=LATER)
        case _:
            toy.swept(SweepMode(what), run_id, attempt=attempt)


def die(pipe: Connection, folder: str, what: str, run_id: str, at: int) -> None:
    """Killed at the `at`-th point; where it is not, it ends with status 1."""
    act(Toy(FaultyStorage(folder, Fuse(at, kill))), what, run_id, "dying")
    os._exit(1)


def die_between_mounts(pipe: Connection, folder: str, what: str, run_id: str, at: int) -> None:
    """As `die`, where home and quarantine share no links."""
    os.link = unlinked
    die(pipe, folder, what, run_id, at)


def unlinked(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int, follow_symlinks: bool) -> None:
    """linkat(2), as it is where each folder is a mount of its own."""
    if not os.path.sameopenfile(src_dir_fd, dst_dir_fd):
        raise OSError(errno.EXDEV, "Invalid cross-device link")
    _LINK(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=follow_symlinks)


_LINK = os.link


def hold(pipe: Connection, folder: str, run_id: str, at: int) -> None:
    """Says so at the `at`-th point and waits for a word; then goes on, and says how many files it quarantined."""

    def wait(point: Point) -> None:
        pipe.send("waiting")
        pipe.recv()

    toy = Toy(FaultyStorage(folder, Fuse(at, wait)))
    pipe.send(toy.swept(SweepMode.QUARANTINE, run_id).acted.files)
