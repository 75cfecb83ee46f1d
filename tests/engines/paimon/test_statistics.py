"""Statistics of files that we write, for every mode: those that Java writes of the same rows, as far as we tell any."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Scan, Writer
from tests.formats.paimon.upgrade import upgrade

from nightkeep.model import Operation, Outcome

COLUMNS = [
    ("k", "INT NOT NULL"),
    ("small", "TINYINT"),
    ("number", "BIGINT"),
    ("price", "DECIMAL(12, 2)"),
    ("large", "DECIMAL(30, 4)"),
    ("day", "DATE"),
    ("clock", "TIME(3)"),
    ("at", "TIMESTAMP(3)"),
    ("exact", "TIMESTAMP(6)"),
    ("yes", "BOOLEAN"),
    ("note", "STRING"),
    ("odd", "VARCHAR(99)"),
    ("raw", "BYTES"),
    ("nothing", "STRING"),
]
MODES: Sequence[Mapping[str, str]] = (
    {},
    {"metadata.stats-mode": "none"},
    {"metadata.stats-mode": "counts"},
    {"metadata.stats-mode": "full"},
    {"metadata.stats-mode": "truncate(3)"},
    {"metadata.stats-mode": "none", "fields.note.stats-mode": "truncate(2)", "fields.k.stats-mode": "full"},
    {"fields.note.stats-mode": "none", "fields.raw.stats-mode": "counts", "fields.odd.stats-mode": "full"},
    {"metadata.stats-mode": "counts", "metadata.stats-dense-store": "false", "fields.day.stats-mode": "none"},
    {"metadata.stats-keep-first-n-columns": "3"},
    {"metadata.stats-mode.per.level": "0:none,5:counts"},
    {"file.format": "orc", "metadata.stats-mode": "truncate(3)"},
    {"file.format": "avro", "metadata.stats-mode": "truncate(3)"},
)
# Neither fits into its bound: one is cut within a surrogate pair, one has no larger text of that length.
ODD = ("\U0001f600" * 20, "\U0010ffff" * 20, "\u00e9\uff5e" * 20)
KINDS: Mapping[str, tuple[Operation, Mapping[str, str]]] = {
    "with keys": (Operation.UPGRADE, {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true"}),
    "without keys": (Operation.OPTIMIZE, {"compaction.min.file-num": "2", "write-only": "true"}),
}


def row(n: int) -> tuple[Any, ...]:
    text = f"{n:03d} of a text that is long enough to be cut"
    return (
        "+I",
        n,
        n % 100 - 50,
        10**15 * n,
        f"{n}.25",
        f"-{n}00000000000000000000.5000",
        f"2024-01-{n % 28 + 1:02d}",
        f"10:00:00.{n % 1000:03d}",
        f"1960-05-01T00:00:{n % 60:02d}.000",
        f"2024-05-01T00:00:00.{n % 1000:06d}",
        n % 2 == 0,
        text if n % 3 else None,
        ODD[n % 3],
        text.encode().hex(),
        None,
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_those_of_java(kind: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    operation, options = KINDS[kind]
    for number, mode in enumerate(MODES):
        ours, java = tmp_path / f"{number}-ours", tmp_path / f"{number}-java"
        keys = ["k"] if operation is Operation.UPGRADE else []
        paimon_java.create(ours, Layout(columns=COLUMNS, primary_keys=keys, options={**options, **mode}))
        for start in (0, 30):
            paimon_java.write(ours, [row(n) for n in range(start, start + 40)], Writer(user="writer"))
        shutil.copytree(ours, java)
        document = upgrade(ours, operation=operation, full=True)
        assert document.outcome is Outcome.VERIFIED, document.reason
        paimon_java.compact(java, Compaction(full=True, user="compactor"))
        (theirs,), (mine,) = paimon_java.files(java), paimon_java.files(ours)
        # Java tells no bounds of binary columns in ORC files.
        more = {"raw": theirs.value_stats["raw"]} if mode.get("file.format") == "orc" else {}
        assert {**mine.value_stats, **more} == theirs.value_stats, mode
        assert (mine.key_stats, mine.rows) == (theirs.key_stats, theirs.rows), mode
        at = {"op": "eq", "field": "note", "values": [row(31)[11]]}
        assert [each[0] for each in paimon_java.read(ours, Scan(filter=at)).rows] == [31] * (1 if keys else 2)
        past = {"op": "gt", "field": "odd", "values": [ODD[1]]}
        assert paimon_java.read(ours, Scan(filter=past)).rows == ()


@pytest.mark.parametrize("kind", KINDS)
def test_compactions_do_not_count_rows(kind: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    """`target-file-row-num` is of writers: their files have so many rows, those of compactions have the target size."""
    operation, options = KINDS[kind]
    ours, java = tmp_path / "ours", tmp_path / "java"
    keys = ["k"] if operation is Operation.UPGRADE else []
    paimon_java.create(ours, Layout(COLUMNS, keys, options={**options, "target-file-row-num": "7"}))
    paimon_java.write(ours, [row(n) for n in range(20)], Writer(user="writer"))
    assert len(paimon_java.files(ours)) == 3
    shutil.copytree(ours, java)
    assert upgrade(ours, operation=operation, full=True).outcome is Outcome.VERIFIED
    paimon_java.compact(java, Compaction(full=True, user="compactor"))
    assert [file.rows for file in paimon_java.files(ours)] == [file.rows for file in paimon_java.files(java)]
