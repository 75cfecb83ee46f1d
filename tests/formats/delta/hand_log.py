"""Logs of Delta tables written line by line, with checkpoints of every kind: no data files, only metadata."""

import json
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, load
from nightkeep.model import Address
from nightkeep.storage import LocalStorage

VECTORS = ("deletionVectors", "v2Checkpoint", "domainMetadata")
_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
_ADD = {
    "path": pa.string(),
    "partitionValues": _TEXTS,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "stats": pa.string(),
    "tags": _TEXTS,
    "deletionVector": _VECTOR,
    "baseRowId": pa.int64(),
}
TYPES: Mapping[str, pa.StructType] = {
    "protocol": pa.struct(
        {
            "minReaderVersion": pa.int32(),
            "minWriterVersion": pa.int32(),
            "readerFeatures": pa.list_(pa.string()),
            "writerFeatures": pa.list_(pa.string()),
        }
    ),
    "metaData": pa.struct(
        {
            "id": pa.string(),
            "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
            "schemaString": pa.string(),
            "partitionColumns": pa.list_(pa.string()),
            "configuration": _TEXTS,
        }
    ),
    "add": pa.struct(_ADD),
    "remove": pa.struct({"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()}),
    "txn": pa.struct({"appId": pa.string(), "version": pa.int64()}),
    "domainMetadata": pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()}),
    "sidecar": pa.struct({"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64()}),
    "checkpointMetadata": pa.struct({"version": pa.int64(), "tags": _TEXTS}),
}
"""A checkpoint's columns (PROTOCOL.md, "Checkpoint Schema")."""

Action = Mapping[str, Any]


@dataclass
class HandLog:
    """A table's log in `folder`; `columns` are its schema's types by name."""

    folder: Path
    columns: Mapping[str, Any] = field(default_factory=lambda: {"id": "long", "p": "string"})
    partition_columns: Sequence[str] = ("p",)
    configuration: Mapping[str, str] = field(default_factory=dict)
    features: Sequence[str] = VECTORS

    @property
    def log(self) -> Path:
        return self.folder / "_delta_log"

    @property
    def head(self) -> list[Action]:
        """The first actions of a table."""
        return [self.protocol, self.metadata]

    @property
    def protocol(self) -> Action:
        readers = [name for name in self.features if name in ("deletionVectors", "v2Checkpoint", "columnMapping")]
        versions = {"minReaderVersion": 3, "minWriterVersion": 7}
        return {"protocol": {**versions, "readerFeatures": readers, "writerFeatures": list(self.features)}}

    @property
    def metadata(self) -> Action:
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in self.columns.items()]
        told = {
            "id": "00000000-0000-0000-0000-000000000000",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(self.partition_columns),
            "configuration": dict(self.configuration),
        }
        return {"metaData": told}

    def commit(self, version: int, *actions: Action, name: str | None = None) -> Path:
        """One line for each action; the first commit needs `head`."""
        return self.lines(version, *(json.dumps(action) for action in actions), name=name)

    def lines(self, version: int, *lines: str, name: str | None = None) -> Path:
        self.log.mkdir(parents=True, exist_ok=True)
        path = self.log / (name or f"{version:020d}.json")
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    def single(self, version: int, actions: Iterable[Action]) -> None:
        self._parquet(self.log / f"{version:020d}.checkpoint.parquet", actions)

    def parts(self, version: int, actions: Sequence[Action], count: int) -> list[Path]:
        size = math.ceil(len(actions) / count)
        paths = [self.log / f"{version:020d}.checkpoint.{i + 1:010d}.{count:010d}.parquet" for i in range(count)]
        for i, path in enumerate(paths):
            self._parquet(path, actions[i * size : (i + 1) * size])
        return paths

    def unique(self, version: int, actions: Iterable[Action], *, suffix: str, sidecars: int) -> Path:
        """A V2 checkpoint; files are in sidecars unless there are none."""
        files = [action for action in actions if action.keys() & {"add", "remove"}]
        others = [action for action in actions if not action.keys() & {"add", "remove"}]
        kept: list[Action] = [{"checkpointMetadata": {"version": version}}, *others, *([] if sidecars else files)]
        for i in range(sidecars):
            kept.append({"sidecar": self.sidecar(files[i::sidecars])})
        path = self.log / f"{version:020d}.checkpoint.{uuid.uuid4()}.{suffix}"
        if suffix == "json":
            path.write_text("".join(json.dumps(action) + "\n" for action in kept))
        else:
            self._parquet(path, kept)
        return path

    def sidecar(self, files: Iterable[Action]) -> dict[str, Any]:
        path = self.log / "_sidecars" / f"{uuid.uuid4()}.parquet"
        path.parent.mkdir(exist_ok=True)
        self._parquet(path, files)
        return {"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 0}

    def load(self, version: int | None = None) -> DeltaSnapshot:
        return load(Address("delta", str(self.folder), "hand"), LocalStorage(str(self.folder)), version)

    def _parquet(self, path: Path, actions: Iterable[Action]) -> None:
        """A column for every kind, as Spark writes them."""
        rows = list(actions)
        columns = {
            kind: pa.array([_maps(row.get(kind), kind_type) for row in rows], kind_type)
            for kind, kind_type in TYPES.items()
        }
        pq.write_table(pa.table(columns), path, row_group_size=3)


def add(path: str, p: str | None = "a", **more: Any) -> Action:
    stats = json.dumps({"numRecords": 10})
    told = {"path": path, "partitionValues": {"p": p}, "size": 100, "modificationTime": 1, "dataChange": True}
    return {"add": {**told, "stats": stats, **more}}


def remove(path: str, **more: Any) -> Action:
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **more}}


def vector(place: str, rows: int = 1) -> dict[str, Any]:
    return {"storageType": "u", "pathOrInlineDv": place, "offset": 1, "sizeInBytes": 40, "cardinality": rows}


def live(snapshot: DeltaSnapshot) -> dict[tuple[str, str | None], Mapping[str, object]]:
    """Raw adds by what tells them apart."""
    return {file.identity: file.raw for unit in snapshot.units for file in unit.files}


def _maps(value: Any, kind: pa.DataType) -> Any:
    """Arrow takes maps as lists of pairs."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return list(value.items())
    if pa.types.is_struct(kind):
        return {name: _maps(value.get(name), kind.field(name).type) for name in (f.name for f in kind)}
    return value
