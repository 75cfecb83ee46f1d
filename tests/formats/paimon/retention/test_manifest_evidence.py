"""Each metadata file of a table with history, copied over each other one: no file that Java needs is an orphan."""

import itertools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.appended import DAYS, SMALL, VECTORS, Appended
from tests.formats.paimon.contents import opened
from tests.formats.paimon.damaged import leave
from tests.formats.paimon.keeping import aged, orphans
from tests.formats.paimon.upgrade import upgrade
from tests.retention.damage import World

from nightkeep.errors import NightkeepError
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import DAY_MS

PLAIN = {"manifest.compression": "null"}
"""Manifests of as many entries have the same size then."""
SOME = 10
"""Copies that `make test` tries of each table."""


def _appended(java: PaimonJava, folder: Path) -> None:
    columns = (("n", "INT"), ("v", "STRING"))
    options = {**VECTORS, **SMALL, **PLAIN, "target-file-size": "1 mb", "compaction.min.file-num": "3"}
    table = Appended.create(java, folder, options, columns=columns)
    for _ in range(3):
        table.append(10)
    table.delete(0.3)
    table.append(10, days=DAYS[:1])
    java.create_tag(folder, "kept", snapshot=2)
    table.delete(0.2)
    for _ in range(3):
        table.append(10)
    assert table.optimize(full=True).outcome is Outcome.VERIFIED
    table.append(10)
    table.delete(0.3)


def _keyed(java: PaimonJava, folder: Path) -> None:
    columns = (("id", "INT"), ("day", "STRING"), ("v", "STRING"))
    options = {"bucket": "2", "changelog-producer": "lookup", **VECTORS, **PLAIN}
    java.create(folder, Layout(columns, ("id", "day"), ("day",), options))
    for commit in range(4):
        rows = [("+I", k, day, f"{commit}") for day in ("2026-11-01", "2026-11-02") for k in range(commit, commit + 6)]
        java.write(folder, rows, Writer(user="writer", write_only=commit % 2 == 0))
    java.create_tag(folder, "kept", snapshot=2)
    assert upgrade(folder).outcome in (Outcome.VERIFIED, Outcome.UNCHANGED, Outcome.REFUSED)
    java.write(folder, [("+I", 3, "2026-11-01", "new")], Writer(user="writer"))
    java.compact(folder, Compaction(full=True, user="compactor"))


def _needed(java: PaimonJava, folder: Path) -> Iterator[str]:
    """Names of the files that a version needs, by Java."""
    for snapshot in java.snapshots(folder):
        number = int(snapshot["id"])
        yield from (file.name for file in java.files(folder, snapshot=number))
        yield from (file.name for file in java.changelog(folder, snapshot=number))
        yield from (entry.index_file for entry in java.vectors(folder, snapshot=number, positions=False))


def _pairs(metadata: Sequence[Path], *, some: bool) -> Sequence[tuple[Path, Path]]:
    """Sources and targets of copies. `some` of them are of one size, where the size is no evidence."""
    every = list(itertools.permutations(metadata, 2))
    if not some:
        return every
    alike = [pair for pair in every if pair[0].stat().st_size == pair[1].stat().st_size]
    return Random(1).sample(alike, min(SOME, len(alike)))


@pytest.mark.few(1)
@pytest.mark.parametrize("some", [True, pytest.param(False, marks=pytest.mark.extended)], ids=["some", "all"])
@pytest.mark.parametrize("make", [_appended, _keyed])
def test_no_copy_of_metadata_over_another_makes_a_needed_file_an_orphan(
    paimon_java: PaimonJava, tmp_path: Path, make: Callable[[PaimonJava, Path], None], *, some: bool
) -> None:
    table = tmp_path / "t"
    make(paimon_java, table)
    needed = frozenset(_needed(paimon_java, table))
    metadata = tuple(sorted((table / "manifest").iterdir()))
    leave(table)
    aged(table)
    world = World("t", lambda: opened(table).retention, metadata, (), time.time_ns() // 1_000_000, 7 * DAY_MS)
    endings: Counter[str] = Counter()
    wrong: list[str] = []
    for source, target in _pairs(metadata, some=some):
        whole, copy = target.read_bytes(), source.read_bytes()
        same = len(whole) == len(copy)
        target.write_bytes(copy[: len(whole)].ljust(len(whole), b"\0"))
        os.utime(target, (0, 0))
        try:
            look = world.look()
        except NightkeepError as failure:
            endings[f"{type(failure).__name__}, same size {same}"] += 1
        else:
            taken = sorted(name for name in look.named if name.rpartition("/")[2] in needed)
            endings[f"{'refused' if look.refusal else 'no harm'}, same size {same}"] += 1
            wrong += [f"{source.name} over {target.name}: {taken}"] if taken and look.refusal is None else []
        target.write_bytes(whole)
        os.utime(target, (0, 0))
    assert not wrong, (endings, len(wrong), wrong[:5])
    assert sum(count for ending, count in endings.items() if "True" in ending) > (4 if some else 20), endings


PARTITIONS: dict[str, tuple[str, list[Any]]] = {
    "i": ("INT", [-5, 3, 2**31 - 1, -(2**31)]),
    "b": ("BIGINT", [-5, 10**15]),
    "z": ("BOOLEAN", [True, False]),
    "d": ("DATE", ["1969-01-01", "2026-01-01", "0001-01-01"]),
    "m": ("DECIMAL(10, 2)", ["-5.25", "3.00", "0.10"]),
    "l": ("DECIMAL(30, 5)", ["-5.25000", "123456789012345678901234.00000", "0.10000"]),
    "s": ("STRING", ["a", "\u00e9", "\U0001f600", "\uffff", "", "z" * 60, None]),
    "c": ("CHAR(3)", ["abc", "b"]),
    "t": ("TIMESTAMP(6)", ["1969-12-31T23:59:59.999001", "2026-01-01T00:00:00.000001"]),
    "f": ("DOUBLE", [-0.5, 2.5]),
}


def test_partitions_of_every_type_lie_within_the_bounds_that_java_states(
    paimon_java: PaimonJava, tmp_path: Path
) -> None:
    for name, (kind, values) in PARTITIONS.items():
        table = tmp_path / name
        paimon_java.create(table, Layout((("id", "INT"), ("p", kind)), (), ("p",), {"bucket": "-1"}))
        paimon_java.write(table, [("+I", 1, value) for value in values], Writer())
        paimon_java.write(table, [("+I", 2, value) for value in values], Writer())
        paimon_java.compact_manifests(table)
        aged(table)
        assert orphans(table) == [], name
