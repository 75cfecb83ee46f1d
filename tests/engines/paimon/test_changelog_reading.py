"""The reader of changelogs beside Java's own, incremental-between-scan-mode = changelog: tables of every producer."""

import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.canonical import rows_from_arrow
from tests.drivers.history import play
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Scan, Writer
from tests.drivers.random_history import changelog_history
from tests.engines.paimon.test_reading import types_of
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

import nightkeep
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.model import Outcome

COLUMNS = [("k", "INT NOT NULL"), ("n", "BIGINT"), ("note", "STRING")]
SHORT = {"INSERT": "+I", "UPDATE_BEFORE": "-U", "UPDATE_AFTER": "+U", "DELETE": "-D"}
PRODUCERS: Mapping[str, Mapping[str, str]] = {
    "input": {"changelog-producer": "input"},
    "input in orc": {"changelog-producer": "input", "changelog-file.format": "orc", "changelog-file.prefix": "told-"},
    "full compaction": {"changelog-producer": "full-compaction"},
    "lookup": {"changelog-producer": "lookup"},
    "lookup with vectors": {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"},
    "first rows": {"changelog-producer": "lookup", "merge-engine": "first-row", "ignore-delete": "true"},
}


def made(engine: PaimonJava, table: Path, options: Mapping[str, str]) -> None:
    every = {"bucket": "2", "write-only": "true", **options}
    engine.create(table, Layout(COLUMNS, ["k"], options=every))
    for number in range(4):
        gone = {} if "merge-engine" in options or not number else dict.fromkeys(range(3 * number, 30, 11), "-D")
        rows = [(gone.get(k, "+I"), k, number, f"note {k % 3}") for k in range(3 * number, 30 + number)]
        engine.write(table, rows, Writer(user="writer"))
        engine.compact(table, Compaction(full=True, user="compactor"))
        if number == 1:
            engine.alter(table, {"change": "add_column", "name": "late", "type": "INT"})
            engine.write(table, [("+I", k, 9, "late", k) for k in range(5)], Writer(user="writer"))
            engine.alter(table, {"change": "drop_column", "name": "late"})


def same_as_java(engine: PaimonJava, table: Path) -> Counter[Any]:
    """The changes since the first version. All ranges of versions are compared."""
    ids, texts = [each["id"] for each in engine.snapshots(table)], list(types_of(engine, table).values())
    every = Counter[Any]()
    for since in range(ids[0] - 1, ids[-1]):
        options = {"incremental-between": f"{since},{ids[-1]}", "incremental-between-scan-mode": "changelog"}
        theirs = Counter(map(repr, engine.read(table, Scan(options=options, row_kinds=True)).rows))
        found = nightkeep.read(f"paimon:{table}", incremental="changelog", since=since).read_all()
        kinds = [SHORT[kind] for kind in found.column("_change_type").to_pylist()]
        rows = rows_from_arrow(found.drop_columns(["_change_type"]), texts)
        ours = Counter(repr((kind, *row)) for kind, row in zip(kinds, rows, strict=True))
        assert ours == theirs, since
        every = every or ours
    return every


@pytest.mark.few(3)
@pytest.mark.parametrize("producer", PRODUCERS)
def test_changes_are_those_that_java_reads(producer: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    made(paimon_java, tmp_path / "t", PRODUCERS[producer])
    changes = same_as_java(paimon_java, tmp_path / "t")
    assert {change[2:4] for change in changes} >= ({"+I"} if producer == "first rows" else {"+I", "-D"})


def test_commits_that_overwrite_are_left_out(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made(paimon_java, tmp_path / "t", PRODUCERS["input"])
    paimon_java.truncate(tmp_path / "t")
    paimon_java.write(tmp_path / "t", [("+I", 1, 1, "again")], Writer(user="writer"))
    assert any("again" in change for change in same_as_java(paimon_java, tmp_path / "t"))


def test_versions_that_expired_are_named(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made(paimon_java, tmp_path / "t", PRODUCERS["lookup"])
    assert paimon_java.expire(tmp_path / "t", retain_max=2) > 0
    left = [snapshot["id"] for snapshot in paimon_java.snapshots(tmp_path / "t")]
    before = left[0] - 1
    with pytest.raises(UsageError, match=f"expected versions after one from {before} to {left[-1]}"):
        nightkeep.read(f"paimon:{tmp_path / 't'}", incremental="changelog", since=before - 1)
    assert nightkeep.read(f"paimon:{tmp_path / 't'}", incremental="changelog", since=before).read_all().num_rows


def test_a_table_without_keys_has_none(paimon_java: PaimonJava, tmp_path: Path) -> None:
    paimon_java.create(tmp_path / "t", Layout(COLUMNS, []))
    paimon_java.write(tmp_path / "t", [("+I", 1, 1, "a")], Writer(user="writer"))
    with pytest.raises(RefusedTable, match="a table without primary key has no changelog; use incremental = diff"):
        nightkeep.read(f"paimon:{tmp_path / 't'}", incremental="changelog", since=0)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(20), keep=2))
def test_random_histories_are_read_as_java_reads_them(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    history = changelog_history(seed)
    paimon_java.create(tmp_path / "t", history.layout)
    play(paimon_java, tmp_path / "t", history.steps)
    assert upgrade(tmp_path / "t").outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
    same_as_java(paimon_java, tmp_path / "t")
    shutil.rmtree(tmp_path)
