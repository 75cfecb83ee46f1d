"""Partition filters against SQLite, which evaluates the same conditions with the same three-valued logic."""

import sqlite3
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.errors import UsageError
from nightkeep.sql_text.partition_filter import partition_filter

COLUMNS = ("city", "n", "share", "day")
WORDS = st.text("ab%_.*", max_size=4)
DAYS = st.dates(date(2026, 1, 1), date(2026, 1, 5))
SHARES = st.sampled_from([-1.5, 0.0, 0.25, 1.0, 2.0])
NUMBERS = st.integers(-3, 3)


def literals() -> dict[str, st.SearchStrategy[tuple[str, str]]]:
    """Literals by the column they may meet: how Spark SQL writes them, and how SQLite does."""

    def both(text: str) -> tuple[str, str]:
        return text, text

    return {
        "city": WORDS.map(lambda word: both(f"'{word}'")),
        "n": st.one_of(
            NUMBERS.map(lambda n: both(str(n))),
            SHARES.map(lambda n: both(f"{n:.2f}")),
            NUMBERS.map(lambda n: (f"'{n}'", str(n))),
        ),
        "share": st.one_of(NUMBERS.map(lambda n: both(str(n))), SHARES.map(lambda n: both(f"{n:.2f}"))),
        "day": DAYS.flatmap(lambda day: st.sampled_from([(f"DATE '{day}'", f"'{day}'"), (f"'{day}'", f"'{day}'")])),
    }


LITERALS = {
    column: st.one_of(found, st.just(("NULL", "NULL"))) if column != "day" else found
    for column, found in literals().items()
}


@st.composite
def comparisons(draw: Callable[..., Any]) -> tuple[str, str]:
    column = draw(st.sampled_from(COLUMNS))
    shape = draw(st.sampled_from(["compare", "mirror", "in", "between", "null", "like"]))
    negated = draw(st.sampled_from(["", "NOT "]))
    operator = draw(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]))
    first, second = draw(LITERALS[column]), draw(LITERALS[column])
    if shape == "like":
        pattern = draw(WORDS)
        return twice(lambda side: f"city {negated}LIKE '{pattern}'")
    forms: dict[str, Callable[[int], str]] = {
        "compare": lambda side: f"{column} {operator} {first[side]}",
        "mirror": lambda side: f"{first[side]} {operator} {column}",
        "in": lambda side: f"{column} {negated}IN ({first[side]}, {second[side]})",
        "between": lambda side: f"{column} {negated}BETWEEN {first[side]} AND {second[side]}",
        "null": lambda side: f"{column} IS {negated}NULL",
    }
    return twice(forms[shape])


def twice(form: Callable[[int], str]) -> tuple[str, str]:
    return form(0), form(1)


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        inner.map(lambda c: twice(lambda side: f"NOT ({c[side]})")),
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(
            lambda t: twice(lambda side: f"({t[0][side]}) {t[1]} {t[2][side]}")
        ),
    ),
    max_leaves=5,
)
PARTITIONS = st.lists(
    st.fixed_dictionaries(
        {"city": st.none() | WORDS, "n": st.none() | NUMBERS, "share": st.none() | SHARES, "day": st.none() | DAYS}
    ),
    min_size=1,
    max_size=6,
)


@given(CONDITIONS, PARTITIONS)
def test_selects_what_sqlite_selects(condition: tuple[str, str], partitions: list[dict[str, Any]]) -> None:
    spark, sqlite = condition
    selects = partition_filter(spark, COLUMNS)
    assert [i for i, p in enumerate(partitions) if selects(p)] == by_sqlite(sqlite, partitions)


def by_sqlite(condition: str, partitions: list[dict[str, Any]]) -> list[int]:
    with sqlite3.connect(":memory:") as base:
        base.execute("PRAGMA case_sensitive_like = ON")
        base.execute("CREATE TABLE t (i INTEGER, city TEXT, n INTEGER, share REAL, day TEXT)")
        rows = [(i, *(_stored(p[c]) for c in COLUMNS)) for i, p in enumerate(partitions)]
        base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
        found = base.execute(f"SELECT i FROM t WHERE {condition} ORDER BY i")
        return [int(row[0]) for row in found]


def _stored(value: object) -> object:
    return str(value) if isinstance(value, date) else value


def test_no_filter_selects_everything() -> None:
    assert partition_filter(None, ())({})


