"""The Avro schemas of manifests and manifest lists, with field ids, as Java writes them for format versions 1 to 3.

Iceberg table spec, "Manifests", "Manifest Lists", Appendix A; AvroSchemaUtil.java and TypeToSchema.java for the shapes.
Field ids are the spec's: never renumber. `equality_ids` are list<int>: Java's reader fails on longs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from pyiceberg.partitioning import PartitionField
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)
from pyiceberg.utils.decimal import decimal_required_bytes

from nightkeep.encodings.avro_schemas import AvroType, Schema
from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.iceberg.metadata.avro import Names
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema


class _Need(Enum):
    OPTIONAL = 0
    REQUIRED = 1


@dataclass(frozen=True, slots=True)
class _Field:
    id: int
    name: str
    type: AvroType | None
    need: _Need = _Need.OPTIONAL
    versions: tuple[int, ...] = (1, 2, 3)

    def avro(self) -> Schema:
        if self.need is _Need.REQUIRED:
            return {"name": self.name, "type": self.type, "field-id": self.id}
        return _optional(self.id, self.name, self.type)


def _optional(field_id: int, name: str, kind: AvroType | None) -> Schema:
    union = "null" if kind == "null" else ["null", kind]
    return {"name": name, "type": union, "default": None, "field-id": field_id}


def _map(key_id: int, value_id: int, value: str) -> Schema:
    """The type of a map by field id: an array of pairs, as keys of Avro's own maps are strings."""
    fields = [
        _Field(key_id, "key", "int", _Need.REQUIRED).avro(),
        _Field(value_id, "value", value, _Need.REQUIRED).avro(),
    ]
    pair = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": fields}
    return {"type": "array", "items": pair, "logicalType": "map"}


def _list(element_id: int, element: AvroType) -> Schema:
    return {"type": "array", "items": element, "element-id": element_id}


MAPS: Final[Mapping[str, str]] = {
    "column_sizes": "long",
    "value_counts": "long",
    "null_value_counts": "long",
    "nan_value_counts": "long",
    "lower_bounds": "bytes",
    "upper_bounds": "bytes",
}
"""Fields of data_file that are maps by field id, with the type of their values."""

