"""Values of rows that differ: texts of what Python has no values for, and hashes where no value may be shown."""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.checking.published_samples import NAMES, everything, files_with, first_text, published
from tests.support.extended import some_extended

import nightkeep
from nightkeep.checking.diff import diff
from nightkeep.checking.shown_values import json_value, readable
from nightkeep.model import Address, Outcome, UnitKey
from nightkeep.model.check_values import Evidence
from nightkeep.pages import run_name
from nightkeep.records import page_name
from nightkeep.records.check_report import Difference, UnitDifference
from nightkeep.records.keyed_hash import keyed_hash
from nightkeep.records.row_evidence import with_hashes
from nightkeep.records.row_values import files_of_values, read_values, values_page_name

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


MARK = "PLANTED-9f31"


@pytest.mark.parametrize("format_", some_extended(list(NAMES), keep=1))
def test_no_document_holds_a_value_of_a_row(
    format_: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = published(tmp_path, NAMES[format_], "", monkeypatch, spark)
    made.tamper(first_text(MARK))
    checked = made.check(spark)
    assert checked.outcome is Outcome.MISMATCH, checked
    nightkeep.report(policy=tmp_path / "tables.yaml", reports=made.reports, data_docs=True)
    assert checked.expectations.docs is not None and len([*made.reports.glob("pages/data-docs/*.html")]) == 2
    assert MARK.encode() not in everything(made.reports)
    (told, *_) = checked.expectations.extra["differences"]  # type: ignore[misc]
    difference = told["difference"]
    assert difference["missing_rows"] == difference["extra_rows"] == []
    hashes = [*difference["missing_keys"], *difference["extra_keys"]]
    assert len(hashes) == 2 and all(re.fullmatch("[0-9a-f]{32}", each) for each in hashes)
    assert len(difference["columns"]) == 1 and difference["note"] is None
    # In a table with keys both are rows of one key; in one without, they are two rows.
    assert (len(set(hashes)) == 1) is (format_ == "paimon")


def test_rows_are_apart_from_documents_where_the_policy_asks_for_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = published(tmp_path, NAMES["delta"], "check: {evidence: rows}", monkeypatch, spark)
    made.tamper(first_text(MARK))
    checked = made.check(spark)
    values = read_values(checked, made.reports)
    assert values is not None
    shown, column = values.differences[0].difference, values.differences[0].difference.columns[0]
    assert shown.extra_rows[0] == {**shown.missing_rows[0], column: MARK}
    (told, *_) = checked.expectations.extra["differences"]  # type: ignore[misc]
    assert told["difference"]["missing_rows"] == told["difference"]["extra_rows"] == []
    assert (told["difference"]["missing_keys"], told["difference"]["extra_keys"]) == (
        [*shown.missing_keys],
        [*shown.extra_keys],
    )

    nightkeep.report(policy=tmp_path / "tables.yaml", reports=made.reports, data_docs=True)
    assert files_with(made.reports, MARK) == {*files_of_values(checked)}
    page = made.reports / "pages" / page_name(run_name(checked))
    assert f'href="{quote(values_page_name(checked))}"' in page.read_text()


@pytest.mark.extended
def test_values_of_own_expectations_are_apart_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (
        "check: {evidence: rows}\n"
        "expectations:\n"
        "  - {type: expect_column_values_to_be_in_set, severity: warning,\n"
        "     kwargs: {column: referrer, value_set: [none]}}\n"
        "  - {type: expect_column_most_common_value_to_be_in_set, severity: info,\n"
        "     kwargs: {column: referrer, value_set: [x]}}"
    )
    made = published(tmp_path, NAMES["delta"], settings, monkeypatch, spark)
    checked = made.check(spark)
    values = read_values(checked, made.reports)
    assert checked.outcome is Outcome.VERIFIED and values is not None
    found = [each["result"] for each in values.validations[0]["results"]]  # type: ignore[attr-defined]
    seen = {*map(str, found[1]["observed_value"]), *map(str, found[0]["partial_unexpected_list"])}
    nightkeep.report(policy=tmp_path / "tables.yaml", reports=made.reports, data_docs=True)
    assert seen and all(files_with(made.reports, each) == {*files_of_values(checked)} for each in seen), seen


def test_a_hash_is_of_the_key_or_else_of_the_row() -> None:
    row = {"id": 7, "name": "a"}
    found = (UnitDifference(UnitKey("p=1"), "published", Difference(1, 0, missing_rows=(row,))),)
    for keys, values in {("id",): [7], (): [7, "a"]}.items():
        (told,) = with_hashes(found, keys, Evidence.KEYS)
        expected = keyed_hash(json.dumps(values, separators=(",", ":")).encode())
        assert told.difference == Difference(1, 0, missing_keys=(expected,))


def test_without_a_key_to_hash_by_nothing_of_a_row_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NIGHTKEEP_EVIDENCE_SECRET")
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "taken"))
    found = (UnitDifference(UnitKey("p=1"), "published", Difference(1, 0, missing_rows=({"id": 7},))),)
    (told,) = with_hashes(found, ("id",), Evidence.KEYS)
    assert (told.difference.missing_count, told.difference.missing_keys) == (1, ())
    assert "NIGHTKEEP_EVIDENCE_SECRET" in str(told.difference)
