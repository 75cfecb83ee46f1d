"""Values that Python has not, in reports of the check and of a diff: Spark makes their texts, and nothing fails."""

import json
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nightkeep.checking.diff import diff
from nightkeep.checking.shown_values import json_value, readable
from nightkeep.model import Address

DAYS = {"0000-01-01": -719528, "-0044-03-15": -735525, "+10000-01-01": 2932897, "2026-11-01": 20758}
"""Spark's texts of dates, and their days since 1970."""
SECONDS = 86_400
FAR = 10_000 * 365 * SECONDS * 1_000_000


def shown(spark: SparkSession, expression: str) -> object:
    rows = spark.range(1).select(F.expr(expression).alias("value"))
    kind = rows.schema["value"].dataType
    (row,) = rows.select(readable(F.col("value"), kind).alias("value")).collect()
    return json_value(row["value"], kind)


def test_dates_and_times_of_every_year(spark: SparkSession) -> None:
    for text, days in DAYS.items():
        assert shown(spark, f"date_from_unix_date({days})") == text
    assert shown(spark, "TIMESTAMP_NTZ '0000-01-01 00:00:00'") == "0000-01-01T00:00:00"
    assert shown(spark, "TIMESTAMP_NTZ '+10000-01-01 00:00:00.5'") == "+10000-01-01T00:00:00.500000"
    assert str(shown(spark, f"timestamp_micros(-{FAR})")).startswith("-80")
    assert str(shown(spark, f"timestamp_micros({FAR})")).startswith("+11")


def test_those_that_python_has_are_in_iso_8601(spark: SparkSession) -> None:
    assert shown(spark, "DATE '2026-11-01'") == date(2026, 11, 1).isoformat()
    for second in ("00", "07.250", "07.000001"):
        time = datetime.fromisoformat(f"2026-11-01 02:03:{second}")
        assert shown(spark, f"TIMESTAMP_NTZ '2026-11-01 02:03:{second}'") == time.isoformat()


def test_nested_ones_too(spark: SparkSession) -> None:
    found = shown(spark, "named_struct('d', DATE '0000-01-01', 'a', array(DATE '+10000-01-01', NULL), 'n', 1.50BD)")
    assert found == ["0000-01-01", ["+10000-01-01", None], "1.50"]
    assert shown(spark, "map(DATE '0000-01-01', TIMESTAMP_NTZ '0000-01-01 01:00:00')") == {
        "0000-01-01": "0000-01-01T01:00:00"
    }
    assert shown(spark, "array(X'00ff')") == ["00ff"] and shown(spark, "CAST(NULL AS DATE)") is None


def test_a_diff_shows_rows_that_have_them(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    (table / "_delta_log").mkdir(parents=True)
    names = {"id": "long", "d": "date", "n": {"type": "struct", "fields": [_field("d", "date")]}}
    fields = [_field(name, kind) for name, kind in names.items()]
    _commit(
        table,
        0,
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "t",
                "format": {"provider": "parquet", "options": {}},
                "partitionColumns": [],
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "configuration": {},
            }
        },
    )
    days = pa.array(DAYS.values(), pa.int32()).cast(pa.date32())
    rows = pa.table({"id": pa.array(range(len(DAYS))), "d": days, "n": pa.StructArray.from_arrays([days], ["d"])})
    pq.write_table(rows, table / "a.parquet")
    size = (table / "a.parquet").stat().st_size
    added = {"path": "a.parquet", "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    _commit(table, 1, {"add": added})
    report = diff(Address("delta", str(table), "t"), 0, 1, spark=spark)
    assert not report.equal
    (unit,) = report.units
    assert [(row["id"], row["d"], row["n"]) for row in unit.difference.extra_rows] == [
        (number, text, json.dumps({"d": text}, separators=(",", ":"))) for number, text in enumerate(DAYS)
    ]
    assert json.loads(json.dumps(report.to_json())) and "+10000-01-01" in str(report)


def _field(name: str, kind: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def _commit(table: Path, version: int, *actions: dict[str, object]) -> None:
    lines = "".join(f"{json.dumps(action)}\n" for action in actions)
    (table / "_delta_log" / f"{version:020d}.json").write_text(lines)
