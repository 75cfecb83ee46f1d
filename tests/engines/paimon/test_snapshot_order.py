"""Tables with `sequence.snapshot-ordering`: Java writes them, Nightkeep lifts them, Spark checks on its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Layout, Scan
from tests.formats.paimon.upgrade import upgrade

from nightkeep.checking.check import check
from nightkeep.formats.paimon.data import columns
from nightkeep.model import Address, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

OPTIONS = {
    "bucket": "1",
    "deletion-vectors.enabled": "true",
    "write-only": "true",
    "sequence.snapshot-ordering": "true",
}


def made(java: PaimonJava, table: Path) -> Path:
    """Rows of the second commit have smaller numbers than those that they replace: Java counts on from the number of
    the first snapshot."""
    java.create(table, Layout([("k", "INT NOT NULL"), ("v", "STRING")], ["k"], options=OPTIONS))
    java.write(table, [("+I", k, "old") for k in range(100)])
    java.write(table, [("+U" if k % 2 else "-D", k, "new") for k in range(50, 60)])
    return table


def passes(table: Path, spark: SparkSession) -> bool:
    request = CheckRequest(Address("paimon", str(table), table.name), version=3, base_version=2)
    return check(request, spark=spark).status is CheckStatus.PASSED


def test_a_later_commit_wins_whatever_its_rows_are_numbered(
    paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = made(paimon_java, tmp_path / "t"), made(paimon_java, tmp_path / "other")
    before = sorted(paimon_java.read(table, Scan(options=MERGE_ON_READ)).rows)
    assert before == [(k, "new" if 50 <= k < 60 else "old") for k in range(100) if k % 2 or not 50 <= k < 60]
    document = upgrade(table, full=True)
    assert document.outcome is Outcome.VERIFIED, str(document)
    assert sorted(paimon_java.read(table).rows) == before
    assert passes(table, spark)

    with monkeypatch.context() as patch:
        # Rewrite and gate read with one code; Spark has its own.
        patch.setattr(columns, "file_sequence", lambda file, schema: None)
        assert upgrade(other, full=True).outcome is Outcome.VERIFIED
    assert not passes(other, spark)
