"""What people ask to delete or to set is in no document: the columns are, and a keyed hash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.checking.published_samples import everything, policy_file

import nightkeep
from nightkeep.model import Outcome

MARK = "PLANTED-9f31"


def test_conditions_and_keys_of_deletes_are_in_no_document(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "lake.clicks"
    options: dict[str, Any] = {
        "policy": policy_file(tmp_path, name, "", monkeypatch),
        "reports": tmp_path / "reports",
        "spark": spark,
    }
    keys = tmp_path / "keys.csv"
    keys.write_text(f"page\n{MARK}\n")
    condition = f"page = '{MARK}' OR click_id < 40"
    documents = [
        nightkeep.delete(name, rows_where=condition, dry_run=True, **options),
        nightkeep.delete(name, rows_where=condition, **options),
        nightkeep.delete(name, rows_where=condition, **options),
        nightkeep.delete(name, keys=keys, **options),
    ]
    outcomes = [document.outcome for document in documents]
    assert outcomes == [Outcome.SKIPPED, Outcome.VERIFIED, Outcome.UNCHANGED, Outcome.UNCHANGED], documents
    asked: Any = [document.extra["asked"] for document in documents]
    assert asked[0] == asked[1] and asked[1]["rows_where"]["columns"] == ["page", "click_id"]
    assert asked[3]["keys"]["columns"] == ["page"]
    nightkeep.report(policy=options["policy"], reports=options["reports"], data_docs=True)
    assert MARK not in json.dumps([document.to_json() for document in documents])
    assert MARK.encode() not in everything(tmp_path / "reports")
    # The check needs the condition, and finds it in the commit.
    assert MARK.encode() in everything(tmp_path / "warehouse/delta/shop.db/clicks/_delta_log")


@pytest.mark.extended
def test_expressions_of_updates_are_in_no_document(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "shop.events_raw"
    file = policy_file(tmp_path, name, "", monkeypatch)
    options: dict[str, Any] = {"policy": file, "reports": tmp_path / "reports", "spark": spark}
    condition = "device >= 0 AND value <> 987654.5"
    done = nightkeep.update(name, set="value = 987654.125", rows_where=condition, **options)
    assert done.outcome is Outcome.VERIFIED, done
    asked: Any = done.extra["asked"]
    assert (asked["set"]["columns"], asked["rows_where"]["columns"]) == (["value"], ["device", "value"])
    nightkeep.report(policy=file, reports=options["reports"], data_docs=True)
    assert "987654" not in json.dumps(done.to_json()) and b"987654" not in everything(tmp_path / "reports")
