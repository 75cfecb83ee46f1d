"""Type text: what Paimon writes is read, what we cannot read keeps its name, casts lose nothing."""

import decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from nightkeep.formats.paimon.metadata.type_changes import evolves
from nightkeep.formats.paimon.metadata.types import MAX_LENGTH, PaimonType, TypeRoot, parse_type

READ = {
    "BIGINT NOT NULL": (PaimonType(TypeRoot.BIGINT, nullable=False), pa.int64()),
    "TINYINT": (PaimonType(TypeRoot.TINYINT), pa.int8()),
    "SMALLINT": (PaimonType(TypeRoot.SMALLINT), pa.int16()),
    "INT": (PaimonType(TypeRoot.INT), pa.int32()),
    "BOOLEAN": (PaimonType(TypeRoot.BOOLEAN), pa.bool_()),
    "FLOAT": (PaimonType(TypeRoot.FLOAT), pa.float32()),
    "DOUBLE": (PaimonType(TypeRoot.DOUBLE), pa.float64()),
    "DATE": (PaimonType(TypeRoot.DATE), pa.date32()),
    "DECIMAL(12, 2)": (PaimonType(TypeRoot.DECIMAL, precision=12, scale=2), pa.decimal128(12, 2)),
    "TIME(3)": (PaimonType(TypeRoot.TIME, precision=3), pa.time32("ms")),
    "TIMESTAMP(0)": (PaimonType(TypeRoot.TIMESTAMP, precision=0), pa.timestamp("ms")),
    "TIMESTAMP(3)": (PaimonType(TypeRoot.TIMESTAMP, precision=3), pa.timestamp("ms")),
    "TIMESTAMP(6)": (PaimonType(TypeRoot.TIMESTAMP, precision=6), pa.timestamp("us")),
    "TIMESTAMP(9) NOT NULL": (PaimonType(TypeRoot.TIMESTAMP, nullable=False, precision=9), pa.timestamp("ns")),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": (PaimonType(TypeRoot.TIMESTAMP_LTZ, precision=3), pa.timestamp("ms", "UTC")),
    "VARCHAR(20)": (PaimonType(TypeRoot.VARCHAR, length=20), pa.string()),
    "STRING": (PaimonType(TypeRoot.VARCHAR, length=MAX_LENGTH), pa.string()),
    "CHAR(3)": (PaimonType(TypeRoot.CHAR, length=3), pa.string()),
    "BYTES NOT NULL": (PaimonType(TypeRoot.VARBINARY, nullable=False, length=MAX_LENGTH), pa.binary()),
    "VARBINARY(10)": (PaimonType(TypeRoot.VARBINARY, length=10), pa.binary()),
    "BINARY(4)": (PaimonType(TypeRoot.BINARY, length=4), pa.binary()),
}

# Other spellings DataTypeJsonParser takes.
ALIASES = {
    "INTEGER": "INT",
    "NUMERIC(5)": "DECIMAL(5, 0)",
    "DEC": "DECIMAL(10, 0)",
    "decimal(5,2)": "DECIMAL(5, 2)",
    "DOUBLE PRECISION": "DOUBLE",
    "TIME": "TIME(0)",
    "TIME(2) WITHOUT TIME ZONE": "TIME(2)",
    "TIMESTAMP": "TIMESTAMP(6)",
    "TIMESTAMP(3) WITHOUT TIME ZONE": "TIMESTAMP(3)",
    "TIMESTAMP_LTZ(9)": "TIMESTAMP(9) WITH LOCAL TIME ZONE",
    "VARCHAR": "VARCHAR(1)",
    "INT NULL": "INT",
}


@pytest.mark.parametrize("text", READ)
def test_types_as_paimon_writes_them(text: str) -> None:
    expected, arrow = READ[text]
    assert parse_type(text) == expected
    assert parse_type(text).arrow == arrow
    assert parse_type(text).is_primitive
    assert str(parse_type(text)) == text


@pytest.mark.parametrize("text", ALIASES)
def test_other_spellings(text: str) -> None:
    assert str(parse_type(text)) == ALIASES[text]


@pytest.mark.parametrize(
    ("source", "root", "nullable"),
    [
        ({"type": "VECTOR", "element": "FLOAT", "length": 3}, TypeRoot.OTHER, True),
        ({"type": "SHAPE", "sides": 3}, TypeRoot.OTHER, True),
        ("ARRAY<INT> NOT NULL", TypeRoot.OTHER, False),
        ("INT ARRAY", TypeRoot.OTHER, True),
        ("VARIANT", TypeRoot.OTHER, True),
        ("BLOB NOT NULL", TypeRoot.OTHER, False),
        ("INTERVAL DAY TO SECOND", TypeRoot.OTHER, True),
        ("INT(3)", TypeRoot.OTHER, True),
        ("", TypeRoot.OTHER, True),
        ("'", TypeRoot.OTHER, True),
    ],
)
def test_what_we_cannot_hold_keeps_its_text(source: object, root: TypeRoot, nullable: bool) -> None:
    kind = parse_type(source)  # type: ignore[arg-type]
    assert (kind.root, kind.nullable, kind.is_primitive) == (root, nullable, False)
    assert str(kind) == source or all(str(item) in str(kind) for item in dict(source))  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="expected a type that Arrow holds"):
        _ = kind.arrow


