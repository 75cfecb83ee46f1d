"""OPTIMIZE as people write it: what is understood, and how a slip is answered."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.errors import UsageError
from nightkeep.sql_text.statement import Statement, parse_statement


def optimize(table: str, where: str | None = None, columns: tuple[str, ...] = (), *, full: bool = False) -> Statement:
    return Statement(table, where, columns, full)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OPTIMIZE '/lake/events'", optimize("delta:/lake/events")),
        ('OPTIMIZE "s3://bucket/events"', optimize("delta:s3://bucket/events")),
        ("OPTIMIZE '/lake' '/events'", optimize("delta:/lake/events")),
        ("OPTIMIZE 'paimon:/w/shop.db/orders'", optimize("paimon:/w/shop.db/orders")),
        ("OPTIMIZE delta.`/lake/a b/events`", optimize("delta:/lake/a b/events")),
        ("OPTIMIZE DELTA.`/lake/ev``ents`", optimize("delta:/lake/ev`ents")),
        ("OPTIMIZE paimon.`/w/orders`", optimize("paimon:/w/orders")),
        ("OPTIMIZE iceberg.`prod/shop.orders`", optimize("iceberg:prod/shop.orders")),
        ("OPTIMIZE iceberg.prod.shop.orders", optimize("iceberg:prod/shop.orders")),
        ("OPTIMIZE events", optimize("events")),
        ("OPTIMIZE shop.events", optimize("shop.events")),
        ("OPTIMIZE lake.shop.events", optimize("lake.shop.events")),
        ("OPTIMIZE delta.shop.events", optimize("delta.shop.events")),
        ("OPTIMIZE `my-shop`.`events.v2`", optimize("my-shop.events.v2")),
        ("OPTIMIZE delta", optimize("delta")),
        ("optimize Full Full", optimize("Full", full=True)),
        ("OPTIMIZE zorder ZORDER BY zorder", optimize("zorder", columns=("zorder",))),
        ("OPTIMIZE t ZORDER BY a", optimize("t", columns=("a",))),
        ("OPTIMIZE t ZORDER BY a, b.c.d", optimize("t", columns=("a", "b.c.d"))),
        ("OPTIMIZE t ZORDER BY (a,`b c`.`d``e`)", optimize("t", columns=("a", "b c.d`e"))),
        ("OpTiMiZe t FuLl WhErE a = 1 zOrDeR bY (b);;", optimize("t", "a = 1", ("b",), full=True)),
        ("OPTIMIZE t WHERE day >= '2026-11-01'", optimize("t", "day >= '2026-11-01'")),
        ("OPTIMIZE t WHERE a = 'ZORDER BY (x)' ZORDER BY b", optimize("t", "a = 'ZORDER BY (x)'", ("b",))),
        ("OPTIMIZE t WHERE `ZORDER BY` = 1 ZORDER BY b", optimize("t", "`ZORDER BY` = 1", ("b",))),
        ("OPTIMIZE t WHERE zorder = 1 ZORDER BY b", optimize("t", "zorder = 1", ("b",))),
        ("OPTIMIZE t WHERE (a = ';') AND b < 2 ; ", optimize("t", "(a = ';') AND b < 2")),
        (
            "-- nightly\nOPTIMIZE /* ; WHERE */ t\nWHERE a = 1 -- ZORDER BY x\n  AND b = 2\nZORDER BY (c) -- done",
            optimize("t", "a = 1 -- ZORDER BY x\n  AND b = 2", ("c",)),
        ),
        (
            "OPTIMIZE delta.table WHERE day = 25 AND city = 'New York' ZORDER BY (col1, col2)",
            optimize("delta:table", "day = 25 AND city = 'New York'", ("col1", "col2")),
        ),
    ],
)
def test_a_statement_is_read_as_delta_reads_it(text: str, expected: Statement) -> None:
    assert parse_statement(text) == expected


ANY_TABLE = "a table: a name, 'path' or delta.`path`"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected OPTIMIZE, found the end"),
        ("ANALYZE t", "line 1, column 1: expected OPTIMIZE, found ANALYZE"),
        ("OPTIMIZE", f"line 1, column 9: expected {ANY_TABLE}, found the end"),
        ("OPTIMIZE WHERE a = 1", f"line 1, column 10: expected {ANY_TABLE}, found WHERE"),
        ("OPTIMIZE\n  (t)", f"line 2, column 3: expected {ANY_TABLE}, found ("),
        ("OPTIMIZE ' '", "line 1, column 13: expected a path in the quotes before, found the end"),
        ("OPTIMIZE shop.", "line 1, column 15: expected a name after shop., found the end"),
        ("OPTIMIZE shop.2026", "line 1, column 15: expected a name after shop., found 2026"),
        (
            "OPTIMIZE my-table",
            "line 1, column 12: expected FULL, WHERE, ZORDER BY or the end, found -; "
            "names with other characters than letters, digits and _ are written in backquotes",
        ),
        ("OPTIMIZE t FULL FULL", "line 1, column 17: expected WHERE, ZORDER BY or the end, found FULL"),
        ("OPTIMIZE t WHERE", "line 1, column 17: expected a condition after WHERE, found the end"),
        ("OPTIMIZE t WHERE ZORDER BY a", "line 1, column 18: expected a condition after WHERE, found ZORDER"),
        ("OPTIMIZE t ZORDER a", "line 1, column 19: expected BY after ZORDER, found a"),
        ("OPTIMIZE t ZORDER BY", "line 1, column 21: expected a column, found the end"),
        ("OPTIMIZE t ZORDER BY ()", "line 1, column 23: expected a column, found )"),
        ("OPTIMIZE t ZORDER BY (a", "line 1, column 24: expected a comma or ), found the end"),
        ("OPTIMIZE t ZORDER BY (a b)", "line 1, column 25: expected a comma or ), found b"),
        ("OPTIMIZE t ZORDER BY a)", "line 1, column 23: expected a comma or the end, found )"),
        ("OPTIMIZE t ZORDER BY 'a'", "line 1, column 22: expected a column, found 'a'"),
        ("OPTIMIZE t ZORDER BY a WHERE b = 1", "line 1, column 24: expected a comma or the end, found WHERE"),
        ("OPTIMIZE a; OPTIMIZE b", "line 1, column 13: expected the end, found OPTIMIZE"),
        (
            "REORG TABLE t APPLY (PURGE)",
            "line 1, column 1: expected OPTIMIZE, found REORG; nightkeep run TABLE --operation optimize "
            "--max-deleted-ratio 0 --min-file-size 1B purges deleted rows",
        ),
    ],
)
def test_a_slip_is_answered_with_its_place_what_was_expected_and_what_was_found(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_statement(text)
    assert str(caught.value) == f"statement, {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("OPTIMIZE t ZORDER BY (a, `a`)", "statement: expected different columns in ZORDER BY, found a twice"),
        ("OPTIMIZE 't", "statement: expected every quote and comment closed, found one open: OPTIMIZE 't"),
        ("OPTIMIZE t /* x", "statement: expected every quote and comment closed, found one open: OPTIMIZE t /* x"),
    ],
)
def test_what_has_no_one_place_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_statement(text)
    assert str(caught.value) == message


@dataclass(frozen=True)
class Spelling:
    """How a statement is written where the grammar leaves a choice."""

    space: str
    upper: bool
    parentheses: bool
    end: str


def rendered(statement: Statement, spelling: Spelling) -> str:
    """The statement as text: every name in backquotes, every path too."""
    kind, _, location = statement.table.partition(":")
    words = ["optimize", f"{kind}.{quoted(location)}" if location else quoted(kind)]
    words += ["full"] if statement.full else []
    words += ["where", statement.where] if statement.where else []
    if statement.columns:
        columns = ", ".join(".".join(map(quoted, column.split("."))) for column in statement.columns)
        words += ["zorder", "by", f"({columns})" if spelling.parentheses else columns]
    keywords = {"optimize", "full", "where", "zorder", "by"}
    spelt = [word.upper() if spelling.upper and word in keywords else word for word in words]
    return spelling.space.join(spelt) + spelling.end


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# A dot between the parts of a name and a colon after a format are the text's own.
NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters=".:", exclude_categories=("Cc", "Cs")), min_size=1
).filter(lambda name: bool(name.strip()))
CONDITIONS = st.sampled_from(
    [
        "day >= '2026-11-01'",
        "a IN ('ZORDER BY (x)', ';') AND `zorder by` IS NULL",
        "NOT (zorder = 1 OR b <=> DATE '2026-11-01')",
        "a = '`' AND b LIKE '--%'",
        "a = 1 /* WHERE; */ AND b < 2.5e3",
    ]
)
STATEMENTS = st.builds(
    Statement,
    table=st.builds("{}{}".format, st.sampled_from(["", "delta:/", "paimon:/", "iceberg:"]), NAMES),
    where=st.none() | CONDITIONS,
    columns=st.lists(st.lists(NAMES, min_size=1, max_size=3).map(".".join), max_size=4, unique=True).map(tuple),
    full=st.booleans(),
)
SPELLINGS = st.builds(
    Spelling,
    space=st.sampled_from([" ", "\n", "  \t", " /* OPTIMIZE t; */ ", "\n-- WHERE\n"]),
    upper=st.booleans(),
    parentheses=st.booleans(),
    end=st.sampled_from(["", ";", " ; ;\n", " -- ZORDER BY x"]),
)


@given(STATEMENTS, SPELLINGS)
def test_what_is_written_is_read_back(statement: Statement, spelling: Spelling) -> None:
    assert parse_statement(rendered(statement, spelling)) == statement


@given(st.text(alphabet="OPTIMZE t'`\"();.,-/*\nZRDBYWHEFUL=1a", max_size=40))
def test_any_text_is_a_statement_or_an_error_of_the_caller(text: str) -> None:
    try:
        found = parse_statement(text)
    except UsageError as failure:
        assert re.match(r"statement(, line \d+, column \d+)?: expected ", str(failure))
    else:
        assert found.table
