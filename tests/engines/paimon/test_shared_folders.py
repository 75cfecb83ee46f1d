"""Partitions that share a folder: Java writes them, we maintain them, and Java reads the same rows.

Null, blank texts and the text of `partition.default-name` are different BinaryRows in one folder.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, JavaFile, Layout, Scan, Writer
from tests.formats.paimon.appended import SMALL, VECTORS, operate
from tests.formats.paimon.upgrade import optimize, upgrade

import nightkeep
from nightkeep.checking.check import check
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus, RunDocument

DEFAULT = "__DEFAULT_PARTITION__"
TEXTS = (None, "", " ", "\u2003", DEFAULT, "a%b/c=d", "a%25b")
NAMING = {"legacy": {}, "cast": {"partition.legacy-name": "false"}, "own": {"partition.default-name": "none here"}}
COLUMNS = (("id", "INT"), ("day", "STRING"), ("n", "INT"), ("v", "STRING"))
Rows = list[tuple[object, ...]]


def _fill(java: PaimonJava, table: Path, texts: tuple[str | None, ...] = TEXTS, *, commits: int = 3) -> None:
    """Each commit writes one file for each pair of a text and a number, or for each text and null."""
    for commit in range(commits):
        rows = [
            ("+I", 100 * commit + 10 * at + n, text, n or None, f"{commit}")
            for at, text in enumerate(texts)
            for n in (0, 1)
        ]
        java.write(table, rows, Writer(user="writer"))


def _rows(java: PaimonJava, table: Path, options: Mapping[str, str] | None = None) -> Rows:
    return sorted(java.read(table, Scan(options=options or {})).rows, key=repr)


def _shown(document: RunDocument) -> list[str]:
    return [f"{unit.partition} {unit.outcome} {unit.reason}" for unit in document.units]


def _per_partition(files: tuple[JavaFile, ...]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for file in files:
        counts[repr(file.partition)] = counts.get(repr(file.partition), 0) + 1
    return counts


@pytest.mark.few(1)
@pytest.mark.parametrize("naming", NAMING)
def test_append_tables_are_packed_deleted_from_and_updated(
    paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path, naming: str
) -> None:
    table = tmp_path / "t"
    options = {"bucket": "-1", **VECTORS, **SMALL, **NAMING[naming]}
    paimon_java.create(table, Layout(COLUMNS, (), ("day", "n"), options))
    texts = ("none here", *TEXTS) if naming == "own" else TEXTS
    _fill(paimon_java, table, texts)
    before = _rows(paimon_java, table)
    done = operate(table, Operation.OPTIMIZE)
    assert done.outcome is Outcome.VERIFIED, _shown(done)
    assert len({unit.partition for unit in done.units}) == len(done.units) == 2 * len(texts)
    assert _rows(paimon_java, table) == before
    assert set(_per_partition(paimon_java.files(table)).values()) == {1}
    assert operate(table, Operation.OPTIMIZE).outcome is Outcome.UNCHANGED

    kept = before
    for condition, gone in (
        ("day IS NULL", lambda row: row[1] is None),
        ("day = ''", lambda row: row[1] == ""),
        (f"day = '{DEFAULT}'", lambda row: row[1] == DEFAULT),
        ("day = ' ' AND n IS NULL", lambda row: row[1] == " " and row[2] is None),
    ):
        done = operate(table, Operation.DELETE, rows=f"{condition} AND v = '1'")
        assert done.outcome is Outcome.VERIFIED, _shown(done)
        kept = [row for row in kept if not (gone(row) and row[3] == "1")]
        assert _rows(paimon_java, table) == kept
    done = operate(table, Operation.UPDATE, rows="day IS NULL OR day = ' '", sets=("v = 'new'",))
    assert done.outcome is Outcome.VERIFIED, _shown(done)
    kept = [(*row[:3], "new") if row[1] in (None, " ") else row for row in kept]
    assert _rows(paimon_java, table) == sorted(kept, key=repr)
    if naming == "legacy":
        assert _checked(table, done, spark) is CheckStatus.PASSED
    found = [tuple(row.values()) for row in nightkeep.read(f"paimon:{table}").read_all().to_pylist()]
    assert sorted(found, key=repr) == sorted(kept, key=repr)


def _checked(table: Path, done: RunDocument, spark: SparkSession) -> CheckStatus:
    request = CheckRequest(address=Address("paimon", str(table), "t"), version=done.committed_version)
    return check(request, spark=spark).status


@pytest.mark.few(1)
@pytest.mark.in_turn("vectors")
@pytest.mark.parametrize("naming", NAMING)
@pytest.mark.parametrize("vectors", ["vectors", "none"])
def test_tables_with_keys_are_upgraded(
    paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path, naming: str, vectors: str
) -> None:
    table, texts = tmp_path / "t", tuple(text for text in TEXTS if text is not None)
    held = VECTORS if vectors == "vectors" else {}
    columns = (("id", "INT"), ("day", "STRING NOT NULL"), ("n", "INT"), ("v", "STRING"))
    options = {"bucket": "1", **held, **NAMING[naming]}
    paimon_java.create(table, Layout(columns, ("id", "day"), ("day",), options))
    for commit in range(6):
        rows = [("+I", k, text, k, f"{commit} {text}") for text in texts for k in range(commit, 8)]
        paimon_java.write(table, rows, Writer(user="writer"))
    merged = _rows(paimon_java, table, MERGE_ON_READ if held else None)
    done = upgrade(table) if held else optimize(table)
    assert done.outcome is Outcome.VERIFIED, _shown(done)
    assert len({unit.partition for unit in done.units}) == len(done.units) == len(texts)
    assert _rows(paimon_java, table) == merged
    if (naming, vectors) == ("legacy", "vectors"):
        assert _checked(table, done, spark) is CheckStatus.PASSED
    paimon_java.write(table, [("+I", 3, text, 3, "later") for text in texts], Writer(user="writer"))
    merged = _rows(paimon_java, table, MERGE_ON_READ if held else None)
    done = upgrade(table) if held else optimize(table)
    assert done.outcome in (Outcome.VERIFIED, *(() if held else (Outcome.UNCHANGED,))), _shown(done)
    assert _rows(paimon_java, table) == merged
