"""Layouts made of numbers -> advice: what is worth clustering by, and when nothing is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nightkeep.clustering.advise import advise
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.kernels.skipping import FileBounds
from nightkeep.model import Address, Clustering, Curve
from nightkeep.protocol import LayoutReading, TableLayout
from nightkeep.sql_text.queries import Query, Range, of_columns, read_queries

MEGABYTE = 1 << 20
ADDRESS = Address("memory", "laid", "laid")


@dataclass(frozen=True)
class Laid:
    """A table whose files hold the rows of `rows` in their order, cut into equal files."""

    rows: pa.Table
    files: int
    address: Address = ADDRESS
    version: int = 3

    def layout(self, snapshot: Any) -> TableLayout:
        cuts = np.linspace(0, self.rows.num_rows, self.files + 1).astype(int)
        parts = [self.rows.slice(a, b - a) for a, b in pairwise(cuts)]
        bounds = {name: self._bounds([part.column(name) for part in parts]) for name in self.rows.column_names}
        return TableLayout(np.zeros(self.files, np.int64), np.full(self.files, MEGABYTE), bounds)

    def sample(self, snapshot: Any, columns: Sequence[str], rows: int) -> Iterator[tuple[int, pa.Table]]:
        yield 0, self.rows.select(columns).slice(0, rows)

    @staticmethod
    def _bounds(parts: list[Any]) -> FileBounds:
        kind = parts[0].type
        lows = pa.array([min(part.to_pylist()) for part in parts], kind)
        highs = pa.array([max(part.to_pylist()) for part in parts], kind)
        return FileBounds(lows, highs, np.array([len(part) for part in parts]))


def laid(order: str | None = None, files: int = 64) -> Laid:
    random = np.random.default_rng(7)
    rows = pa.table({name: pa.array(random.integers(0, 1_000_000, 20_000)) for name in ("a", "b", "c")})
    return Laid(rows.sort_by(order) if order else rows, files)


def told(table: Laid, text: str = "", own: Clustering | None = None) -> Any:
    queries = read_queries(text, subject="queries") if text else ()
    reading = LayoutReading(table.layout, table.sample, lambda snapshot, request: MEGABYTE)
    name = table.address.name
    return advise(name, reading, table, queries, target_bytes=MEGABYTE, own=own)  # type: ignore[arg-type]


def test_columns_that_queries_use_are_what_to_cluster_by() -> None:
    found = told(laid(), "a between 1000 and 9000\nb < 10000\na = 5000")
    assert found.clustering is not None
    assert set(found.clustering.columns) == {"a", "b"} and found.clustering.curve is Curve.HILBERT
    assert found.read_share_before > 0.75
    assert found.read_share_after < 0.3
    assert found.payback_queries == round(2 / (found.read_share_before - found.read_share_after))
    assert not found.slower


def test_one_column_is_enough_where_queries_use_one() -> None:
    found = told(laid(), "c between 1000 and 9000\nc > 990000")
    assert found.clustering is not None and found.clustering.columns == ("c",)


def test_a_table_in_the_order_of_its_queries_is_left_alone() -> None:
    found = told(laid("a"), "a between 1000 and 9000")
    assert found.clustering is None and "not worth a rewrite" in found.reason
    assert str(found).startswith("laid: do nothing; queries read ")


def test_queries_that_would_read_more_are_named() -> None:
    found = told(laid("a"), "a between 1000 and 9000\n" + "\n".join(f"b between {n} and {n + 9000}" for n in range(9)))
    assert found.clustering is not None
    slower = {cost.query for option in found.options if option.columns == ("b",) for cost in option.slower}
    assert slower == {"a BETWEEN 1000 AND 9000"}


def test_without_queries_every_column_counts() -> None:
    found = told(laid())
    assert found.clustering is not None and len(found.clustering.columns) > 1
    assert {cost.query for cost in found.options[0].queries} == {f"1 % ranges of {name}" for name in "abc"}
    assert told(laid(files=1)).clustering is None


def test_a_clustered_table_is_advised_by_its_own_columns() -> None:
    own = Clustering(("b",), Curve.HILBERT)
    found = told(laid(), "b between 1000 and 9000", own)
    assert (found.clustering, found.own) == (own, ("b",))
    assert (
        str(found).splitlines()[0].endswith(f"{found.read_share_after:.0%} if clustered by b, its clustering columns")
    )
    done = told(laid("b"), "b between 1000 and 9000", own)
    assert done.clustering is None and "b, its clustering columns; less than 5% is not worth a rewrite" in done.reason


def test_other_columns_are_advised_where_queries_read_less_by_them() -> None:
    own = Clustering(("c", "b"), Curve.HILBERT)
    found = told(laid(), "a between 1000 and 9000", own)
    assert found.clustering is not None and found.clustering.columns == ("a",)
    assert found.own == ("c", "b") and found.reason.endswith(
        "by its clustering columns c, b: ALTER TABLE ... CLUSTER BY changes them"
    )
    assert told(laid(), "a between 1000 and 9000").own == ()


def test_without_queries_a_tables_own_columns_count_among_many() -> None:
    many = laid()
    for number in range(8):
        many = Laid(many.rows.add_column(0, f"x{number}", many.rows.column("a")), many.files)
    found = told(many, own=Clustering(("c",), Curve.HILBERT))
    assert {cost.query for cost in found.options[0].queries} >= {"1 % ranges of c"}


def test_a_table_without_statistics_is_refused() -> None:
    empty = Laid(pa.table({}), 0)
    with pytest.raises(RefusedTable, match="no file has statistics"):
        told(empty)


# ---- what a query says of files


def ranges(text: str) -> dict[str, tuple[str | None, str | None]]:
    (query,) = read_queries(text, subject="queries")
    return {n: tuple(None if e is None else str(e) for e in (r.low, r.high)) for n, r in query.ranges.items()}  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 5", {"a": ("5", "5")}),
        ("5 > a", {"a": (None, "5")}),
        ("a > 1 AND a <= 9 AND a < 7", {"a": ("1", "7")}),
        ("a BETWEEN -2 AND 3", {"a": ("-2", "3")}),
        ("a IN (3, 1, 2)", {"a": ("1", "3")}),
        ("a = 1 OR a = 7", {"a": ("1", "7")}),
        ("a = 1 OR b = 7", {}),
        ("a > 1 OR a < 7", {}),
        ("(a > 1 AND b = 2) OR (a > 5 AND b = 9)", {"a": ("1", None), "b": ("2", "9")}),
        ("a = 'x' OR a = 1", {}),
        ("NOT a = 1", {}),
        ("a IS NULL", {}),
        ("a + 1 = 3", {}),
        ("a IN (1, NULL)", {}),
        ("a LIKE 'ab%c'", {"a": ("ab", "ab\U0010ffff")}),
        ("a NOT LIKE 'ab%'", {}),
        ("a LIKE '%b'", {}),
        ("t.a = DATE '2026-11-21'", {"t.a": ("2026-11-21", "2026-11-21")}),
        ("SELECT x, y FROM t WHERE a >= 3 ORDER BY x LIMIT 2", {"a": ("3", None)}),
        ("SELECT x FROM t", {}),
    ],
)
def test_a_condition_gives_the_ranges_its_rows_lie_in(text: str, expected: dict[str, Any]) -> None:
    assert ranges(text) == expected


def test_queries_are_one_a_line_unless_semicolons_separate_them() -> None:
    lines = "a = 1 -- first\n\n-- none\nb = ';'"
    assert [q.text for q in read_queries(lines, subject="f")] == ["a = 1", "b = ';'"]
    separated = "SELECT *\nFROM t\nWHERE a = ';';\nb = 2;"
    assert [q.text for q in read_queries(separated, subject="f")] == ["SELECT * FROM t WHERE a = ';'", "b = 2"]


@pytest.mark.parametrize("text", ["", "-- nothing", "a = = 1", "'"])
def test_text_without_queries_is_a_usage_error_that_names_its_file(text: str) -> None:
    with pytest.raises(UsageError, match=r"queries\.sql"):
        read_queries(text, subject="queries.sql")


def test_columns_are_found_whatever_their_case_and_qualification() -> None:
    queries = read_queries("S.t.A = 1 AND other = 2 AND t.point.x > 3", subject="f")
    assert of_columns(queries, ["a", "point.X"])[0].ranges.keys() == {"a", "point.X"}
    assert of_columns([Query("q", {"z": Range()})], ["a"])[0].ranges == {}
    assert of_columns(queries, ["a", "A", "x"])[0].ranges.keys() == {"A", "x"}
