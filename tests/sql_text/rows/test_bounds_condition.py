"""Files that bounds leave out, against the rows in them: none has a row for which the condition is true."""

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.model.arrow_types import Array
from nightkeep.sql_text.rows.arrow_condition import is_true
from nightkeep.sql_text.rows.bounds_condition import may_hold
from nightkeep.sql_text.rows.condition import Among, ColumnRef
from nightkeep.sql_text.rows.parse import rows_where

SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string())])
numbers, texts = st.none() | st.integers(-3, 3), st.none() | st.sampled_from(["", "a", "b", "bb"])
files = st.lists(st.lists(st.tuples(numbers, texts), min_size=1, max_size=4), max_size=5)
conditions = st.recursive(
    st.builds(
        lambda order, value: f"a {order} {value}", st.sampled_from(["=", "<>", "<", ">=", "<=>"]), st.integers(-4, 4)
    )
    | st.builds(lambda order, value: f"'{value}' {order} b", st.sampled_from(["=", "<", ">="]), st.sampled_from("ab"))
    | st.sampled_from(["a IN (1, 3)", "b IS NULL", "b LIKE 'b%'", "a BETWEEN 0 AND 1"]),
    lambda inner: (
        st.builds("({} AND {})".format, inner, inner)
        | st.builds("({} OR {})".format, inner, inner)
        | st.builds("NOT ({})".format, inner)
    ),
    max_leaves=4,
)


@settings(max_examples=examples(200), deadline=None)
@given(files, conditions, st.sets(st.integers(0, 4)))
def test_a_file_with_a_match_is_never_left_out(
    rows: list[list[tuple[int, str]]], condition: str, vague: set[int]
) -> None:
    """Files in `vague` have no bounds."""
    test = rows_where(condition, SCHEMA)
    tables = [pa.Table.from_pylist([{"a": a, "b": b} for a, b in each], SCHEMA) for each in rows]

    def spans(column: ColumnRef) -> tuple[Array, Array]:
        ends = [pc.min_max(table.column(column.path[0])) for table in tables]
        known = [None if n in vague else end for n, end in enumerate(ends)]
        kind = SCHEMA.field(column.path[0]).type
        sides = (pa.array([None if e is None else e[s].as_py() for e in known], kind) for s in ("min", "max"))
        low, high = (side.cast(column.type) for side in sides)
        return low, high

    flags = may_hold(test, len(tables), spans)
    assert len(flags) == len(tables)
    assert all(may or not pc.any(is_true(test, table)).as_py() for may, table in zip(flags, tables, strict=True))


def test_keys_leave_out_files_without_one() -> None:
    lows, highs = pa.array([0, 5, 20, None], pa.int64()), pa.array([4, 9, 30, None], pa.int64())
    test = Among((ColumnRef(("a",), pa.int64()),), pa.table({"a": [7, 100]}))
    assert may_hold(test, 4, lambda column: (lows, highs)) == [False, True, False, True]
    assert may_hold(test, 4, lambda column: None) == [True] * 4
    assert may_hold(test, 0, lambda column: None) == []
