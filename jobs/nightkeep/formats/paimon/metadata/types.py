"""Type text of a schema file -> PaimonType -> Arrow. Unknown types keep their text and are not guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

import pyarrow as pa

from nightkeep.model.json_values import JsonValue

# VarCharType.MAX_LENGTH and VarBinaryType.MAX_LENGTH: the lengths that STRING and BYTES stand for.
MAX_LENGTH: Final = 2**31 - 1
MAX_DECIMAL_PRECISION: Final = 38
MAX_TIME_PRECISION: Final = 9


class TypeRoot(Enum):
    """Paimon's type roots by their word in a schema file. OTHER is named only, not read."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    ARRAY = "ARRAY"
    MAP = "MAP"
    MULTISET = "MULTISET"
    ROW = "ROW"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class PaimonType:
    """One column type. str() is the text that Paimon writes.

    `precision` is set for DECIMAL, TIME and both timestamps, `scale` for DECIMAL, `length` (characters or bytes) for
    CHAR, VARCHAR, BINARY and VARBINARY, `text` (as it was written) for nested types and OTHER. `children` are the
    element of an ARRAY or MULTISET, key and value of a MAP, the fields of a ROW.
    """

    root: TypeRoot
    nullable: bool = True
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    text: str | None = None
    children: tuple[NestedField, ...] = ()

    @property
    def is_primitive(self) -> bool:
        """Whether values of this type have no parts, and can be held."""
        return self.root is not TypeRoot.OTHER and not self.is_nested

    @property
    def is_nested(self) -> bool:
        return self.root in _NESTED

    @property
    def leaves(self) -> tuple[PaimonType, ...]:
        """The type itself, or all types without parts within it."""
        return tuple(leaf for child in self.children for leaf in child.type.leaves) if self.is_nested else (self,)

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of the logical values; files may store another. Raises ValueError for OTHER."""
        fixed = _ARROW.get(self.root)
        if fixed is not None:
            return fixed
        if self.root is TypeRoot.DECIMAL:
            assert self.precision is not None and self.scale is not None
            return pa.decimal128(self.precision, self.scale)
        if self.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
            zone = "UTC" if self.root is TypeRoot.TIMESTAMP_LTZ else None
            return pa.timestamp(_unit(self.precision or 0), zone)
        if self.is_nested:
            return _nested_arrow(self)
        raise ValueError(f"{self}: expected a type that Arrow holds, found {self.root.value}")

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        return _sql(self) + ("" if self.nullable else " NOT NULL")


@dataclass(frozen=True, slots=True)
class NestedField:
    """A part of a nested type. Fields of a ROW have an `id`, which survives renames."""

    name: str
    type: PaimonType
    id: int | None = None


def parse_type(source: JsonValue) -> PaimonType:
    """The "type" of a schema field: text, or an object for ARRAY, MAP, MULTISET, ROW and VECTOR.

    Reads what DataTypeJsonParser reads. Unknown words give root OTHER, as do VECTOR and nested types as one text; a
    known word with parameters it cannot have raises ValueError.
    """
    if isinstance(source, str):
        return _parse_atomic(source)
    head = source.get("type") if isinstance(source, Mapping) else None
    if not isinstance(source, Mapping) or not isinstance(head, str):
        raise ValueError(f"{json.dumps(source)}: expected a type object with a text 'type', found {head!r}")
    word = head.split(" ")[0]
    nullable, text = "NOT NULL" not in head, json.dumps(source)
    if word not in _PARTS and word != TypeRoot.ROW.value:
        return PaimonType(TypeRoot.OTHER, nullable, text=text)
    return PaimonType(TypeRoot(word), nullable, text=text, children=_children(word, source))


def _children(word: str, source: Mapping[str, JsonValue]) -> tuple[NestedField, ...]:
    if word in _PARTS:
        return tuple(NestedField(part, parse_type(source.get(part))) for part in _PARTS[word])
    fields = source.get("fields")
    if not isinstance(fields, list):
        raise ValueError("expected a list of fields of a ROW")
    return tuple(_row_field(field) for field in fields)


def _row_field(field: JsonValue) -> NestedField:
    name, number = (field.get("name"), field.get("id")) if isinstance(field, Mapping) else (None, None)
    if not isinstance(field, Mapping) or not isinstance(name, str) or type(number) is not int:
        raise ValueError("expected fields of a ROW with names and ids")
    return NestedField(name, parse_type(field.get("type")), number)


def _nested_arrow(kind: PaimonType) -> pa.DataType:
    parts = [pa.field(child.name, child.type.arrow, nullable=child.type.nullable) for child in kind.children]
    match kind.root:
        case TypeRoot.ARRAY:
            return pa.list_(parts[0])
        case TypeRoot.MAP:
            return pa.map_(parts[0].with_nullable(nullable=False), parts[1])  # type: ignore[call-overload, no-any-return]
        case TypeRoot.MULTISET:
            # Each element with how often it is there.
            key = parts[0].with_name("key").with_nullable(nullable=False)
            return pa.map_(key, _COUNT)  # type: ignore[call-overload, no-any-return]
        case _:
            return pa.struct(parts)


_NESTED: Final = frozenset({TypeRoot.ARRAY, TypeRoot.MAP, TypeRoot.MULTISET, TypeRoot.ROW})
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "ARRAY": ("element",),
    "MULTISET": ("element",),
    "MAP": ("key", "value"),
}
_COUNT: Final = pa.field("value", pa.int32(), nullable=False)

_ARROW: Final[Mapping[TypeRoot, pa.DataType]] = {
    TypeRoot.BOOLEAN: pa.bool_(),
    TypeRoot.TINYINT: pa.int8(),
    TypeRoot.SMALLINT: pa.int16(),
    TypeRoot.INT: pa.int32(),
    TypeRoot.BIGINT: pa.int64(),
    TypeRoot.FLOAT: pa.float32(),
    TypeRoot.DOUBLE: pa.float64(),
    TypeRoot.CHAR: pa.string(),
    TypeRoot.VARCHAR: pa.string(),
    TypeRoot.BINARY: pa.binary(),
    TypeRoot.VARBINARY: pa.binary(),
    TypeRoot.DATE: pa.date32(),
    # TimeType: internal values are int milliseconds whatever the declared precision.
    TypeRoot.TIME: pa.time32("ms"),
}


def _unit(precision: int) -> Literal["ms", "us", "ns"]:
    if precision <= 3:
        return "ms"
    return "us" if precision <= 6 else "ns"


def _sql(kind: PaimonType) -> str:
    if kind.root is TypeRoot.DECIMAL:
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if kind.root is TypeRoot.TIMESTAMP_LTZ:
        return f"TIMESTAMP({kind.precision}) WITH LOCAL TIME ZONE"
    if kind.precision is not None:
        return f"{kind.root.value}({kind.precision})"
    if kind.length == MAX_LENGTH and kind.root in (TypeRoot.VARCHAR, TypeRoot.VARBINARY):
        return "STRING" if kind.root is TypeRoot.VARCHAR else "BYTES"
    return kind.root.value if kind.length is None else f"{kind.root.value}({kind.length})"


_PLAIN: Final[Mapping[str, TypeRoot]] = {
    **{root.value: root for root in _ARROW},
    "INTEGER": TypeRoot.INT,
    "DOUBLE PRECISION": TypeRoot.DOUBLE,
}
_DECIMAL: Final = frozenset({"DECIMAL", "NUMERIC", "DEC"})
_LENGTHS: Final[Mapping[str, TypeRoot]] = {
    "CHAR": TypeRoot.CHAR,
    "VARCHAR": TypeRoot.VARCHAR,
    "BINARY": TypeRoot.BINARY,
    "VARBINARY": TypeRoot.VARBINARY,
}
_UNBOUNDED: Final[Mapping[str, TypeRoot]] = {"STRING": TypeRoot.VARCHAR, "BYTES": TypeRoot.VARBINARY}
# Word -> (root, default precision): TimeType, TimestampType, LocalZonedTimestampType.DEFAULT_PRECISION.
_TIMES: Final[Mapping[str, tuple[TypeRoot, int]]] = {
    "TIME": (TypeRoot.TIME, 0),
    "TIME WITHOUT TIME ZONE": (TypeRoot.TIME, 0),
    "TIMESTAMP": (TypeRoot.TIMESTAMP, 6),
    "TIMESTAMP WITHOUT TIME ZONE": (TypeRoot.TIMESTAMP, 6),
    "TIMESTAMP WITH LOCAL TIME ZONE": (TypeRoot.TIMESTAMP_LTZ, 6),
    "TIMESTAMP_LTZ": (TypeRoot.TIMESTAMP_LTZ, 6),
}

_NULLABILITY: Final = re.compile(r"^(?P<type>.*?)(?P<null>(?:\s+NOT)?\s+NULL)?$", re.DOTALL)
_PARAMETERS: Final = re.compile(r"^(?P<word>\w+)\s*(?:\((?P<numbers>[\d\s,]*)\))?(?P<rest>[\sA-Z]*)$")


def _parse_atomic(text: str) -> PaimonType:
    split = _NULLABILITY.match(" ".join(text.upper().split()))
    assert split is not None
    nullable = split["null"] is None or "NOT" not in split["null"]
    shape = _PARAMETERS.match(split["type"])
    if shape is None:
        return PaimonType(TypeRoot.OTHER, nullable, text=text)
    word = " ".join(f"{shape['word']} {shape['rest']}".split())
    numbers = None if shape["numbers"] is None else _integers(text, shape["numbers"])
    return _known(text, word, numbers, nullable=nullable)


def _integers(text: str, listed: str) -> tuple[int, ...]:
    items = [item.strip() for item in listed.split(",")]
    if not all(item.isdecimal() for item in items):
        raise ValueError(f"type {text!r}: expected whole numbers between parentheses, found {listed!r}")
    return tuple(int(item) for item in items)


def _known(text: str, word: str, numbers: tuple[int, ...] | None, *, nullable: bool) -> PaimonType:
    if word in _UNBOUNDED and numbers is None:
        return PaimonType(_UNBOUNDED[word], nullable, length=MAX_LENGTH)
    if word in _LENGTHS:
        (length,) = _checked(text, numbers or (1,), (1, MAX_LENGTH))
        return PaimonType(_LENGTHS[word], nullable, length=length)
    if word in _DECIMAL:
        return _decimal(text, numbers or (10, 0), nullable=nullable)
    if word in _TIMES:
        root, default = _TIMES[word]
        (precision,) = _checked(text, numbers or (default,), (0, MAX_TIME_PRECISION))
        return PaimonType(root, nullable, precision=precision)
    if word in _PLAIN and numbers is None:
        return PaimonType(_PLAIN[word], nullable)
    return PaimonType(TypeRoot.OTHER, nullable, text=text)


def _decimal(text: str, numbers: tuple[int, ...], *, nullable: bool) -> PaimonType:
    padded = numbers if len(numbers) > 1 else (*numbers, 0)
    bounds = ((1, MAX_DECIMAL_PRECISION), (0, padded[0]))
    precision, scale = _checked(text, padded, *bounds)
    return PaimonType(TypeRoot.DECIMAL, nullable, precision=precision, scale=scale)


def _checked(text: str, numbers: tuple[int, ...], *bounds: tuple[int, int]) -> tuple[int, ...]:
    if len(numbers) != len(bounds):
        raise ValueError(f"type {text!r}: expected {len(bounds)} parameters, found {len(numbers)}")
    for number, (low, high) in zip(numbers, bounds, strict=True):
        if not low <= number <= high:
            raise ValueError(f"type {text!r}: expected a parameter from {low} to {high}, found {number}")
    return numbers
