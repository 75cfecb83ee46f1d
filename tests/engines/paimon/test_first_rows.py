"""Tables that keep the first row of each key: what is there already stays, and a wrong upgrade is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout
from tests.formats.paimon.upgrade import optimize, upgrade

import nightkeep
from nightkeep.checking.check import check
from nightkeep.formats.paimon.rewrite import rewrite
from nightkeep.model import Address, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.reports import CheckStatus

COLUMNS = [("k", "INT NOT NULL"), ("note", "STRING")]
OPTIONS = {"bucket": "1", "write-only": "true", "merge-engine": "first-row"}
FIRST = [(k, f"first {k}") for k in range(5000)]
LATER = [(k, f"later {k}") for k in range(5000, 5050)]


def made(paimon_java: PaimonJava, table: Path) -> Path:
    """Rows on the top level and on level 0, of which half of the keys are there already, some of them twice."""
    paimon_java.create(table, Layout(columns=COLUMNS, primary_keys=["k"], options=OPTIONS))
    paimon_java.write(table, [("+I", *row) for row in FIRST])
    assert upgrade(table, full=True).outcome is Outcome.VERIFIED
    paimon_java.write(table, [("+I", k, f"later {k}") for k in range(4900, 5050)])
    paimon_java.write(table, [("+I", k, f"last {k}") for k in range(5040, 5050)])
    return table


def test_what_is_there_already_stays(paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t")
    assert sorted(paimon_java.read(table).rows) == FIRST
    document = upgrade(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert "keys only, as the first row stays (merge-engine first-row)" in document.plan.units[0].reason
    assert sorted(paimon_java.read(table).rows) == [*FIRST, *LATER]
    report = check(CheckRequest(Address("paimon", str(table), str(table))), spark=spark)
    assert report.status is CheckStatus.PASSED, str(report)
    for view in (None, "merge-on-read"):
        rows = nightkeep.read(f"paimon:{table}", view=view).read_all().to_pylist()
        assert sorted((row["k"], row["note"]) for row in rows) == [*FIRST, *LATER]
    paimon_java.write(table, [("+I", 1, "again"), ("+I", 9000, "new")])
    assert upgrade(table).outcome is Outcome.VERIFIED
    assert sorted(paimon_java.read(table).rows) == [*FIRST, *LATER, (9000, "new")]


def knows_nothing(storage: object, bucket: object, rows: pa.Table, lifted: pa.Table, *, below: int) -> pa.Table:
    return rows


def knows_too_much(storage: object, bucket: object, rows: pa.Table, lifted: pa.Table, *, below: int) -> pa.Table:
    return rows.slice(0, 0)


@pytest.mark.parametrize("wrongly", [knows_nothing, knows_too_much])
def test_a_key_that_comes_twice_or_is_lost_is_not_published(
    wrongly: Callable[..., pa.Table], paimon_java: PaimonJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(paimon_java, tmp_path / "t")
    before = paimon_java.snapshots(table)
    with monkeypatch.context() as patch:
        patch.setattr(rewrite, "without_known", wrongly)
        document = upgrade(table)
    assert (document.outcome, paimon_java.snapshots(table)) == (Outcome.MISMATCH, before)


def test_a_table_that_keeps_first_rows_is_not_optimized(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path / "t")
    document = optimize(table)
    assert document.outcome is Outcome.REFUSED
    assert "option merge-engine = first-row is not handled" in str(document.reason)
