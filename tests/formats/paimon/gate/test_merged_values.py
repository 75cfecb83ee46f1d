"""Columns that the gate computes: a base that is taken back counts twice, older texts come first."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa

from nightkeep.formats.paimon.gate.merged_values import joined, products, sums
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function


def parts(rows: list[tuple[int, str]], values: list[Any]) -> pl.DataFrame:
    """`rows`: key and the marks of a row: b(ase), n(ewer), o(lder), r(etract)."""
    return pl.DataFrame(
        {
            "key": [key for key, _ in rows],
            "at": list(range(len(rows))),
            **{name: [name[0] in marks for _, marks in rows] for name in ("base", "newer", "older")},
            "there": [value is not None for value in values],
            "back": ["r" in marks for _, marks in rows],
        }
    )


def test_sums_add_a_base_and_take_back_retracts() -> None:
    rows = [(1, "bnr"), (1, "n"), (1, "o"), (2, "n"), (3, "nr")]
    values = [5, 2, 3, None, 7]
    column = pa.chunked_array([pa.array(values, pa.int32())])
    assert sums(parts(rows, values), column, FieldRule(Function.SUM)).to_pylist() == [5, None, -7]


def test_a_decimal_sum_beyond_its_digits_is_null() -> None:
    values = [Decimal("600.00"), Decimal("399.99"), Decimal("600.00"), Decimal("400.00")]
    column = pa.chunked_array([pa.array(values, pa.decimal128(5, 2))])
    found = sums(parts([(1, "n"), (1, "n"), (2, "n"), (2, "n")], values), column, FieldRule(Function.SUM))
    assert found.to_pylist() == [Decimal("999.99"), None]


def test_products_round_decimals_half_up_and_whole_quotients_to_zero() -> None:
    values = [Decimal("0.05"), Decimal("-0.10"), Decimal("40.00"), Decimal("25.00"), Decimal("2.00")]
    column = pa.chunked_array([pa.array(values, pa.decimal128(5, 2))])
    rows = [(1, "n"), (1, "n"), (2, "n"), (2, "n"), (2, "n")]
    # Beyond its digits a product is null, until the next number.
    assert products(parts(rows, values), column, FieldRule(Function.PRODUCT)).to_pylist() == [
        Decimal("-0.01"),
        Decimal("2.00"),
    ]
    numbers = [None, 2, -7, 2, 3]
    column = pa.chunked_array([pa.array(numbers, pa.int32())])
    rows = [(1, "nr"), (1, "nr"), (1, "n"), (1, "nr"), (2, "n")]
    assert products(parts(rows, numbers), column, FieldRule(Function.PRODUCT)).to_pylist() == [-3, 3]


def test_texts_are_joined_around_the_base() -> None:
    texts = ["a", "b", "c", " ", "d", " ", None]
    column = pa.chunked_array([pa.array(texts)])
    rows = [(1, "b"), (1, "n"), (1, "o"), (1, "n"), (1, "o"), (2, "o"), (3, "n")]
    found = joined(parts(rows, texts), column, FieldRule(Function.LISTAGG, delimiter="|"))
    assert found.to_pylist() == ["d|c|a|b", " ", None]
