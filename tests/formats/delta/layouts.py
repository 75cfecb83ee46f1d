"""Partitions of files that are metadata alone: what a rule plans from."""

from types import MappingProxyType
from typing import Any

import pyarrow as pa

from nightkeep.formats.delta.metadata.data_file import DeltaDataFile, Vector, VectorStorage
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaField, DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.model import Address, UnitKey

KEY = UnitKey("day=2026-11-01")


def a_file(
    name: str, size: int, *, rows: int | None = 100, deleted: int = 0, modified: int = 0, **tags: str
) -> DeltaDataFile:
    vector = Vector(VectorStorage.RELATIVE, "v" * 20, 1, 34, deleted) if deleted else None
    return DeltaDataFile(name, name, size, rows, vector, None, tags, {"path": name, "modificationTime": modified})


def a_snapshot(*files: DeltaDataFile, **configuration: str) -> DeltaSnapshot:
    field = DeltaField("id", "id", None, pa.int64(), pa.int64(), nullable=True)
    schema = DeltaSchema((field,), (), ColumnMapping.NONE, MappingProxyType(configuration))
    unit = DeltaUnit(KEY, {"day": "2026-11-01"}, {"day": "2026-11-01"}, files, schema)
    raw: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    return DeltaSnapshot(Address("delta", "/t", "t"), 7, schema, (unit,), raw, {}, {}, {}, None, None)