_LATER: Final = (2, 3)
BLOCK_SIZE: Final = "block_size_in_bytes"
"""A field that version 1 requires and no reader uses. Later versions must not write it: it is not read in these."""
_PARTITION_ID, _BLOCK_ID = 102, 105
_FILE: Final = (
    _Field(134, "content", "int", _Need.REQUIRED, _LATER),
    _Field(100, "file_path", "string", _Need.REQUIRED),
    _Field(101, "file_format", "string", _Need.REQUIRED),
    _Field(_PARTITION_ID, "partition", None, _Need.REQUIRED),
    _Field(103, "record_count", "long", _Need.REQUIRED),
    _Field(104, "file_size_in_bytes", "long", _Need.REQUIRED),
    _Field(_BLOCK_ID, BLOCK_SIZE, "long", _Need.REQUIRED, (1,)),
    _Field(108, "column_sizes", _map(117, 118, "long")),
    _Field(109, "value_counts", _map(119, 120, "long")),
    _Field(110, "null_value_counts", _map(121, 122, "long")),
    _Field(137, "nan_value_counts", _map(138, 139, "long")),
    _Field(125, "lower_bounds", _map(126, 127, "bytes")),
    _Field(128, "upper_bounds", _map(129, 130, "bytes")),
    _Field(131, "key_metadata", "bytes"),
    _Field(132, "split_offsets", _list(133, "long")),
    _Field(135, "equality_ids", _list(136, "int"), versions=_LATER),
    _Field(140, "sort_order_id", "int"),
    _Field(142, "first_row_id", "long", versions=(3,)),
    _Field(143, "referenced_data_file", "string", versions=_LATER),
    _Field(144, "content_offset", "long", versions=(3,)),
    _Field(145, "content_size_in_bytes", "long", versions=(3,)),
)
_ENTRY: Final = (
    _Field(0, "status", "int", _Need.REQUIRED),
    _Field(1, "snapshot_id", "long", _Need.REQUIRED, (1,)),
    _Field(1, "snapshot_id", "long", versions=_LATER),
    _Field(3, "sequence_number", "long", versions=_LATER),
    _Field(4, "file_sequence_number", "long", versions=_LATER),
    _Field(2, "data_file", None, _Need.REQUIRED),
)
_SUMMARY: Final = (
    _Field(509, "contains_null", "boolean", _Need.REQUIRED),
    _Field(518, "contains_nan", "boolean"),
    _Field(510, "lower_bound", "bytes"),
    _Field(511, "upper_bound", "bytes"),
)
_LIST: Final = (
    _Field(500, "manifest_path", "string", _Need.REQUIRED),
    _Field(501, "manifest_length", "long", _Need.REQUIRED),
    _Field(502, "partition_spec_id", "int", _Need.REQUIRED),
    _Field(517, "content", "int", _Need.REQUIRED, _LATER),
    _Field(515, "sequence_number", "long", _Need.REQUIRED, _LATER),
    _Field(516, "min_sequence_number", "long", _Need.REQUIRED, _LATER),
    _Field(503, "added_snapshot_id", "long", _Need.REQUIRED),
    _Field(504, "added_files_count", "int", _Need.REQUIRED),
    _Field(505, "existing_files_count", "int", _Need.REQUIRED),
    _Field(506, "deleted_files_count", "int", _Need.REQUIRED),
    _Field(512, "added_rows_count", "long", _Need.REQUIRED),
    _Field(513, "existing_rows_count", "long", _Need.REQUIRED),
    _Field(514, "deleted_rows_count", "long", _Need.REQUIRED),
    _Field(507, "partitions", _list(508, {"type": "record", "name": "r508", "fields": [f.avro() for f in _SUMMARY]})),
    _Field(519, "key_metadata", "bytes"),
    _Field(520, "first_row_id", "long", versions=(3,)),
)
_PAIRS: Final = {
    number: name
    for pair in ((117, 118), (119, 120), (121, 122), (138, 139), (126, 127), (129, 130), (123, 124))
    for number, name in zip(pair, ("key", "value"), strict=True)
}


def file_fields(format_version: int) -> tuple[str, ...]:
    """Names of the fields of data_file, without the partition."""
    return tuple(f.name for f in _FILE if format_version in f.versions and f.id != _PARTITION_ID)


def entry_schema(schema: IcebergSchema, spec_id: int) -> Schema:
    """The schema of manifest_entry for this partition spec. Raises CorruptMetadata, RefusedTable."""
    partition = {"type": "record", "name": "r102", "fields": _partition_fields(schema, spec_id)}
    within = [f for f in _FILE if schema.format_version in f.versions]
    of_file = [
        _Field(f.id, f.name, partition, _Need.REQUIRED).avro() if f.id == _PARTITION_ID else f.avro() for f in within
    ]
    file = {"type": "record", "name": "r2", "fields": of_file}
    entry = [f for f in _ENTRY if schema.format_version in f.versions]
    fields = [_Field(f.id, f.name, file, _Need.REQUIRED).avro() if f.name == "data_file" else f.avro() for f in entry]
    return {"type": "record", "name": "manifest_entry", "fields": fields}


def entry_names(schema: IcebergSchema, spec_id: int) -> Names:
    """The keys of manifest records: the spec's names, and for partition fields the `partition_key` of the field id."""
    fields = schema.spec(spec_id).fields
    known = (f for f in (*_ENTRY, *_FILE) if f.id != _BLOCK_ID or schema.format_version == 1)
    by_id = {f.id: f.name for f in known} | _PAIRS
    by_name = {name: name for name in by_id.values()}
    by_name |= {sanitized(f.name): partition_key(f.field_id) for f in fields}
    return Names(by_id | {f.field_id: partition_key(f.field_id) for f in fields}, by_name)


def list_schema(format_version: int) -> Schema:
    """The schema of manifest_file, the record of manifest lists."""
    fields = [f.avro() for f in _LIST if format_version in f.versions]
    return {"type": "record", "name": "manifest_file", "fields": fields}


