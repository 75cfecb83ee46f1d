"""How much of a table's metadata is read before somebody must say that there may be more: every bound, in one place.

A bound is far above what a writer of the format leaves, and below what would end the process. Each is set by an
environment variable of its name; what is beyond one is refused by that name, before it is read or unpacked.
"""

from __future__ import annotations

import os
import re
import resource
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nightkeep.errors import RefusedTable, UsageError


@dataclass(frozen=True, slots=True)
class Limit:
    """`of` says what is counted. `variable` is read anew each time: tasks and tests set it as they like."""

    variable: str
    default: int
    of: str

    @property
    def value(self) -> int:
        """Raises UsageError for a setting that is no number."""
        text = os.environ.get(self.variable)
        return self.default if text is None else _number(self.variable, text)

    def require(self, found: int, subject: str) -> None:
        """Raise RefusedTable naming `subject` and the limit where `found` is beyond it."""
        most = self.value
        if found > most:
            feature = f"{found} {self.of}, more than the limit of {most} ({self.variable})"
            raise RefusedTable(subject, feature, f"set {self.variable} higher if the table is as it should be")


FILE: Final = Limit("NIGHTKEEP_MAX_FILE_BYTES", 2 << 30, "bytes in a file of metadata")
"""A file that is read as a whole. Paimon and Delta cannot name more in a file of vectors; a commit that loads five
million files has as much."""
UNPACKED: Final = Limit("NIGHTKEEP_MAX_UNPACKED_BYTES", 4 << 30, "bytes of unpacked metadata")
"""Of one file, whatever it is packed with. Checkpoints of ten million files take half of it."""
DOCUMENT: Final = Limit("NIGHTKEEP_MAX_DOCUMENT_BYTES", 256 << 20, "bytes in a JSON document")
"""Python takes up to thirty times as much for it. Iceberg's metadata of 100,000 snapshots takes 100 MB."""
BLOCK: Final = Limit("NIGHTKEEP_MAX_BLOCK_BYTES", 256 << 20, "bytes in a block of an Avro file")
"""Writers end a block at 64 KiB; a record of a table of 10,000 columns takes a few MB."""
DECODED: Final = Limit("NIGHTKEEP_MAX_DECODED_BYTES", 8 << 30, "bytes that records of a block may take once decoded")
"""At worst, by their schema: an empty record of one byte is a dictionary."""
RECORDS: Final = Limit("NIGHTKEEP_MAX_RECORDS", 10_000_000, "records in a file of metadata")
"""Manifests hold some 100,000 entries, checkpoints in one file a few million actions; an action takes a KB."""
MEMORY: Final = Limit("NIGHTKEEP_MAX_MEMORY_BYTES", 0, "bytes of memory, of the process that reads metadata")
"""0 stands for nine tenths of what the machine or the container has: the kernel would end the process."""
READING: Final = Limit("NIGHTKEEP_MAX_READING_SECONDS", 3600, "seconds to read the metadata of one table of a group")
"""The largest tables of the benches are planned in minutes; a task of a group may take six hours by default."""


class _Watch:
    """Looks at the memory of this process after every MB of metadata, whatever files that is in."""

    def __init__(self) -> None:
        self._since = 0

    def took(self, unpacked_bytes: int, subject: str) -> None:
        """Raises as `require_memory`."""
        self._since += unpacked_bytes
        if self._since >= _LOOK_BYTES:
            self._since = 0
            require_memory(subject)


WATCH: Final = _Watch()
"""Told of all that is about to be decoded."""


def require_memory(subject: str) -> None:
    """Raise RefusedTable where this process takes more memory than MEMORY allows; a few microseconds."""
    most = MEMORY.value or _ours()
    resident = _resident()
    if resident > most:
        feature = f"{resident} {MEMORY.of}, more than the limit of {most} ({MEMORY.variable})"
        raise RefusedTable(subject, feature, f"set {MEMORY.variable} higher, or give the process more")


def confine_memory() -> None:
    """Have allocations of this process fail that would take it far beyond MEMORY, also those of native code.

    Only address space can be bounded. What libraries reserve of it without using it is not counted.
    """
    taken = _memory()[0]
    if not taken:
        return
    most = taken + max((MEMORY.value or _ours()) - _resident(), 0) + _RESERVED_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def out_of_memory(subject: str) -> RefusedTable:
    """What to raise where an allocation of a process failed that is confined to MEMORY."""
    feature = f"its metadata takes more than the limit of {MEMORY.value or _ours()} {MEMORY.of} ({MEMORY.variable})"
    return RefusedTable(subject, feature, f"set {MEMORY.variable} higher, or give the process more")


_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SHARE: Final = 0.9
_LOOK_BYTES: Final = 1 << 20
"""They take milliseconds to decode, a look takes microseconds."""
_RESERVED_BYTES: Final = 2 << 30
"""Arenas of Arrow's allocator take 1 GiB, those of threads 64 MiB each."""
_CGROUPS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@lru_cache(maxsize=1)
def _ours() -> int:
    limits = [_PAGE * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUPS:
        if os.path.exists(path):
            with open(path, encoding="ascii") as file:
                limits += [int(text) for text in [file.read().strip()] if re.fullmatch("[0-9]{1,18}", text)]
    return int(min(limits) * _SHARE)


def _resident() -> int:
    return _memory()[1]


def _memory() -> tuple[int, int]:
    """Bytes of address space and of memory that this process takes; nothing where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            space, resident = file.read().split()[:2]
    except OSError:
        return 0, 0
    return int(space) * _PAGE, int(resident) * _PAGE


def _number(variable: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text.strip()):
        raise UsageError(f"{variable}: expected a whole number, found {text!r:.80}")
    return int(text)
