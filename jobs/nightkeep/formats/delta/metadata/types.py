"""Type JSON of a schema string -> Arrow, with logical names or with physical ones.

PROTOCOL.md, "Schema Serialization Format".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import pyarrow as pa

from nightkeep.errors import CorruptMetadata, RefusedTable, kind_of
from nightkeep.model.arrow_types import FIELD_ID
from nightkeep.model.variant_type import VARIANT

MAX_PRECISION: Final = 38


Naming = Callable[[Mapping[str, object]], tuple[str, int | None]]
"""A struct field's JSON -> its name and its Parquet field id."""


def arrow_type(kind: object, naming: Naming, *, subject: str) -> pa.DataType:
    """The type of a column's values. `naming` gives the names of nested fields.

    Everything nested is nullable except the keys of a map, because data files need not repeat the schema's promises.
    Raises CorruptMetadata, and RefusedTable (naming `subject`) for types that we do not handle.
    """
    if isinstance(kind, str):
        return _primitive(kind, subject)
    if isinstance(kind, dict) and isinstance(kind.get("type"), str):
        build = _NESTED.get(kind["type"])
        if build is not None:
            return build(kind, naming, subject)
        raise _unknown(kind["type"], subject)
    raise CorruptMetadata(subject, "a type's name or object", kind_of(kind))


def struct_fields(kind: Mapping[str, object], *, subject: str) -> list[Mapping[str, object]]:
    """The fields' JSON of a struct. Each has a name and an object of metadata. Raises CorruptMetadata."""
    fields = kind.get("fields")
    if not isinstance(fields, list):
        raise CorruptMetadata(subject, "the fields of a struct", kind_of(fields))
    for field in fields:
        if not (isinstance(field, dict) and isinstance(field.get("name"), str) and "type" in field):
            raise CorruptMetadata(subject, "fields with a name and a type", kind_of(field))
        if not isinstance(field.get("metadata") or {}, dict):
            raise CorruptMetadata(f"{subject}: {field['name']}", "an object of metadata", kind_of(field["metadata"]))
    names = [str(field["name"]) for field in fields]
    require_once(names, subject=subject, what="name")
    cases = Counter(map(str.lower, names))
    for name in names:
        if cases[name.lower()] > 1:
            feature = f"column {name}: its name differs from another's only in case"
            raise RefusedTable(subject, feature, "rename one of the columns")
    return fields


def require_once(values: Iterable[object], *, subject: str, what: str) -> None:
    """Raises CorruptMetadata for a name or id that two fields have."""
    for value, count in Counter(values).items():
        if count > 1:
            raise CorruptMetadata(subject, f"one field of each {what}", f"{value} twice")


def widens(old: object, new: object) -> bool:
    """Whether a column of type `new` may have data files with type `old` (PROTOCOL.md, "Type Widening")."""
    if not (isinstance(old, str) and isinstance(new, str)):
        return False
    if new in _WIDER.get(old, ()):
        return True
    target = _DECIMAL.fullmatch(new)
    if not target:
        return False
    precision, scale = int(target[1]), int(target[2])
    source = _DECIMAL.fullmatch(old)
    digits, kept = (int(source[1]), int(source[2])) if source else (_DIGITS.get(old, MAX_PRECISION + 1), 0)
    return scale >= kept and precision - digits >= scale - kept


def _primitive(name: str, subject: str) -> pa.DataType:
    primitive = _PRIMITIVES.get(name)
    if primitive is not None:
        return primitive
    decimal = _DECIMAL.fullmatch(name)
    if decimal is None:
        raise _unknown(name, subject)
    precision, scale = int(decimal[1]), int(decimal[2])
    if not 0 < precision <= MAX_PRECISION or scale > precision:
        raise CorruptMetadata(subject, "a decimal of 1 to 38 digits", name)
    return pa.decimal128(precision, scale)


def _struct(kind: Mapping[str, object], naming: Naming, subject: str) -> pa.DataType:
    fields = []
    for field in struct_fields(kind, subject=subject):
        name, number = naming(field)
        metadata = None if number is None else {FIELD_ID: str(number).encode()}
        inner = arrow_type(field["type"], naming, subject=f"{subject}.{field['name']}")
        fields.append(pa.field(name, inner, metadata=metadata))
    require_once((field.name for field in fields), subject=subject, what="physical name")
    return pa.struct(fields)


def _array(kind: Mapping[str, object], naming: Naming, subject: str) -> pa.DataType:
    return pa.list_(pa.field("element", arrow_type(kind.get("elementType"), naming, subject=f"{subject}.element")))


def _map(kind: Mapping[str, object], naming: Naming, subject: str) -> pa.DataType:
    key = arrow_type(kind.get("keyType"), naming, subject=f"{subject}.key")
    return pa.map_(key, arrow_type(kind.get("valueType"), naming, subject=f"{subject}.value"))


def _unknown(name: str, subject: str) -> RefusedTable:
    reason = next((why for start, why in _REFUSED.items() if name.startswith(start)), "is unknown")
    return RefusedTable(subject, f"type {name[:80]} {reason}", "use the engine's own OPTIMIZE for this table")


_NESTED: Final = {"struct": _struct, "array": _array, "map": _map}
_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "variant": VARIANT,
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    # Spark's name for void in schemas of old tables.
    "null": pa.null(),
    "decimal": pa.decimal128(10, 0),
}
_DECIMAL: Final = re.compile(r"decimal\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)")
_REFUSED: Final[Mapping[str, str]] = {
    "geometry": "(geospatial) is not handled",
    "geography": "(geospatial) is not handled",
    "string collate": "(a collation) is not handled: its order is not that of bytes",
    "varchar": "is not handled: the protocol has it as string",
    "char": "is not handled: the protocol has it as string",
    "interval": "is not handled",
    "udt": "(user-defined) is not handled",
}
_WIDER: Final[Mapping[str, frozenset[str]]] = {
    "byte": frozenset({"short", "integer", "long", "double"}),
    "short": frozenset({"integer", "long", "double"}),
    "integer": frozenset({"long", "double"}),
    "float": frozenset({"double"}),
    "date": frozenset({"timestamp_ntz"}),
}
_DIGITS: Final[Mapping[str, int]] = {"byte": 10, "short": 10, "integer": 10, "long": 20}
