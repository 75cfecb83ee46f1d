"""Rows -> an ORC data file: types and attributes as ORCSchemaUtil.java gives them, settings as table properties ask.

Iceberg table spec, Appendix A, "ORC".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, Literal

import pyarrow as pa
from pyarrow import orc
from pyiceberg.types import (
    BinaryType,
    FixedType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from nightkeep.encodings.nested_values import map_of
from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.types import arrow_type
from nightkeep.model.arrow_types import ArrowField

_Codec = Literal["UNCOMPRESSED", "ZLIB", "SNAPPY", "LZ4", "ZSTD"]
_CODECS: Final[Mapping[str, _Codec]] = {
    "none": "UNCOMPRESSED",
    "zlib": "ZLIB",
    "snappy": "SNAPPY",
    "lz4": "LZ4",
    "zstd": "ZSTD",
}
_STRIPES: Final = 4
"""A file ends after whole stripes, so that it exceeds its target by a quarter at most."""
_STRIPE_BYTES: Final = 64 << 20
BATCH_ROWS: Final = 1024
"""A stripe can end after so many rows: Arrow's default."""
_DICTIONARY: Final = 0.8
"""More distinct texts than that are not worth a dictionary: Java's default."""


def orc_field(field: NestedField) -> ArrowField:
    """A column of ORC files: with attributes at every level, required fields not nullable. Raises as `arrow_type`."""
    attributes = {"iceberg.id": str(field.field_id), "iceberg.required": "true" if field.required else "false"}
    kind, own = _stored(field.field_type)
    return pa.field(field.name, kind, nullable=not field.required, metadata={**attributes, **own})


def settings(schema: IcebergSchema) -> Mapping[str, Any]:
    """The options of pyarrow's writer by table properties. Raises RefusedTable for values that it has not."""
    codec = schema.properties.get("write.orc.compression-codec", "zlib").lower()
    if codec not in _CODECS:
        raise RefusedTable(schema.table, f"compression {codec} of ORC files is not handled", "set it to zlib or zstd")
    strategy = schema.properties.get("write.orc.compression-strategy", "speed").lower()
    if strategy not in ("speed", "compression"):
        raise RefusedTable(schema.table, f"compression strategy {strategy} of ORC files", "set it to speed")
    text = schema.properties.get("write.orc.stripe-size-bytes", str(_STRIPE_BYTES))
    if not text.isdecimal() or not int(text):
        feature = f"table property write.orc.stripe-size-bytes is {text!r}, which is no size"
        raise RefusedTable(schema.table, feature, "set it")
    return {
        "compression": _CODECS[codec],
        "compression_strategy": strategy,
        "stripe_size": int(text),
        "batch_size": BATCH_ROWS,
        "dictionary_key_size_threshold": _DICTIONARY,
    }


@contextmanager
def orc_output(sink: BinaryIO, options: Mapping[str, Any], *, target_bytes: int | None) -> Iterator[orc.ORCWriter]:
    """A writer to `sink`, which it leaves open. `target_bytes` is the size at which the file shall end, if known."""
    stripe = options["stripe_size"]
    if target_bytes is not None:
        stripe = max(1, min(stripe, target_bytes // _STRIPES))
    with orc.ORCWriter(sink, **{**options, "stripe_size": stripe}) as writer:
        yield writer


def _stored(kind: IcebergType) -> tuple[pa.DataType, Mapping[str, str]]:
    """The type as it is stored, and the attributes that give it its meaning."""
    match kind:
        case StructType():
            return pa.struct([orc_field(field) for field in kind.fields]), {}
        case ListType():
            return pa.list_(orc_field(kind.element_field)), {}
        case MapType():
            key = orc_field(kind.key_field).with_nullable(nullable=False)
            return map_of(key, orc_field(kind.value_field)), {}
        case FixedType():
            return pa.binary(), {"iceberg.binary-type": "FIXED", "iceberg.length": str(len(kind))}
    return _OTHERS.get(type(kind), (arrow_type(kind), {}))


_MICROS: Final = {"iceberg.timestamp-unit": "MICROS"}
_NANOS: Final = {"iceberg.timestamp-unit": "NANOS"}
_OTHERS: Final[Mapping[type[IcebergType], tuple[pa.DataType, Mapping[str, str]]]] = {
    LongType: (pa.int64(), {"iceberg.long-type": "LONG"}),
    TimeType: (pa.int64(), {"iceberg.long-type": "TIME"}),
    BinaryType: (pa.binary(), {"iceberg.binary-type": "BINARY"}),
    UUIDType: (pa.binary(), {"iceberg.binary-type": "UUID"}),
    # Arrow reads ORC's times as nanoseconds: others could not be decoded again.
    TimestampType: (pa.timestamp("ns"), _MICROS),
    TimestamptzType: (pa.timestamp("ns", "UTC"), _MICROS),
    TimestampNanoType: (pa.timestamp("ns"), _NANOS),
    TimestamptzNanoType: (pa.timestamp("ns", "UTC"), _NANOS),
}
