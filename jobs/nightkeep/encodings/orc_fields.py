"""Fields of ORC files of Iceberg tables <-> fields with ids and types, by attributes (ORCSchemaUtil.java).

ORC has no times of day, no uuids and no bytes of a fixed length: they are numbers and bytes with an attribute. Arrow
reads and writes the attributes of ORC's types as metadata of fields (Iceberg table spec, Appendix A, "ORC").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import pyarrow as pa

from nightkeep.encodings.nested_values import map_of
from nightkeep.model.arrow_types import FIELD_ID, ArrowField

_ID: Final = b"iceberg.id"
_LONG, _BINARY, _LENGTH = b"iceberg.long-type", b"iceberg.binary-type", b"iceberg.length"
_UUID_BYTES: Final = 16


def read_field(field: ArrowField) -> ArrowField:
    """A field of an open file, as Arrow has it -> with its id, if it has one, and its type. Ids are digits, as Java
    reads them; other attributes are ignored."""
    held: Mapping[bytes, bytes] = field.metadata or {}
    number = held.get(_ID, b"")
    plain = pa.field(field.name, _read_type(field.type, held), field.nullable)
    return plain.with_metadata({FIELD_ID: number}) if number.isdigit() else plain


def _read_type(kind: pa.DataType, held: Mapping[bytes, bytes]) -> pa.DataType:
    if isinstance(kind, pa.StructType):
        return pa.struct([read_field(child) for child in kind])
    if isinstance(kind, pa.MapType):
        return map_of(read_field(kind.key_field), read_field(kind.item_field))
    if isinstance(kind, pa.ListType):
        return pa.list_(read_field(kind.value_field))
    if kind == pa.int64() and held.get(_LONG) == b"TIME":
        return pa.time64("us")
    if kind == pa.binary() and held.get(_BINARY) == b"UUID":
        return pa.binary(_UUID_BYTES)
    length = held.get(_LENGTH, b"")
    if kind == pa.binary() and held.get(_BINARY) == b"FIXED" and length.isdigit():
        return cast(pa.DataType, pa.binary(int(length)))
    return kind