def list_names() -> Names:
    by_id = {f.id: f.name for f in (*_LIST, *_SUMMARY)}
    return Names(by_id, {name: name for name in by_id.values()})


def partition_key(field_id: int) -> str:
    return f"p{field_id}"


def partition_types(schema: IcebergSchema, spec_id: int) -> tuple[IcebergType, ...]:
    """The types of a spec's partition values, in the order of its fields: the result types of their transforms.

    UnknownType if no schema has the source column. Raises CorruptMetadata for a spec that the table does not have.
    """
    return tuple(_result_type(schema, f) for f in schema.spec(spec_id).fields)


def unwritten_type(schema: IcebergSchema, spec_id: int) -> RefusedTable | None:
    """The refusal to write manifests of a spec with values of type fixed; None for other specs.

    Iceberg Java and other engines encode these values differently (avro_fixed) and cannot read each other's manifests.
    """
    for kind in partition_types(schema, spec_id):
        if isinstance(kind, FixedType):
            feature = f"partition values of type {kind}, which engines write in two ways, are not handled"
            advice = (
                "partition by another column: Iceberg's Java writes such values as no Avro reader expects them; other "
                "partitions are maintained"
            )
            return RefusedTable(schema.table, feature, advice)
    return None


def sanitized(name: str) -> str:
    """A name that Avro allows, as Java makes it (AvroSchemaUtil.makeCompatibleName)."""
    # A leading digit gets an underscore before it; other characters become UTF-16 units in hexadecimal.
    start = "_" if re.match(r"[0-9]", name) else ""
    return start + re.sub(r"[^A-Za-z0-9_]", lambda match: _units(match[0]), name)


def _units(character: str) -> str:
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"_x{int.from_bytes(data[at : at + 2], 'big'):X}" for at in range(0, len(data), 2))


def _result_type(schema: IcebergSchema, field: PartitionField) -> IcebergType:
    try:
        source = schema.field(field.source_id).field_type
    except CorruptMetadata:
        return UnknownType()
    kind: IcebergType = field.transform.result_type(source)
    return kind


def _partition_fields(schema: IcebergSchema, spec_id: int) -> list[Schema]:
    """The schemas of a spec's partition fields, all optional. A named type is defined once, then named."""
    fields, defined = [], set[str]()
    if refusal := unwritten_type(schema, spec_id):
        raise refusal
    types = partition_types(schema, spec_id)
    for field, kind in zip(schema.spec(spec_id).fields, types, strict=True):
        avro = _avro_type(schema, kind)
        if isinstance(avro, dict) and "name" in avro:
            if avro["name"] in defined:
                avro = avro["name"]
            else:
                defined.add(avro["name"])
        avro_field = _optional(field.field_id, sanitized(field.name), avro)
        if avro_field["name"] != field.name:
            avro_field["iceberg-field-name"] = field.name
        fields.append(avro_field)
    return fields


def _avro_type(schema: IcebergSchema, kind: IcebergType) -> AvroType:
    if isinstance(kind, DecimalType):
        return {
            "type": "fixed",
            "name": f"decimal_{kind.precision}_{kind.scale}",
            "size": decimal_required_bytes(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if type(kind) not in _AVRO_TYPES:
        raise RefusedTable(schema.table, f"partition values of type {kind} are not handled", "partition by another")
    return _AVRO_TYPES[type(kind)]


def _timestamp(unit: str, adjusted: str) -> Schema:
    return {"type": "long", "logicalType": f"timestamp-{unit}", "adjust-to-utc": adjusted == "utc"}


_AVRO_TYPES: Final[Mapping[type[IcebergType], AvroType]] = {
    UnknownType: "null",
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    DateType: {"type": "int", "logicalType": "date"},
    TimeType: {"type": "long", "logicalType": "time-micros"},
    TimestampType: _timestamp("micros", "local"),
    TimestamptzType: _timestamp("micros", "utc"),
    TimestampNanoType: _timestamp("nanos", "local"),
    TimestamptzNanoType: _timestamp("nanos", "utc"),
    StringType: "string",
    UUIDType: {"type": "fixed", "name": "uuid_fixed", "size": 16, "logicalType": "uuid"},
    BinaryType: "bytes",
}
