"""What manifests say of columns, as arrays: bounds of every kind of type, and what nobody told."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.formats.iceberg.content_made import file_of, schema_of

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.conversions import to_bytes
from nightkeep.formats.iceberg.metadata.leaf_columns import leaves
from nightkeep.formats.iceberg.rewrite.file_bounds import file_bounds
from nightkeep.kernels.skipping import FileBounds


def bounds(kind: Any, files: list[dict[str, Any]], rows: int = 10) -> FileBounds:
    (found,) = file_bounds(
        [file_of(f"f{n}", rows=rows, raw=raw) for n, raw in enumerate(files)], leaves(schema_of([("c", kind)]))
    ).values()
    return found


def told(kind: str, low: Any, high: Any, nulls: int | None = 0) -> dict[str, Any]:
    (leaf,) = leaves(schema_of([("c", kind)]))
    ends = {
        name: {1: to_bytes(leaf.field.field_type, end)} for name, end in (("lower_bounds", low), ("upper_bounds", high))
    }
    return ends if nulls is None else {**ends, "null_value_counts": {1: nulls}}


@pytest.mark.parametrize(
    ("kind", "low", "high", "expected"),
    [
        ("int", -3, 7, (-3, 7)),
        ("double", -0.5, 2.5, (-0.5, 2.5)),
        ("string", "a", "b", ("a", "b")),
        ("fixed[4]", b"abcd", b"abce", (b"abcd", b"abce")),
        ("date", 0, 1, (date(1970, 1, 1), date(1970, 1, 2))),
        ("timestamp", 0, 10**6, (datetime(1970, 1, 1), datetime(1970, 1, 1, 0, 0, 1))),
    ],
)
def test_bounds_are_values_of_the_column(kind: str, low: Any, high: Any, expected: tuple[Any, Any]) -> None:
    found = bounds(kind, [told(kind, low, high)])
    assert (found.lows.to_pylist(), found.highs.to_pylist()) == ([expected[0]], [expected[1]])


def test_bounds_of_fixed_are_binary() -> None:
    assert pa.types.is_binary(bounds("fixed[4]", [told("fixed[4]", b"abcd", b"abce")]).lows.type)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("int", b"ab"),
        ("long", b""),
        ("double", b"abc"),
        ("boolean", b"ab"),
        # A large vendor cuts texts after 31 bytes.
        ("string", "a\u00e4".encode()[:2]),
        ("date", b"abcdefgh"),
        ("timestamp", b"abcd"),
        ("time", (10**17).to_bytes(8, "little")),
        ("decimal(4, 2)", (10**20).to_bytes(10, "big")),
        ("decimal(4, 2)", b""),
    ],
)
def test_a_bound_that_is_no_value_may_be_anything(kind: str, data: bytes) -> None:
    """In its file alone: bounds of other files and of its other end stay known."""
    good = told(kind, *_ends(kind))
    odd = {"lower_bounds": {1: data}, "upper_bounds": good["upper_bounds"], "null_value_counts": {1: 99}}
    found = bounds(kind, [good, odd])
    assert found.lows.is_valid().to_pylist() == [True, False]
    assert found.highs.is_valid().to_pylist() == [True, True] and found.rows.tolist() == [10, 10]


def _ends(kind: str) -> tuple[Any, Any]:
    if kind.startswith("decimal"):
        return Decimal("1.10"), Decimal("2.20")
    return {"string": ("a", "b"), "double": (0.5, 1.5), "boolean": (False, True)}.get(kind, (1, 2))


def test_rows_are_those_that_are_not_null_and_nulls_that_nobody_counted_are_none() -> None:
    files = [told("int", 1, 2, nulls=4), told("int", 1, 2, nulls=None), {}, {"null_value_counts": {2: 5}}]
    found = bounds("int", files)
    assert found.rows.tolist() == [6, 10, 10, 10]
    assert found.lows.to_pylist() == [1, 1, None, None] and found.bounded.tolist() == [True, True, False, False]


def test_columns_without_an_order_have_no_bounds() -> None:
    kind = {"type": "list", "element-id": 9, "element": "int", "element-required": False}
    files: list[ContentFile] = [file_of("f")]
    assert file_bounds(files, leaves(schema_of([("c", kind)]))) == {}
