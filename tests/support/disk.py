"""Files of tests need not outlive a loss of power: nothing waits for the disk."""

import os
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 6 << 30
"""Bytes of memory that must be free for the files of a run."""


def never_wait_for_the_disk() -> None:
    """Make `os.fsync` of this process look at the descriptor and return. A test may put its own in place.

    SQLite waits for the disk by itself, at each commit of a catalog or of Airflow, up to a tenth of a second: where the
    machine has room in memory, temporary files of this process and of those that it starts are there.
    """
    os.fsync = _look_at  # type: ignore[assignment]
    if "TMPDIR" not in os.environ and _has_room(_MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


def _has_room(folder: Path) -> bool:
    """Whether large files may be in a folder that is in memory, and programs be started from it."""
    try:
        system = os.statvfs(folder)
    except FileNotFoundError:
        return False
    unused = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    writable = not system.f_flag & (os.ST_NOEXEC | os.ST_RDONLY) and os.access(folder, os.W_OK)
    return writable and min(system.f_bavail * system.f_frsize, unused) >= _ROOM


def _look_at(descriptor: int) -> None:
    os.fstat(descriptor)
