"""Random filters on columns of every kind that has bounds: what the engines skip by our statistics, no row is in.

The truth is found by comparing values one by one.
"""

import operator
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.delta_spark import DeltaSpark
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.lake import Lake, request

from nightkeep.model import Clustering, Curve

FILTERS = 20
ROWS = 3_000
START = datetime(2026, 11, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("real", pa.float64()),
        ("single", pa.float32()),
        ("text", pa.string()),
        ("moment", pa.timestamp("us", "UTC")),
        ("small", pa.int8()),
        ("day", pa.date32()),
    ]
)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<>": operator.ne,
}
NAN = float("nan")
Row = dict[str, Any]


def rows_of(random: Random) -> list[Row]:
    """Texts alike in more than what bounds keep of them, moments between milliseconds, NaN, infinities, nulls."""

    def a_row(number: int) -> Row:
        moment = START + timedelta(microseconds=random.randrange(10**9))
        row: Row = {
            "real": random.choice((NAN, float("inf"), float("-inf"))) if number % 40 == 0 else random.gauss(0, 9),
            "single": NAN if number % 50 == 0 else random.randrange(1, 4000) / 8,
            "text": "x" * random.choice((0, 31, 32, 33)) + random.choice("aZ\u00e9\U0010ffff\U0001f600 ") * 3,
            "moment": moment,
            "small": random.randrange(-128, 128),
            "day": (START - timedelta(days=random.randrange(40_000))).date(),
        }
        return {"id": number} | {name: None if random.random() < 0.03 else value for name, value in row.items()}

    return [a_row(number) for number in range(ROWS)]


@pytest.mark.extended
def test_filters_find_every_row_of_clustered_files(delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path) -> None:
    random = Random(4)
    rows, found = rows_of(random), Lake(tmp_path / "t", SCHEMA)
    found.append(pa.Table.from_pylist(rows, SCHEMA), files=3)
    size = sum(file.bytes for file in found.files) // 24
    found.run(request(clustering=Clustering(("moment", "text", "real"), Curve.HILBERT), target_bytes=size))
    assert len(found.files) > 15
    skipped = kept = 0
    for where, ids in filters(rows, random):
        for read in (delta_spark.read, lakes.delta_rs_read, lakes.duckdb_read):
            assert set(read(found.folder, where=where, columns=("id",)).column("id")) == ids, (where, read)
        skipped += len(delta_spark.files(found.folder, where=where)) < len(found.files)
        kept += bool(ids)
    assert skipped > FILTERS / 2 and kept > FILTERS / 2


def filters(rows: list[Row], random: Random) -> Iterator[tuple[str, set[int]]]:
    """Conditions with values that the table holds, and the ids of their rows."""
    for number in range(FILTERS):
        column = SCHEMA.names[number % len(SCHEMA.names)]
        value = random.choice([row[column] for row in rows if is_plain(row[column])])
        sign = random.choice(list(OPERATORS))
        ids = {row["id"] for row in rows if holds(row[column], sign, value)}
        low, high = sorted(random.choice([row["moment"] for row in rows if row["moment"]]) for _ in range(2))
        if number % 2:
            within = {row["id"] for row in rows if row["moment"] is not None and low <= row["moment"] <= high}
            yield (
                f"{column} {sign} {literal(value)} AND moment BETWEEN {literal(low)} AND {literal(high)}",
                ids & within,
            )
        else:
            yield f"{column} {sign} {literal(value)}", ids


def is_plain(value: Any) -> bool:
    return value is not None and value not in (float("inf"), float("-inf")) and value == value


def holds(held: Any, sign: str, value: Any) -> bool:
    """NaN is above every number; a null is neither."""
    if held is None:
        return False
    return OPERATORS[sign]((held != held, held), (False, value)) if held == held else sign in (">", ">=", "<>")


def literal(value: Any) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, float):
        return f"CAST({value!r} AS DOUBLE)"
    return str(value) if isinstance(value, int) else f"DATE '{value}'"
