"""Columns of type variant: shown as they are stored, never rewritten."""

from pathlib import Path

import pytest
from pyspark.sql.types import VariantVal
from tests.drivers.delta_spark import DeltaSpark, named
from tests.formats.delta.runs import optimize

import nightkeep
from nightkeep.model import Outcome

TEXTS = ('{"a": 1, "b": [true, null, "x"]}', "5", "null", '"a text"', "[]")


@pytest.mark.few(1)
@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_variants_are_shown_as_they_are_stored(delta_spark: DeltaSpark, tmp_path: Path, mapping: str) -> None:
    table = tmp_path / "t"
    rows = ", ".join(f"({n}, parse_json('{text}'), array(parse_json('{text}')))" for n, text in enumerate(TEXTS))
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT, v VARIANT, l ARRAY<VARIANT>) USING delta"
        f" TBLPROPERTIES ('delta.columnMapping.mode' = '{mapping}')",
        f"INSERT INTO {named(table)} VALUES {rows}, (100, NULL, NULL)",
        f"INSERT INTO {named(table)} VALUES (101, parse_json('7'), array())",
    )
    found = nightkeep.read(f"delta:{table}").read_all().sort_by("id")
    assert found.column("id").to_pylist() == [*range(len(TEXTS)), 100, 101]
    engine = delta_spark.sql(f"SELECT id, to_json(v), to_json(get(l, 0)) FROM {named(table)} ORDER BY id").rows
    assert [row[1:] for row in engine] == [
        (text_of(one), text_of(more[0]) if more else None)
        for one, more in zip(found.column("v").to_pylist(), found.column("l").to_pylist(), strict=True)
    ]
    assert nightkeep.read(f"delta:{table}", where="id < 3").read_all().num_rows == 3
    told = optimize(table, full=True)
    assert told.outcome is Outcome.REFUSED and "variant" in str(told.reason)


def text_of(variant: dict[str, bytes] | None) -> str | None:
    """As Spark's own decoder prints it."""
    return None if variant is None else VariantVal(variant["value"], variant["metadata"]).toJson()
