"""Record schema of an Avro file -> its columns as Arrow fields with field ids, and the schema that Polars decodes with.

Polars reads no map, which is stored as an array of entries is, and knows fewer meanings of numbers and bytes than Avro:
it gets them without a meaning, and names of types that are distinct. Field ids are the attributes of Iceberg's files
(Iceberg table spec, Appendix A, "Avro"); other files have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, cast

import pyarrow as pa

from nightkeep.encodings.avro_schemas import PRIMITIVES, AvroType, Schema, type_names
from nightkeep.encodings.nested_values import map_of
from nightkeep.errors import RefusedTable
from nightkeep.model.arrow_types import FIELD_ID, ArrowField


@dataclass(frozen=True, slots=True)
class AvroColumnTypes:
    """The columns in order, and the record to decode them with, whose fields are named by their ordinals. It has no
    columns of type null."""

    fields: tuple[ArrowField, ...]
    plain: Schema


def column_types(record: Schema, *, subject: str) -> AvroColumnTypes:
    """`record` is of a schema that has a shape (avro_schemas). Raises RefusedTable for a type that is not decoded."""
    parse = _Parse(subject)
    fields = [parse.column(field) for field in record["fields"]]
    # A null takes no byte: the schema that Polars gets has no such column.
    plain = [{"name": str(place), "type": plain} for place, (plain, _) in enumerate(fields) if plain != "null"]
    return AvroColumnTypes(
        tuple(field for _, field in fields), {"type": "record", "name": parse.name(), "fields": plain}
    )


class _Parse:
    """The named types met so far: a type may be named again where it is written out once."""

    def __init__(self, subject: str) -> None:
        self._subject, self._known, self._numbers = subject, dict[str, Schema](), count()

    def name(self) -> str:
        return f"r{next(self._numbers)}"

    def column(self, field: Schema) -> tuple[AvroType, ArrowField]:
        """As `field`, of a column, which may be of nulls alone."""
        if field["type"] == "null":
            return "null", _field(str(field["name"]), pa.null(), field.get("field-id"), nullable=True)
        return self.field(field)

    def field(self, field: Schema) -> tuple[AvroType, ArrowField]:
        plain, kind, nullable = self._optional(field["type"])
        return plain, _field(str(field["name"]), kind, field.get("field-id"), nullable=nullable)

    def _optional(self, kind: AvroType) -> tuple[AvroType, pa.DataType, bool]:
        if not isinstance(kind, list):
            return *self._type(kind), False
        others = [branch for branch in kind if branch != "null"]
        if len(kind) != 2 or len(others) != 1:
            raise self._refused("a union of several types")
        plain, arrow = self._type(others[0])
        return [branch if branch == "null" else plain for branch in kind], arrow, True

    def _type(self, kind: AvroType) -> tuple[AvroType, pa.DataType]:
        if isinstance(kind, str):
            return self._type(self._known[kind]) if kind not in PRIMITIVES else self._primitive({"type": kind})
        if isinstance(kind, list):
            raise self._refused("a union within a union")
        match kind["type"]:
            case "record":
                return self._record(kind)
            case "array":
                return self._array(kind)
            case "map":
                return self._map(kind)
            case "fixed":
                return self._fixed(kind)
            case "enum":
                raise self._refused("an enum")
            case inner:
                return self._primitive(kind) if inner in PRIMITIVES else self._type(inner)

    def _record(self, kind: Schema) -> tuple[AvroType, pa.DataType]:
        self._known |= dict.fromkeys(type_names(kind), kind)
        fields = [self.field(field) for field in kind["fields"]]
        if not fields:
            raise self._refused("a record without fields")
        plain = [{"name": str(place), "type": plain} for place, (plain, _) in enumerate(fields)]
        return {"type": "record", "name": self.name(), "fields": plain}, pa.struct([field for _, field in fields])

    def _array(self, kind: Schema) -> tuple[AvroType, pa.DataType]:
        items, element, nullable = self._optional(kind["items"])
        plain: AvroType = {"type": "array", "items": items}
        if kind.get("logicalType") == "map" and isinstance(element, pa.StructType) and element.num_fields == 2:
            return plain, map_of(element.field(0).with_nullable(nullable=False), element.field(1))
        return plain, pa.list_(_field("element", element, kind.get("element-id"), nullable=nullable))

    def _map(self, kind: Schema) -> tuple[AvroType, pa.DataType]:
        values, value, nullable = self._optional(kind["values"])
        fields = [{"name": "0", "type": "string"}, {"name": "1", "type": values}]
        plain: AvroType = {"type": "array", "items": {"type": "record", "name": self.name(), "fields": fields}}
        return plain, map_of(
            _field("key", pa.string(), kind.get("key-id"), nullable=False),
            _field("value", value, kind.get("value-id"), nullable=nullable),
        )

    def _primitive(self, kind: Schema) -> tuple[AvroType, pa.DataType]:
        name, logical = kind["type"], kind.get("logicalType")
        if name == "null":
            raise self._refused("a nested field of nulls alone")
        if logical == "decimal" and name == "bytes":
            return name, self._decimal(kind)
        arrow = _LOGICAL.get((name, str(logical)), _PLAIN[name])
        if pa.types.is_timestamp(arrow) and kind.get("adjust-to-utc") is True:
            arrow = pa.timestamp(cast(Any, arrow).unit, "UTC")
        return name, arrow

    def _fixed(self, kind: Schema) -> tuple[AvroType, pa.DataType]:
        self._known |= dict.fromkeys(type_names(kind), kind)
        plain: AvroType = {"type": "fixed", "name": self.name(), "size": kind["size"]}
        return plain, self._decimal(kind) if kind.get("logicalType") == "decimal" else pa.binary(kind["size"])

    def _decimal(self, kind: Schema) -> pa.DataType:
        precision, scale = kind.get("precision"), kind.get("scale", 0)
        if (
            type(precision) is not int
            or type(scale) is not int
            or not 0 <= scale <= precision <= _DIGITS
            or not precision
        ):
            raise self._refused(f"decimals of more than {_DIGITS} digits")
        return pa.decimal128(precision, scale)

    def _refused(self, what: str) -> RefusedTable:
        advice = "rewrite it with the engine that wrote it, as Parquet"
        return RefusedTable(self._subject, f"{what} in an Avro file is not handled", advice)


def _field(name: str, kind: pa.DataType, number: object, *, nullable: bool) -> ArrowField:
    metadata: Any = {FIELD_ID: str(number).encode()} if type(number) is int else None
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


_DIGITS: Final = 38
_PLAIN: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[Mapping[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    **{
        ("long", f"{local}timestamp-{name}"): kind
        for local in ("", "local-")
        for name, kind in (
            ("millis", pa.timestamp("ms")),
            ("micros", pa.timestamp("us")),
            ("nanos", pa.timestamp("ns")),
        )
    },
}
"""Meanings of numbers. A number with another one is a number."""
