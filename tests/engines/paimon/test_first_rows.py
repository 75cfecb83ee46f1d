"""Tables that keep the first row of each key: what is there already stays, and a wrong upgrade is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout, Writer
from tests.formats.paimon.followed import assert_spark_counts_wrong_changes, seen_beside_java
from tests.formats.paimon.gate.test_changes import CAUGHT, changed
from tests.formats.paimon.gate.test_sabotage import assert_stopped, before_the_gate
from tests.formats.paimon.upgrade import optimize, upgrade

import nightkeep
from nightkeep.checking.check import check
from nightkeep.formats.paimon.rewrite import rewrite
from nightkeep.model import Address, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

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


TELLS = {**OPTIONS, "changelog-producer": "lookup"}


def told(paimon_java: PaimonJava, table: Path) -> Path:
    """A top level, and on level 0 keys that are there already, keys that come twice, and one that comes as +U."""
    paimon_java.create(table, Layout(columns=COLUMNS, primary_keys=["k"], options=TELLS))
    paimon_java.write(table, [("+I", *row) for row in FIRST], Writer(user="writer"))
    assert upgrade(table, full=True).outcome is Outcome.VERIFIED
    later(paimon_java, table, 4990)
    return table


def later(paimon_java: PaimonJava, table: Path, start: int) -> None:
    rows = [("+U" if k == start + 15 else "+I", k, f"later {k}") for k in range(start, start + 20)]
    paimon_java.write(table, rows, Writer(user="writer"))
    paimon_java.write(table, [("+I", k, f"last {k}") for k in range(start + 18, start + 23)], Writer(user="writer"))


def test_a_reader_that_follows_sees_each_key_once_as_from_java(paimon_java: PaimonJava, tmp_path: Path) -> None:
    ours = told(paimon_java, tmp_path / "ours")

    def add(engine: PaimonJava, table: Path, number: int) -> None:
        later(engine, table, 4990 + 20 * number)

    seen = seen_beside_java(paimon_java, ours, maintain=upgrade, full=(False,) * 3, add=add)
    assert {"+I", "+U"} == {kind for kind, *_ in seen}
    assert sorted(row[1:] for row in seen) == sorted(tuple(row) for row in paimon_java.read(ours).rows)


@pytest.mark.parametrize("name", ["an insert is missing", "an insert is doubled", "a row after is another"])
def test_the_gate_catches_a_wrong_changelog(name: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = told(paimon_java, tmp_path / "t")
    change, reason = CAUGHT[name]
    with before_the_gate(table, changed(change)):
        document = upgrade(table)
    assert_stopped(table, document, reason)


@pytest.mark.extended
def test_spark_counts_wrong_changes_of_first_rows(paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path) -> None:
    table = told(paimon_java, tmp_path / "t")
    version = upgrade(table).committed_version
    report = check(CheckRequest(Address("paimon", str(table), str(table))), spark=spark)
    assert report.status is CheckStatus.PASSED, str(report)
    assert assert_spark_counts_wrong_changes(table, version, spark).num_rows == 13
