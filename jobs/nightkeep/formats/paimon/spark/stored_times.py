"""Footers of Parquet files -> how each file stores times, where it is not as Spark expects them.

Paimon's releases up to 0.6 store TIMESTAMP(0..6), with and without a zone, as INT64 without a logical type. Java takes
those for milliseconds or microseconds, by the precision of the file's schema. Arrow stores TIMESTAMP(7..9) as INT64
nanoseconds, Java as INT96. No metadata names a file's writer: a table of a later release may have files of 0.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column
from pyspark.sql import functions as F

from nightkeep.encodings.open_parquet import open_parquet
from nightkeep.errors import MissingFile
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Schemas
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.storage import Storage, at_once

_TIMESTAMPS = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
_NANOSECOND_PRECISION, _MILLISECOND_PRECISION = 7, 3


@dataclass(frozen=True, slots=True)
class StoredTimes:
    """`nanoseconds`: columns of INT64 nanoseconds. `bare`: times of at most microseconds are INT64 without a type."""

    nanoseconds: frozenset[str] = frozenset()
    bare: bool = False


def is_finer_than_spark(kind: PaimonType) -> bool:
    return kind.root in _TIMESTAMPS and (kind.precision or 0) >= _NANOSECOND_PRECISION


def is_bare(kind: PaimonType, times: StoredTimes) -> bool:
    """Whether a file with such `times` stores values of this type as INT64 without a logical type."""
    return times.bare and kind.root in _TIMESTAMPS and not is_finer_than_spark(kind)


def from_bare(value: Column, kind: PaimonType) -> Column:
    """The time that an INT64 without a logical type is."""
    is_milliseconds = (kind.precision or 0) <= _MILLISECOND_PRECISION
    return F.timestamp_millis(value) if is_milliseconds else F.timestamp_micros(value)


def times_of(storage: Storage, files: Sequence[tuple[str, int]], schemas: Schemas) -> Mapping[str, StoredTimes]:
    """By path, how Parquet files store times; each is given with the id of the schema that it was written with.

    Footers of a schema without times are not read. 10,000 footers of a disk take 4 s.
    """
    timed = {id: schema for id, schema in schemas.by_id.items() if any(_has_times(f.type) for f in schema.fields)}
    asked = [(path, timed[id]) for path, id in files if id in timed]
    found = at_once(lambda file: _times(storage, *file), asked)
    return {path: times for (path, _), times in zip(asked, found, strict=True)}


def _times(storage: Storage, path: str, written: PaimonSchema) -> StoredTimes:
    try:
        with storage.open(path) as source:
            parquet, _ = open_parquet(source, shows_entries=True)
            bare = _holds_bare(pa.struct(list(parquet.schema_arrow)), [(f.name, f.type) for f in written.fields])
            finer = any(is_finer_than_spark(field.type) for field in written.fields)
            return StoredTimes(_nanoseconds(parquet.schema) if finer else frozenset(), bare)
    except (MissingFile, pa.ArrowInvalid):
        # Spark, which reads the file next, reports what is wrong with it.
        return StoredTimes()


def _nanoseconds(schema: pq.ParquetSchema) -> frozenset[str]:
    columns = map(schema.column, range(len(schema.names)))
    return frozenset(
        c.name for c in columns if c.physical_type == "INT64" and '"nanoseconds"' in c.logical_type.to_json()
    )


def _holds_bare(stored: Any, fields: Sequence[tuple[str, PaimonType]]) -> bool:
    places = [(stored.get_field_index(name), kind) for name, kind in fields]
    return any(_is_bare(stored.field(place).type, kind) for place, kind in places if place >= 0)


def _is_bare(stored: Any, kind: PaimonType) -> bool:
    """Whether a stored type holds a time, at any depth, where it has an INT64 without a logical type."""
    match kind.root:
        case TypeRoot.ROW:
            return _holds_bare(stored, [(child.name, child.type) for child in kind.children])
        case TypeRoot.ARRAY:
            return _is_bare(stored.value_type, kind.children[0].type)
        case TypeRoot.MAP:
            key, value = (child.type for child in kind.children)
            of_key, of_value = _entry(stored)
            return _is_bare(of_key, key) or _is_bare(of_value, value)
        case TypeRoot.MULTISET:
            return _is_bare(_entry(stored)[0], kind.children[0].type)
    return kind.root in _TIMESTAMPS and pa.types.is_int64(stored)


def _entry(stored: Any) -> tuple[Any, Any]:
    """The stored types of key and value of a map, which may come as a list of its entries."""
    if pa.types.is_map(stored):
        return stored.key_type, stored.item_type
    return stored.value_type.field(0).type, stored.value_type.field(1).type


def _has_times(kind: PaimonType) -> bool:
    return any(leaf.root in _TIMESTAMPS for leaf in kind.leaves)
