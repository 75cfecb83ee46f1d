"""Files of keys: the rows that equal one null-safely, by both evaluations; and nothing that a column cannot hold."""

import itertools
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.errors import UsageError
from nightkeep.sql_text.rows.arrow_condition import is_true
from nightkeep.sql_text.rows.keys import MAX_KEYS, key_condition
from nightkeep.sql_text.rows.parse import rows_where
from nightkeep.sql_text.rows.polars_condition import staying

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tiny": (pa.int8(), [-128, 127, None]),
    "small": (pa.int16(), [-32768, 0, None]),
    "n": (pa.int32(), [-(2**31), 7, None]),
    "big": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "r": (pa.float64(), [0.0, 1e-300, -1.5, None]),
    "f": (pa.float32(), [0.0, 1.5, None]),
    "p": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("9999999.99"), None]),
    "t": (pa.string(), ["", "a\\'\n\x0012%", "\u4e2d", None]),
    "flag": (pa.bool_(), [True, False, None]),
    "d": (pa.date32(), [date(1, 1, 1), date(2026, 11, 1), None]),
    "at": (pa.timestamp("us", "UTC"), [datetime(2026, 11, 1, 1, 2, 3, 4, tzinfo=UTC), None]),
    "ntz": (pa.timestamp("us"), [datetime(2026, 11, 1), None]),
    "raw": (pa.binary(), [b"", b"\x00\xff", None]),
    "a `b`.c": (pa.int32(), [1, None]),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_rows_that_equal_a_key_are_distinguished_from_the_others(tmp_path: Path, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3, unique=True))
    every = list(itertools.product(*(VALUES[name][1] for name in names)))
    chosen = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=5))
    rows, keys = (
        pa.table({name: pa.array(column, VALUES[name][0]) for name, column in zip(names, columns, strict=True)})
        for columns in (list(zip(*every, strict=True)), list(zip(*chosen, strict=True)))
    )
    pq.write_table(keys, tmp_path / "keys.parquet")

    test = rows_where(key_condition(tmp_path / "keys.parquet", SCHEMA), SCHEMA)

    assert is_true(test, rows).to_pylist() == [row in chosen for row in every]
    (batch,) = rows.to_batches()
    assert staying(test, batch).num_rows == sum(row not in chosen for row in every)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("k.csv", 'p,t,d\n1.5,007,2026-11-01\n,"",\n,,\n'),
        (
            "k.jsonl",
            '{"t": "007", "p": 1.5, "d": "2026-11-01"}\n\n{"p": null, "t": "", "d": null}\n'
            '{"d": null, "p": null, "t": null}\n',
        ),
        (
            "k.ndjson",
            '{"p": "1.50", "t": "007", "d": "2026-11-01"}\n{"p": null, "t": "", "d": null}\n'
            '{"d": null, "p": null, "t": null}\n',
        ),
    ],
)
def test_texts_are_read_as_the_columns_types(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    rows = pa.table(
        {
            "p": pa.array([Decimal("1.50"), None, None, None], pa.decimal128(9, 2)),
            "t": pa.array(["007", "", None, "7"]),
            "d": pa.array([date(2026, 11, 1), None, None, None], pa.date32()),
        }
    )

    assert is_true(rows_where(key_condition(tmp_path / name, SCHEMA), SCHEMA), rows).to_pylist() == [True] * 3 + [False]


def test_keys_of_narrower_types_are_widened_and_may_repeat(tmp_path: Path) -> None:
    keys = pa.table(
        {
            "big": pa.array([1, 1, 2], pa.int8()),
            "p": pa.array([1, 1, 2], pa.int64()),
            "t": pa.array(["a", "a", "b"]).dictionary_encode(),
        }
    )
    pq.write_table(keys, tmp_path / "k.parquet")

    told = key_condition(tmp_path / "k.parquet", SCHEMA)

    assert told == (
        "((`big`, `p`, `t`) IN ((1L, CAST(1.00 AS DECIMAL(9, 2)), 'a'), (2L, CAST(2.00 AS DECIMAL(9, 2)), 'b')))"
    )


@pytest.mark.parametrize(
    ("name", "held", "told"),
    [
        ("k.txt", "n\n1\n", "ends in .parquet"),
        ("gone.csv", None, "No such file"),
        ("k.csv", "", "Empty CSV"),
        ("k.csv", "n\n", "expected keys, found none"),
        ("k.csv", "N\n1\n", "found N"),
        ("k.csv", "n,n\n1,2\n", "n more than once"),
        ("k.csv", "n\n1.5\n", "'1.5'"),
        ("k.csv", "n\n3000000000\n", "3000000000"),
        ("k.csv", "p\n1.555\n", "data loss"),
        ("k.csv", "r\nnan\n", "nan"),
        ("k.csv", "n,big\n1\n", "2 columns"),
        ("k.jsonl", "", "expected keys, found none"),
        ("k.jsonl", "[1]\n", "object"),
        ("k.jsonl", '{"n": 1}\n{"big": 1}\n', "key 2"),
        ("k.jsonl", '{"n": 1, "n": 2}', "once"),
        ("k.jsonl", '{"n": 1.5}\n', "int32"),
        ("k.jsonl", '{"n": "1"}\n', "string"),
        ("k.jsonl", "{", "Expecting"),
        ("k.jsonl", '{"flag": 1}\n', "bool"),
        ("k.jsonl", '{"n": 1}\n{"n": "x"}\n', "x"),
        ("k.parquet", "no", "arquet"),
        ("k.parquet", pa.table({"d": ["2026-11-01"]}), "date32"),
        ("k.parquet", pa.table({"tiny": [300]}), "300"),
        ("k.parquet", pa.table({"f": [0.5]}), "float"),
        ("k.parquet", pa.table({"n": range(MAX_KEYS + 1)}), "--rows-where"),
        ("k.parquet", pa.table({"at": pa.array([0], pa.timestamp("us"))}), "timestamp"),
        ("k.parquet", pa.table({"s": [{"x": 1}]}), "plain values"),
    ],
)
def test_what_the_columns_cannot_hold_is_refused_by_name(tmp_path: Path, name: str, held: Any, told: str) -> None:
    if isinstance(held, pa.Table):
        pq.write_table(held, tmp_path / name)
    elif held is not None:
        (tmp_path / name).write_text(held)
    schema = SCHEMA.append(pa.field("s", pa.struct([("x", pa.int64())])))
    with pytest.raises(UsageError, match=name.replace(".", r"\.")) as caught:
        key_condition(tmp_path / name, schema)
    assert told in str(caught.value)
