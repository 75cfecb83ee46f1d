"""What documents hold of rows that differ: by default no value of any row, with `evidence: rows` the rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.checking.published_samples import NAMES, everything, first_text, published
from tests.support.extended import some_extended

import nightkeep
from nightkeep.checking.evidence import without_values
from nightkeep.model import Outcome, UnitKey
from nightkeep.records.check_report import Difference, UnitDifference
from nightkeep.records.keyed_hash import keyed_hash

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


def test_rows_are_told_where_the_policy_asks_for_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = published(tmp_path, NAMES["delta"], "check: {evidence: rows}", monkeypatch, spark)
    made.tamper(first_text(MARK))
    (told, *_) = made.check(spark).expectations.extra["differences"]  # type: ignore[misc]
    difference, column = told["difference"], told["difference"]["columns"][0]
    assert difference["missing_keys"] == difference["extra_keys"] == []
    assert difference["extra_rows"][0] == {**difference["missing_rows"][0], column: MARK}
    assert MARK.encode() in everything(made.reports)


def test_a_hash_is_of_the_key_or_else_of_the_row() -> None:
    row = {"id": 7, "name": "a"}
    found = (UnitDifference(UnitKey("p=1"), "published", Difference(1, 0, missing_rows=(row,))),)
    for keys, values in {("id",): [7], (): [7, "a"]}.items():
        (told,) = without_values(found, keys)
        expected = keyed_hash(json.dumps(values, separators=(",", ":")).encode())
        assert told.difference == Difference(1, 0, missing_keys=(expected,))


def test_without_a_key_to_hash_by_nothing_of_a_row_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NIGHTKEEP_EVIDENCE_SECRET")
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "taken"))
    found = (UnitDifference(UnitKey("p=1"), "published", Difference(1, 0, missing_rows=({"id": 7},))),)
    (told,) = without_values(found, ("id",))
    assert (told.difference.missing_count, told.difference.missing_keys) == (1, ())
    assert "NIGHTKEEP_EVIDENCE_SECRET" in str(told.difference)
