"""The size of metadata -> a refusal if it is beyond a limit. All limits are here.

A limit is far above what writers of the format produce, and below what would end the process. Each has an environment
variable. Metadata beyond a limit is refused, with the variable's name, before it is read or unpacked.
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
    """One limit. `of` states what is counted. `variable` is read each time, as tasks and tests may change it."""

    variable: str
    default: int
    of: str

    @property
    def value(self) -> int:
        """The limit in force. Raises UsageError for a setting that is no number."""
        text = os.environ.get(self.variable)
        return self.default if text is None else _number(self.variable, text)

    def require(self, number: int, subject: str) -> None:
        """Raise RefusedTable, naming `subject` and the limit, if `number` is larger."""
        most = self.value
        if number > most:
            feature = f"{number} {self.of}, more than the limit of {most} ({self.variable})"
            raise RefusedTable(subject, feature, f"set {self.variable} higher if the table is as it should be")


FILE: Final = Limit("NIGHTKEEP_MAX_FILE_BYTES", 2 << 30, "bytes in a file of metadata")
"""For a file that is read as a whole. Paimon and Delta cannot address more in a file of vectors; a commit of five
million files is that large."""
UNPACKED: Final = Limit("NIGHTKEEP_MAX_UNPACKED_BYTES", 4 << 30, "bytes of unpacked metadata")
"""For one file, with any compression. Checkpoints of ten million files take half of it."""
DOCUMENT: Final = Limit("NIGHTKEEP_MAX_DOCUMENT_BYTES", 256 << 20, "bytes in a JSON document")
"""Python needs up to thirty times as much memory. Iceberg's metadata of 100,000 snapshots takes 100 MB."""
BLOCK: Final = Limit("NIGHTKEEP_MAX_BLOCK_BYTES", 256 << 20, "bytes in a block of an Avro file")
"""Writers end a block at 64 KiB; a record of a table of 10,000 columns takes a few MB."""
DECODED: Final = Limit("NIGHTKEEP_MAX_DECODED_BYTES", 8 << 30, "bytes that records of a block may take once decoded")
"""The worst case by the schema: an empty record of one byte becomes a dictionary."""
RECORDS: Final = Limit("NIGHTKEEP_MAX_RECORDS", 10_000_000, "records in a file of metadata")
"""Manifests hold some 100,000 entries, checkpoints in one file a few million actions; an action takes a KB."""
MEMORY: Final = Limit("NIGHTKEEP_MAX_MEMORY_BYTES", 0, "bytes of memory, of the process that reads metadata")
"""0 means nine tenths of the memory of the machine or container. With more, the kernel would end the process."""
READING: Final = Limit("NIGHTKEEP_MAX_READING_SECONDS", 3600, "seconds to read the metadata of one table of a group")
"""The largest tables of the benches are planned in minutes; a task of a group may take six hours by default."""
READER_SECONDS: Final = Limit("NIGHTKEEP_MAX_READER_SECONDS", 3600, "seconds for another engine to read a version")
PATIENCE: Final = Limit("NIGHTKEEP_PATIENCE_SECONDS", 25, "seconds to wait for a catalog, metastore or namenode")
"""For an answer to a read. A commit is given more time, as its outcome is unknown once it is given up."""
READER_MEMORY: Final = Limit("NIGHTKEEP_MAX_READER_BYTES", 4 << 30, "bytes of memory of another engine's process")
"""Engines read in batches of a few MB, by as many threads as there are cores."""
LISTED: Final = Limit("NIGHTKEEP_MAX_LISTED_FOLDERS", 200_000, "folders or names to look at for tables")
"""For one place. A warehouse of 100,000 tables has twice as many; on an object store they take minutes."""


class _Watch:
    """Checks the memory of this process after every MB of metadata, over all files."""

    def __init__(self) -> None:
        self._since = 0

    def took(self, unpacked_bytes: int, subject: str) -> None:
        """Raises as `require_memory`."""
        self._since += unpacked_bytes
        if self._since >= _LOOK_BYTES:
            self._since = 0
            require_memory(subject)


WATCH: Final = _Watch()
"""Called before anything is decoded."""


def require_memory(subject: str) -> None:
    """Raise RefusedTable if this process uses more memory than MEMORY allows. Takes a few microseconds."""
    most = MEMORY.value or _ours()
    resident = _resident()
    if resident > most:
        feature = f"{resident} {MEMORY.of}, more than the limit of {most} ({MEMORY.variable})"
        raise RefusedTable(subject, feature, f"set {MEMORY.variable} higher, or give the process more")


def confine_memory() -> None:
    """Make allocations of this process fail, also in native code, that would take it far beyond MEMORY.

    Only address space can be limited. Address space that libraries reserve without using it is not counted.
    """
    taken = _memory()[0]
    if not taken:
        return
    most = taken + max((MEMORY.value or _ours()) - _resident(), 0) + _RESERVED_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def out_of_memory(subject: str) -> RefusedTable:
    """The error for a failed allocation in a process that `confine_memory` limits."""
    feature = f"its metadata takes more than the limit of {MEMORY.value or _ours()} {MEMORY.of} ({MEMORY.variable})"
    return RefusedTable(subject, feature, f"set {MEMORY.variable} higher, or give the process more")


_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SHARE: Final = 0.9
_LOOK_BYTES: Final = 1 << 20
"""How much metadata is decoded between two checks: it takes milliseconds, a check takes microseconds."""
_RESERVED_BYTES: Final = 2 << 30
"""Address space that is reserved but unused: 1 GiB by Arrow's allocator, 64 MiB by each thread."""
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
    """Bytes of address space and of memory that this process uses; 0 if the system does not state them."""
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
