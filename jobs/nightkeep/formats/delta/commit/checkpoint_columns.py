"""The state of a version -> the columns of a checkpoint, in batches (PROTOCOL.md, "Checkpoint Schema").

Most adds come and go as columns. What a checkpoint cannot hold is refused: a field that we do not know would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.commit.parsed_columns import partition_column, partition_type, stats_column, stats_type
from nightkeep.formats.delta.metadata.actions import Raw, text_map
from nightkeep.formats.delta.metadata.add_columns import VECTOR, AddColumns, Values
from nightkeep.formats.delta.metadata.schema import DeltaSchema, is_true
from nightkeep.model.arrow_types import Array

BATCH: Final = 1 << 16
"""Actions of a row group."""
_TEXTS: Final = pa.map_(pa.string(), pa.string())
_LIST: Final = pa.list_(pa.string())
_ADD: Final[Mapping[str, pa.DataType]] = {
    "path": pa.string(),
    "partitionValues": _TEXTS,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "tags": _TEXTS,
    "deletionVector": VECTOR,
    "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(),
    "clusteringProvider": pa.string(),
    "stats": pa.string(),
}
KINDS: Final[Mapping[str, Mapping[str, pa.DataType]]] = {
    "protocol": {
        "minReaderVersion": pa.int32(),
        "minWriterVersion": pa.int32(),
        "readerFeatures": _LIST,
        "writerFeatures": _LIST,
    },
    "metaData": {
        "id": pa.string(),
        "name": pa.string(),
        "description": pa.string(),
        "format": pa.struct([("provider", pa.string()), ("options", _TEXTS)]),
        "schemaString": pa.string(),
        "partitionColumns": _LIST,
        "configuration": _TEXTS,
        "createdTime": pa.int64(),
    },
    "txn": {"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()},
    "domainMetadata": {"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()},
    "add": _ADD,
    "remove": {
        "path": pa.string(),
        "deletionTimestamp": pa.int64(),
        "dataChange": pa.bool_(),
        "extendedFileMetadata": pa.bool_(),
        "partitionValues": _TEXTS,
        "size": pa.int64(),
        "deletionVector": VECTOR,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
    },
    "checkpointMetadata": {"version": pa.int64(), "tags": _TEXTS},
    "sidecar": {"path": pa.string(), "sizeInBytes": pa.int64(), "modificationTime": pa.int64(), "tags": _TEXTS},
}
_LEFT_OUT: Final[Mapping[str, frozenset[str]]] = {"remove": frozenset({"stats", "tags"})}
"""Fields of commits that a checkpoint must not have."""


@dataclass(frozen=True, slots=True)
class CheckpointSchema:
    """Which columns the table's checkpoints have. `as_json`, `as_struct`: how statistics are stored."""

    table: str
    schema: DeltaSchema
    as_json: bool
    as_struct: bool

    @staticmethod
    def of(table: str, schema: DeltaSchema) -> CheckpointSchema:
        """Raises RefusedTable if no statistics are to be stored and the table must have row counts."""
        as_json = is_true({_AS_JSON: "true", **schema.configuration}, _AS_JSON)
        as_struct = is_true(schema.configuration, _AS_STRUCT)
        if not (as_json or as_struct) and (schema.has_vectors or schema.assigns_row_ids):
            feature = "its checkpoints would lose row counts, which deletion vectors and row tracking need"
            raise RefusedTable(table, feature, f"set {_AS_JSON} to true")
        return CheckpointSchema(table, schema, as_json, as_struct)

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """The type of each kind of action."""
        fields = {kind: dict(fields) for kind, fields in KINDS.items()}
        if not self.as_json:
            del fields["add"]["stats"]
        if self.as_struct and self.schema.partition_columns:
            fields["add"]["partitionValues_parsed"] = partition_type(self.schema)
        if self.as_struct:
            fields["add"]["stats_parsed"] = stats_type(self.schema)
        return {kind: pa.struct([*each.items()]) for kind, each in fields.items()}

    def arrow(self, kinds: Iterable[str]) -> pa.Schema:
        every = self.columns
        return pa.schema([(kind, every[kind]) for kind in kinds])

    def files(self, stored: AddColumns, adds: Sequence[Raw], removes: Iterable[Raw]) -> Iterator[tuple[str, Array]]:
        """Batches of adds, then of removes."""
        for start in range(0, len(stored), BATCH):
            part = AddColumns(stored.rows.slice(start, BATCH).combine_chunks(), stored.values)
            columns = {name: _plain(part.rows.column(name)) for name in _ADD if name in part.rows.column_names}
            yield "add", self._adds(columns, part.values, part.spellings)
        for some in _batches(adds):
            known: dict[tuple[tuple[str, str | None], ...], int] = {}
            values = [tuple(text_map(body, "partitionValues", subject=str(body["path"])).items()) for body in some]
            codes = np.asarray([known.setdefault(each, len(known)) for each in values], np.int64)
            rows = cast(pa.StructArray, self.bodies("add", some))
            columns = {name: rows.field(name) for name in _ADD if name != "partitionValues"}
            yield "add", self._adds(columns, tuple(map(dict, known)), codes)
        for some in _batches(removes):
            yield "remove", self.bodies("remove", [{**body, "dataChange": False} for body in some])

    def _adds(self, columns: dict[str, Array], values: Sequence[Values], spelling: Any) -> Array:
        size = len(columns["path"])
        maps = pa.array([[*each.items()] for each in values], _TEXTS)
        made = {**columns, "partitionValues": maps.take(pa.array(spelling))}
        # No reader of a version takes the files of its checkpoint for new data.
        made["dataChange"] = pa.repeat(pa.scalar(value=False), size)
        kind = cast(pa.StructType, self.columns["add"])
        names = [field.name for field in kind]
        if "partitionValues_parsed" in names:
            parsed = partition_column(self.schema, values, table=self.table)
            made["partitionValues_parsed"] = parsed.take(pa.array(spelling))
        if "stats_parsed" in names:
            made["stats_parsed"] = stats_column(columns["stats"].to_pylist(), kind.field("stats_parsed").type)
        return pa.StructArray.from_arrays([made[name].cast(kind.field(name).type) for name in names], fields=list(kind))

    def bodies(self, kind: str, bodies: Sequence[Raw]) -> Array:
        """Actions as a column. Raises RefusedTable for what it cannot hold."""
        fields, left_out = KINDS[kind], _LEFT_OUT.get(kind, frozenset())
        for body in bodies:
            if unknown := _unknown(body, fields, left_out):
                feature = f"{kind} actions with the field {unknown[0]}, which a checkpoint of ours would lose"
                raise RefusedTable(self.table, feature, "let the engine that wrote them write checkpoints")
        try:
            columns = [pa.array([_value(body.get(name), t) for body in bodies], t) for name, t in fields.items()]
        except (pa.ArrowException, UnicodeEncodeError) as failure:
            feature = f"{kind} actions with a value that Parquet cannot hold: {failure}"
            raise RefusedTable(self.table, feature, "let its own engine write checkpoints") from failure
        return pa.StructArray.from_arrays(columns, fields=[pa.field(name, t) for name, t in fields.items()])