NESTED = [
    ({"type": "ARRAY NOT NULL", "element": "INT"}, TypeRoot.ARRAY, pa.list_(pa.field("element", pa.int32()))),
    (
        {"type": "MAP", "key": "STRING", "value": "INT NOT NULL"},
        TypeRoot.MAP,
        pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)),
    ),
    (
        {"type": "ROW", "fields": [{"id": 3, "name": "a", "type": {"type": "ARRAY", "element": "DATE"}}]},
        TypeRoot.ROW,
        pa.struct([pa.field("a", pa.list_(pa.field("element", pa.date32())))]),
    ),
    (
        {"type": "MULTISET", "element": "STRING NOT NULL"},
        TypeRoot.MULTISET,
        pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)),
    ),
]


@pytest.mark.parametrize(("source", "root", "arrow"), NESTED)
def test_nested_types_have_parts(source: Any, root: TypeRoot, arrow: pa.DataType) -> None:
    kind = parse_type(source)
    assert (kind.root, kind.is_nested, kind.is_primitive, kind.nullable) == (
        root,
        True,
        False,
        "NOT" not in str(source["type"]),
    )
    assert kind.arrow == arrow
    assert all(not leaf.is_nested for leaf in kind.leaves)


@pytest.mark.parametrize(
    "source",
    [
        {"type": "ARRAY"},
        {"type": "ROW"},
        {"type": "ROW", "fields": [1]},
        {"type": "MAP", "key": "INT"},
        {"type": "ROW", "fields": [{"id": "3", "name": "a", "type": "INT"}]},
    ],
)
def test_nested_types_without_their_parts_are_errors(source: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_type(source)


@pytest.mark.parametrize(
    "text",
    [
        "DECIMAL(39, 0)",
        "DECIMAL(0)",
        "DECIMAL(5, 6)",
        "DECIMAL(1, 2, 3)",
        "TIMESTAMP(10)",
        "CHAR(0)",
        "VARCHAR()",
        "TIME(1, 2)",
        "VARCHAR(2147483648)",
    ],
)
def test_impossible_parameters_are_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected .*, found"):
        parse_type(text)


WIDENS = [
    ("TINYINT", "SMALLINT", 127),
    ("SMALLINT", "INT", -(2**15)),
    ("INT", "BIGINT", 2**31 - 1),
    ("INT", "INT", 5),
    ("INT", "DECIMAL(10, 0)", -(2**31)),
    ("BIGINT", "DECIMAL(21, 2)", 2**63 - 1),
    ("FLOAT", "DOUBLE", 1.5),
    ("DECIMAL(5, 2)", "DECIMAL(9, 4)", decimal.Decimal("-999.99")),
    ("CHAR(3)", "STRING", "abc"),
    ("VARCHAR(3)", "VARCHAR(4)", "abc"),
    ("BINARY(3)", "VARBINARY(3)", b"abc"),
    ("VARBINARY(3)", "BYTES", b"abc"),
    ("INT NOT NULL", "BIGINT", 5),
]


@pytest.mark.parametrize(("old", "new", "value"), WIDENS)
def test_widening_keeps_the_value(old: str, new: str, value: object) -> None:
    before, after = parse_type(old), parse_type(new)
    target = evolves(before, after)
    assert target == after.arrow
    assert pc.cast(pa.array([value, None], before.arrow), target).to_pylist() == [value, None]


@pytest.mark.parametrize("zone", ["", " WITH LOCAL TIME ZONE"])
def test_timestamps_widen_without_moving(zone: str) -> None:
    before, after = parse_type(f"TIMESTAMP(3){zone}"), parse_type(f"TIMESTAMP(9){zone}")
    moved = pc.cast(pa.array([-1_500, 1_704_164_645_123], before.arrow), evolves(before, after))
    assert moved.cast(pa.int64()).to_pylist() == [-1_500_000_000, 1_704_164_645_123_000_000]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BIGINT", "INT"),
        ("INT", "STRING"),
        ("STRING", "INT"),
        ("DOUBLE", "FLOAT"),
        ("INT", "DOUBLE"),
        ("INT", "DECIMAL(9, 0)"),
        ("INT", "DECIMAL(10, 1)"),
        ("DECIMAL(9, 4)", "DECIMAL(9, 2)"),
        ("DECIMAL(9, 2)", "DECIMAL(9, 4)"),
        ("DECIMAL(9, 0)", "BIGINT"),
        ("VARCHAR(4)", "VARCHAR(3)"),
        ("CHAR(3)", "CHAR(4)"),
        ("VARCHAR(3)", "CHAR(3)"),
        ("BINARY(3)", "BINARY(4)"),
        ("BYTES", "STRING"),
        ("TIMESTAMP(6)", "TIMESTAMP(3)"),
        ("TIMESTAMP(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("DATE", "TIMESTAMP(3)"),
        ("TIME(3)", "TIME(0)"),
        ("BOOLEAN", "INT"),
        ("INT", "INT NOT NULL"),
        ("VARIANT", "VARIANT"),
        ("INT", "BLOB"),
    ],
)
def test_everything_else_is_not_vouched_for(old: str, new: str) -> None:
    assert evolves(parse_type(old), parse_type(new)) is None
