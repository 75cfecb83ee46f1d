"""Type text of a schema file -> PaimonType -> Arrow. Unknown types keep their text and are not guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
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
    """Paimon's type roots by their word in a schema file. NESTED and OTHER are named only, not read."""

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
    NESTED = "NESTED"
    OTHER = "OTHER"


@dataclass(frozen=True, slots=True)
class PaimonType:
    """One column type. str() is the text that Paimon writes.

    `precision` is set for DECIMAL, TIME and both timestamps, `scale` for DECIMAL, `length` (characters or bytes) for
    CHAR, VARCHAR, BINARY and VARBINARY, `text` (as it was written) for NESTED and OTHER.
    """

    root: TypeRoot
    nullable: bool = True
    precision: int | None = None
    scale: int | None = None
    length: int | None = None
    text: str | None = None

    @property
    def is_primitive(self) -> bool:
        """Whether this library can hold a value of this type."""
        return self.root not in (TypeRoot.NESTED, TypeRoot.OTHER)

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of the logical values; files may store another. Raises ValueError for NESTED and OTHER."""
        fixed = _ARROW.get(self.root)
        if fixed is not None:
            return fixed
        if self.root is TypeRoot.DECIMAL:
            assert self.precision is not None and self.scale is not None
            return pa.decimal128(self.precision, self.scale)
        if self.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
            zone = "UTC" if self.root is TypeRoot.TIMESTAMP_LTZ else None
            return pa.timestamp(_unit(self.precision or 0), zone)
        raise ValueError(f"{self}: expected a primitive type to map to Arrow, found {self.root.value}")

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        return _sql(self) + ("" if self.nullable else " NOT NULL")


def parse_type(source: JsonValue) -> PaimonType:
    """The "type" of a schema field: text, or an object for ARRAY, MAP, MULTISET, ROW and VECTOR.

    Reads what DataTypeJsonParser reads. Unknown words give root OTHER, constructed types NESTED; a known word
    with parameters it cannot have raises ValueError.
    """
    if isinstance(source, str):
        return _parse_atomic(source)
    head = source.get("type") if isinstance(source, Mapping) else None
    if not isinstance(head, str):
        raise ValueError(f"{json.dumps(source)}: expected a type object with a text 'type', found {head!r}")
    root = TypeRoot.NESTED if head.split(" ")[0] in _CONSTRUCTED else TypeRoot.OTHER
    return PaimonType(root, nullable="NOT NULL" not in head, text=json.dumps(source))


def evolves(old: PaimonType, new: PaimonType) -> pa.DataType | None:
    """The Arrow type to cast to for a file written when the column was `old`; the column is now `new`. None if unsafe.

    `old.arrow` values cast with pyarrow (safe=True) to the result are the values that Paimon's readers show. Only
    lossless changes are listed; Paimon allows many more (CastExecutors).
    """
    if not (old.is_primitive and new.is_primitive) or (old.nullable and not new.nullable):
        return None
    return new.arrow if _widens(old, new) else None


_CONSTRUCTED: Final = frozenset({"ARRAY", "MAP", "MULTISET", "ROW", "VECTOR"})

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
        nested = re.match(r"\w*", split["type"])
        return _unreadable(text, nested[0] if nested else "", nullable=nullable)
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
    return _unreadable(text, word, nullable=nullable)


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


def _unreadable(text: str, word: str, *, nullable: bool) -> PaimonType:
    # "INT ARRAY" is the suffix notation of ARRAY<INT>.
    nested = _CONSTRUCTED.intersection(word.split())
    return PaimonType(TypeRoot.NESTED if nested else TypeRoot.OTHER, nullable, text=text)


# Digits that hold every value of the integer type.
_INTEGER_DIGITS: Final[Mapping[TypeRoot, int]] = {
    TypeRoot.TINYINT: 3,
    TypeRoot.SMALLINT: 5,
    TypeRoot.INT: 10,
    TypeRoot.BIGINT: 19,
}


def _widens(old: PaimonType, new: PaimonType) -> bool:
    if old.root in _INTEGER_DIGITS:
        return _integer_widens(old, new)
    rule = _WIDENING.get((old.root, new.root))
    return rule is not None and rule(old, new)


def _integer_widens(old: PaimonType, new: PaimonType) -> bool:
    digits = _INTEGER_DIGITS[old.root]
    if new.root is TypeRoot.DECIMAL:
        return _whole_digits(new) >= digits
    return _INTEGER_DIGITS.get(new.root, 0) >= digits


def _whole_digits(kind: PaimonType) -> int:
    return (kind.precision or 0) - (kind.scale or 0)


def _always(old: PaimonType, new: PaimonType) -> bool:
    return True


def _not_shorter(old: PaimonType, new: PaimonType) -> bool:
    return (new.length or 0) >= (old.length or 0)


def _same_length(old: PaimonType, new: PaimonType) -> bool:
    # A longer CHAR or BINARY pads on reading (BinaryStringUtils), which a cast does not.
    return new.length == old.length


def _not_coarser(old: PaimonType, new: PaimonType) -> bool:
    return (new.precision or 0) >= (old.precision or 0)


def _wider_decimal(old: PaimonType, new: PaimonType) -> bool:
    return (new.scale or 0) >= (old.scale or 0) and _whole_digits(new) >= _whole_digits(old)


_Rule = Callable[[PaimonType, PaimonType], bool]
_WIDENING: Final[Mapping[tuple[TypeRoot, TypeRoot], _Rule]] = {
    **{(root, root): _always for root in (TypeRoot.BOOLEAN, TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.DATE)},
    (TypeRoot.FLOAT, TypeRoot.DOUBLE): _always,
    (TypeRoot.DECIMAL, TypeRoot.DECIMAL): _wider_decimal,
    (TypeRoot.CHAR, TypeRoot.CHAR): _same_length,
    (TypeRoot.CHAR, TypeRoot.VARCHAR): _not_shorter,
    (TypeRoot.VARCHAR, TypeRoot.VARCHAR): _not_shorter,
    (TypeRoot.BINARY, TypeRoot.BINARY): _same_length,
    (TypeRoot.BINARY, TypeRoot.VARBINARY): _not_shorter,
    (TypeRoot.VARBINARY, TypeRoot.VARBINARY): _not_shorter,
    (TypeRoot.TIME, TypeRoot.TIME): _not_coarser,
    (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP): _not_coarser,
    (TypeRoot.TIMESTAMP_LTZ, TypeRoot.TIMESTAMP_LTZ): _not_coarser,
}
