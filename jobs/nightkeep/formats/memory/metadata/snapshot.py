"""Bytes in a store <-> values: one version of a table. A name is written once, and never again.

version-<n>.json   a version that readers see
staged-*.json      a version that nobody sees
data-*.arrow       the rows of one file, an Arrow IPC stream
deleted-*.bitmap   the positions deleted from one file, a 64-bit roaring bitmap
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from threading import Lock

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.model import FileSizes, UnitKey, VersionIdentity, digest_of


class Store:
    """Bytes by name, shared by all that open the table. `put_if_absent` is atomic and decides races."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self._lock = Lock()

    def read(self, name: str) -> bytes:
        try:
            return self.files[name]
        except KeyError:
            raise MissingFile(name, "a file that metadata names", "no such file") from None

    def put(self, name: str, data: bytes) -> None:
        if not self.put_if_absent(name, data):
            raise FileExistsError(f"{name}: expected a name that nobody has taken, found a file")

    def put_if_absent(self, name: str, data: bytes) -> bool:
        with self._lock:
            if name in self.files:
                return False
            self.files[name] = data
            return True


STORES: dict[str, Store] = {}
"""Every table of this process, by location."""


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A file of immutable rows. `deleted` names the bitmap of its `deleted_rows` deleted positions, if any."""

    name: str
    rows: int
    bytes: int
    deleted: str | None = None
    deleted_rows: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.deleted_rows <= self.rows or (self.deleted is None) != (self.deleted_rows == 0):
            found = f"{self.deleted_rows} of {self.rows} in {self.deleted}"
            raise CorruptMetadata(self.name, "deleted rows of this file, named by a bitmap", found)

    @property
    def live_rows(self) -> int:
        return self.rows - self.deleted_rows


@dataclass(frozen=True, slots=True)
class MemoryUnit:
    """The files of one partition. Picklable, because tasks carry it."""

    key: UnitKey
    partition: Mapping[str, object]
    files: tuple[MemoryFile, ...]


@dataclass(frozen=True)
class MemorySnapshot:
    """One version. `by` is its author, `staged_as` the name it was staged under, `rows` the author's own count."""

    version: int
    by: str
    staged_as: str
    partition_columns: tuple[str, ...]
    features: tuple[str, ...]
    rows: int
    units: tuple[MemoryUnit, ...]

    @property
    def sizes(self) -> FileSizes:
        files = [file for unit in self.units for file in unit.files]
        vectors = sum(file.deleted is not None for file in files)
        return FileSizes(tuple(file.bytes for file in files), tuple(None for _ in files), vectors)

    @property
    def identity(self) -> VersionIdentity:
        ordered = replace(self, units=tuple(sorted(self.units, key=lambda unit: unit.key)))
        return VersionIdentity(self.version, digest_of(encode(ordered)))

    @property
    def changes_rows(self) -> bool:
        return not self.by.startswith("nightkeep-")

    @cached_property
    def by_key(self) -> Mapping[UnitKey, MemoryUnit]:
        return {unit.key: unit for unit in self.units}


def encode(snapshot: MemorySnapshot) -> bytes:
    return json.dumps(asdict(snapshot), indent=1).encode()


def decode(data: bytes, *, subject: str) -> MemorySnapshot:
    """The inverse of `encode`. Raises CorruptMetadata naming `subject`."""
    try:
        raw = json.loads(data)
        units = tuple(
            MemoryUnit(UnitKey(**u["key"]), u["partition"], tuple(MemoryFile(**file) for file in u["files"]))
            for u in raw.pop("units")
        )
        columns, features = tuple(raw.pop("partition_columns")), tuple(raw.pop("features"))
        return MemorySnapshot(**raw, partition_columns=columns, features=features, units=units)
    except (ValueError, TypeError, KeyError) as failure:
        raise CorruptMetadata(subject, "a version of a table in memory", str(failure)) from failure


def to_ipc(rows: pa.Table) -> bytes:
    """A data file's bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue().to_pybytes()


def from_ipc(data: bytes) -> pa.Table:
    """The inverse of `to_ipc`."""
    return pa.ipc.open_stream(data).read_all()


def deleted_positions(store: Store, file: MemoryFile) -> BitMap64:
    """The deleted positions of `file`; empty without a bitmap."""
    return BitMap64.deserialize(store.read(file.deleted)) if file.deleted else BitMap64()