def _batches(bodies: Iterable[Raw]) -> Iterator[list[Raw]]:
    rest = iter(bodies)
    while some := list(islice(rest, BATCH)):
        yield some


def _unknown(body: Raw, fields: Mapping[str, pa.DataType], left_out: frozenset[str]) -> list[str]:
    """Fields of the body, and of objects in it, that a checkpoint's columns do not have."""
    found = sorted(body.keys() - fields.keys() - left_out)
    for name, value in body.items():
        kind = fields.get(name)
        if isinstance(value, Mapping) and isinstance(kind, pa.StructType):
            found += [f"{name}.{each}" for each in sorted(value.keys() - {field.name for field in kind})]
    return found


def _plain(column: Any) -> Array:
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return cast(Array, whole)


def _value(value: object, kind: pa.DataType) -> object:
    """Arrow takes maps as lists of pairs."""
    if isinstance(value, Mapping) and pa.types.is_map(kind):
        return list(value.items())
    if isinstance(value, Mapping) and isinstance(kind, pa.StructType):
        return {field.name: _value(value.get(field.name), field.type) for field in kind}
    return value


_AS_JSON: Final = "delta.checkpoint.writeStatsAsJson"
_AS_STRUCT: Final = "delta.checkpoint.writeStatsAsStruct"