@pytest.mark.parametrize(
    ("condition", "value", "selected"),
    [
        ("c = TRUE", True, True),
        ("c = 'false'", True, False),
        ("c = 1.5", Decimal("1.50"), True),
        ("c = '1.5'", Decimal("1.50"), True),
        ("c < -1", Decimal("-1.01"), True),
        ("c = X'00ff'", b"\x00\xff", True),
        ("c = 'ab'", b"ab", True),
        ("c = 'NaN'", float("nan"), True),
        ("c > 1e300", float("nan"), True),
        ("c >= TIMESTAMP '2026-01-02 03:04:05'", datetime(2026, 1, 2, 3, 4, 5), True),
        ("c = '2026-01-02T03:04:05.000001'", datetime(2026, 1, 2, 3, 4, 5, 1), True),
        ("c = '2026-01-02T05:04:05+02:00'", datetime(2026, 1, 2, 3, 4, 5), True),
        ("c = '2026-01-02 03:04:05'", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), True),
        ("c = DATE '2026-01-02'", datetime(2026, 1, 2), True),
        ("c < TIMESTAMP '2026-01-02 00:00:01'", date(2026, 1, 2), True),
        ("c BETWEEN '09:00' AND TIME '10:00:00'", time(9, 30), True),
        ("`c` == 5", 5, True),
        ("c = 5 -- five", 6, False),
        ("c IN (5, NULL)", 6, False),
        ("c NOT IN (5, NULL)", 6, False),
        ("c LIKE 'a%'", "a\nb", True),
        ("c NOT LIKE 'a%'", "a", False),
        ("c = NULL OR c IS NULL", None, True),
    ],
)
def test_literals_become_values_of_the_column(condition: str, value: object, selected: bool) -> None:
    assert partition_filter(condition, ("c",))({"c": value}) is selected


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("", "expected one condition"),
        ("dt = 'a'; dt = 'b'", "found 2"),
        ("dt = ", "expected a condition"),
        ("dt = 'x", "expected a condition"),
        ("amount > 5", "found amount"),
        ("t.dt = 'x'", "found t.dt"),
        ("dt = region", "found region"),
        ("dt", "found dt"),
        ("upper(dt) = 'X'", "found UPPER(dt)"),
        ("dt = concat('a', 'b')", "found CONCAT('a', 'b')"),
        ("dt = 'it''s'", "expected a literal"),
        ("dt IN (SELECT 1)", "found dt IN (SELECT 1)"),
        ("dt IN ()", "IN with a list of literals"),
        ("dt BETWEEN SYMMETRIC 'a' AND 'b'", "found (dt BETWEEN"),
        ("dt IS TRUE", "IS NULL or IS NOT NULL"),
        ("dt LIKE 'a' ESCAPE '!'", "found dt LIKE 'a' ESCAPE '!'"),
        (r"dt LIKE 'a\_'", "plain characters"),
        ("dt LIKE 5", "plain characters"),
        ("dt ILIKE 'a'", "found dt ILIKE 'a'"),
        ("dt <=> 'a'", "found"),
        ("dt = 'a' region", "found"),
        ("dt = current_date()", "found"),
        ("dt = -'a'", "found -'a'"),
        ("dt = DATE '2026-02-30'", "expected a literal"),
        ("dt = TIME '10:00Z'", "expected a literal"),
        ("dt = X'abc'", "found"),
        ("TRUE", "found TRUE"),
    ],
)
def test_refuses_what_is_no_partition_filter_before_seeing_a_value(condition: str, part: str) -> None:
    with pytest.raises(UsageError) as failure:
        partition_filter(condition, ("dt", "region"))
    assert part in str(failure.value)
    assert repr(condition) in str(failure.value)


def test_names_the_partition_columns() -> None:
    with pytest.raises(UsageError, match="partition columns are dt, region"):
        partition_filter("amount > 5", ("dt", "region"))


def test_refuses_any_filter_on_an_unpartitioned_table() -> None:
    with pytest.raises(UsageError, match="no partition columns"):
        partition_filter("dt = 'a'", ())


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("c = 'seven'", 7),
        ("c < 'NaN'", Decimal(1)),
        ("c = 5", "5"),
        ("c = 1", True),
        ("c = 'yes'", True),
        ("c = 'tomorrow'", date(2026, 1, 1)),
        ("c = 20260101", date(2026, 1, 1)),
        ("c = DATE '2026-01-01'", "2026-01-01"),
        ("c LIKE '1%'", 12),
    ],
)
def test_refuses_a_literal_that_is_no_value_of_the_column(condition: str, value: object) -> None:
    with pytest.raises(UsageError, match="c"):
        partition_filter(condition, ("c",))({"c": value})


def test_a_column_is_found_in_any_case_that_leaves_no_doubt() -> None:
    assert partition_filter("DT = 'a'", ("dt", "region"))({"dt": "a", "region": "b"})
    assert partition_filter("P = 1", ("p", "P"))({"p": 2, "P": 1})
    with pytest.raises(UsageError, match="expected a partition column"):
        partition_filter("dT = 'a'", ("dt", "DT"))
