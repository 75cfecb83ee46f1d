"""Pruning by bounds never leaves out a matching row: against the evaluation of the rows themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.kernels.spans import ColumnSpans
from nightkeep.sql_text.rows.arrow_condition import is_true
from nightkeep.sql_text.rows.parse import rows_where
from nightkeep.sql_text.rows.pruning import Path, can_be_true, wanted_values

VALUES: Mapping[str, tuple[pa.DataType, list[Any], list[str]]] = {
    "n": (pa.int32(), [None, -5, 0, 1, 7], ["-5", "0", "7L", "1.5", "8", "NULL"]),
    "r": (pa.float64(), [None, math.nan, -0.0, 0.0, 1.5, math.inf], ["0", "-0.0D", "1.5", "2", "NULL"]),
    "f": (pa.float32(), [None, math.nan, 0.1, 2.0], ["0.1", "2", "1.5F"]),
    "p": (pa.decimal128(9, 2), [None, Decimal("1.50"), Decimal("-7.25")], ["1.5", "-7.251", "1.50BD"]),
    "t": (pa.string(), [None, "", "ab", "abc", "b", "\u4e2d"], ["''", "'ab'", "'b'", "'\u4e2d'", "NULL"]),
    "flag": (pa.bool_(), [None, True, False], ["true", "false"]),
    "d": (pa.date32(), [None, date(2026, 1, 1), date(2026, 2, 1)], ["DATE '2026-01-01'", "'2026-03-01'"]),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _, _) in VALUES.items()])
PATTERNS = ("'ab%'", "'%b'", "'a_c'", "''", "'ab'")


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        left, right = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        shape = draw(st.sampled_from(["({}) AND ({})", "({}) OR ({})", "NOT ({})", "NOT (({}) AND ({}))"]))
        return shape.format(left, right)
    name = draw(st.sampled_from(list(VALUES)))
    literal, other = (draw(st.sampled_from(VALUES[name][2])) for _ in range(2))
    forms = [
        f"{name} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=', '<=>']))} {literal}",
        f"{literal} {draw(st.sampled_from(['=', '<', '>=']))} {name}",
        f"{name} IN ({literal}, {other})",
        f"{name} BETWEEN {literal} AND {other}",
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
        f"{name} NOT IN ({literal})",
        "n = n",
        "r < f",
    ]
    if name == "t":
        forms += [f"t LIKE {draw(st.sampled_from(PATTERNS))}", f"t NOT LIKE {draw(st.sampled_from(PATTERNS))}"]
    if name == "flag":
        forms += ["flag", "NOT flag", "(n, flag) IN ((1, true), (7, false))"]
    return draw(st.sampled_from(forms))


@st.composite
def parts(draw: st.DrawFn) -> list[pa.Table]:
    def part() -> pa.Table:
        count = draw(st.integers(0, 4))
        columns = {}
        for name, (kind, values, _) in VALUES.items():
            chosen = draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))
            columns[name] = pa.array(chosen, kind)
        return pa.table(columns)

    return [part() for _ in range(draw(st.integers(1, 4)))]


def spans_of_parts(draw: Any, tables: list[pa.Table]) -> dict[Path, ColumnSpans]:
    """True bounds, NaN left out; some unknown, some texts cut short, some columns without any."""
    spans: dict[Path, ColumnSpans] = {}
    for name, (kind, _, _) in VALUES.items():
        if draw(st.integers(0, 5)) == 0:
            continue
        lows, highs, nulls = [], [], []
        for table in tables:
            column = table.column(name)
            if pa.types.is_floating(kind):
                column = column.filter(pc.fill_null(pc.invert(pc.is_nan(column)), False))
            low, high = (pc.min(column).as_py(), pc.max(column).as_py())
            if name == "t" and low is not None:
                low, high = low[:1], high[:1] + "\uffff"
            known = draw(st.integers(0, 3)) > 0
            lows.append(low if known else None)
            highs.append(high if known and draw(st.integers(0, 3)) else None)
            nulls.append(table.column(name).null_count if draw(st.integers(0, 3)) else None)
        rows = [table.num_rows for table in tables]
        counts = (pa.array(each, pa.int64()) for each in (nulls, rows))
        spans[(name,)] = ColumnSpans(pa.array(lows, kind), pa.array(highs, kind), *counts)
    return spans


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data(), condition=conditions(), tables=parts())
def test_no_part_with_a_matching_row_is_left_out(data: st.DataObject, condition: str, tables: list[pa.Table]) -> None:
    test = rows_where(condition, SCHEMA)
    may = can_be_true(test, spans_of_parts(data.draw, tables), len(tables))
    for table, kept in zip(tables, may, strict=True):
        matches = pc.any(is_true(test, table)).as_py() if table.num_rows else False
        assert kept or not matches, (condition, table.to_pylist())


EXACT = (
    ("n = 5", [(0, 4, 0), (5, 5, 0), (6, 9, 0), (None, None, 3)], [False, True, False, False]),
    ("n < 5", [(5, 9, 0), (4, 9, 0)], [False, True]),
    ("n >= 5", [(0, 4, 0), (0, 5, 0)], [False, True]),
    ("5 < n", [(0, 5, 0), (0, 6, 0)], [False, True]),
    ("NOT n = 5", [(5, 5, 0), (5, 6, 0)], [False, True]),
    ("NOT n < 5", [(0, 4, 1), (0, 5, 0)], [False, True]),
    ("n <> 5", [(5, 5, 1), (4, 5, 0)], [False, True]),
    ("n IN (1, 9)", [(2, 8, 0), (1, 1, 0)], [False, True]),
    ("n IS NULL", [(0, 4, 0), (0, 4, 1)], [False, True]),
    ("n IS NOT NULL", [(None, None, 3), (0, 4, 2)], [False, True]),
    ("n <=> NULL", [(0, 4, 0), (0, 4, 1)], [False, True]),
    ("n = NULL", [(0, 4, 0)], [False]),
    ("n BETWEEN 3 AND 4 OR n = 9", [(5, 8, 0), (9, 9, 0)], [False, True]),
    ("NOT (n = 5 OR n = 6)", [(5, 5, 0), (5, 7, 0)], [False, True]),
)


@pytest.mark.parametrize(("condition", "bounds", "expected"), EXACT)
def test_what_bounds_exclude_is_left_out(
    condition: str, bounds: list[tuple[int | None, int | None, int]], expected: list[bool]
) -> None:
    lows, highs, nulls = (pa.array(each, pa.int32()) for each in zip(*bounds, strict=True))
    spans = ColumnSpans(lows, highs, nulls.cast(pa.int64()), pa.array([3] * len(bounds), pa.int64()))
    assert can_be_true(rows_where(condition, SCHEMA), {("n",): spans}, len(bounds)).tolist() == expected


def test_texts_are_left_out_by_the_beginning_of_a_pattern() -> None:
    lows, highs = pa.array(["aa", "ab", "b", "ab"]), pa.array(["abb", "ac", "c", None])
    spans = ColumnSpans(lows, highs, pa.array([0] * 4, pa.int64()), pa.array([3] * 4, pa.int64()))
    test = rows_where("t LIKE 'abc%'", SCHEMA)
    assert can_be_true(test, {("t",): spans}, 4).tolist() == [False, True, False, True]
    assert can_be_true(rows_where("t NOT LIKE '%'", SCHEMA), {("t",): spans}, 4).all()


def test_nan_is_above_every_bound_of_floats() -> None:
    spans = ColumnSpans(*(pa.array([1.0], pa.float64()),) * 2, pa.array([0], pa.int64()), pa.array([3], pa.int64()))
    for condition, may in (("r > 5", True), ("r < 1", False), ("r = 5", False), ("NOT r <= 1", True), ("r >= 5", True)):
        assert can_be_true(rows_where(condition, SCHEMA), {("r",): spans}, 1).tolist() == [may], condition


def test_long_lists_are_compared_by_their_ends() -> None:
    condition = f"n IN ({', '.join(map(str, range(2000, 4000)))})"
    lows, highs = pa.array([0, 0, 5000], pa.int32()), pa.array([1999, 2000, 6000], pa.int32())
    spans = ColumnSpans(lows, highs, pa.array([0] * 3, pa.int64()), pa.array([1] * 3, pa.int64()))
    assert can_be_true(rows_where(condition, SCHEMA), {("n",): spans}, 3).tolist() == [False, True, False]


def test_the_values_that_a_condition_requires() -> None:
    def wanted(condition: str) -> Mapping[str, Any]:
        return {name: sorted(values) for name, values in wanted_values(rows_where(condition, SCHEMA)).items()}

    assert wanted("n = 5 AND t IN ('b', 'a') AND r > 0") == {"n": [5], "t": ["a", "b"]}
    assert wanted("5 = n OR t = 'a'") == {} == wanted("NOT n = 5") == wanted("n = NULL")
