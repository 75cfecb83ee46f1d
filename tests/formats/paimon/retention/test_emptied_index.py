"""Tables with an index that Paimon Java compacted: healthy ones are swept, and ones whose index was cut are not."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.appended import DAYS, FIXED, SMALL, VECTORS, Appended
from tests.formats.paimon.damaged import LEFT
from tests.formats.paimon.keeping import aged, expired, names, rows, swept
from tests.retention.damage import emptied

from nightkeep.errors import EvidenceError
from nightkeep.formats.paimon.metadata.avro import read_container
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.orphans.sweep_request import SweepOrder

DELETE = SweepOrder(SweepMode.DELETE, max_share=1.0)
COLUMNS = (("text", "STRING"), ("n", "INT"))
NOW = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1", "snapshot.time-retained": "1 ms"}
ORPHAN = f"index/index-{LEFT}000000000001-0"


def _appended(java: PaimonJava, folder: Path, options: Mapping[str, str] = MappingProxyType({})) -> Appended:
    table = Appended.create(java, folder, {**VECTORS, **SMALL, **options}, columns=COLUMNS)
    for _ in range(2):
        table.append(20)
    table.delete(0.3)
    java.compact(folder, Compaction(full=True))
    table.append(10, days=DAYS[:1])
    return table


def _fixed(java: PaimonJava, folder: Path) -> None:
    _appended(java, folder, FIXED)


def _keyed(java: PaimonJava, folder: Path, options: Mapping[str, str]) -> None:
    columns = (("id", "INT"), ("v", "STRING"))
    java.create(folder, Layout(columns, ("id",), (), {"bucket": "1", **options}))
    for commit in range(3):
        java.write(folder, [("+I", k, f"{commit}") for k in range(commit, commit + 6)], Writer(write_only=False))
    java.compact(folder, Compaction(full=True))
    java.write(folder, [("+I", 1, "last")], Writer())


def _vectors(java: PaimonJava, folder: Path) -> None:
    _keyed(java, folder, VECTORS)


def _hashed(java: PaimonJava, folder: Path) -> None:
    _keyed(java, folder, {"bucket": "-1"})


def _index(folder: Path, version: dict[str, Any]) -> list[dict[str, Any]]:
    path = folder / "manifest" / version["indexManifest"]
    return [*read_container(path.read_bytes(), subject=path.name).records]


def _plant(folder: Path) -> None:
    (folder / "index").mkdir(exist_ok=True)
    (folder / ORPHAN).write_bytes(b"left")
    aged(folder)


@pytest.mark.parametrize("make", [_appended, _fixed, _vectors, _hashed])
def test_a_table_whose_index_java_compacted_is_swept(
    paimon_java: PaimonJava, tmp_path: Path, make: Callable[[PaimonJava, Path], object]
) -> None:
    table = tmp_path / "t"
    make(paimon_java, table)
    if make is _appended:
        assert not _index(table, paimon_java.snapshots(table)[-1])
    before, there = rows(paimon_java, table), names(table)
    _plant(table)
    done, orphans = swept(table, DELETE)
    assert (done.outcome, orphans) == (Outcome.VERIFIED, [ORPHAN]), done.reason
    assert {name for name in names(table) if not name.startswith("_nightkeep/")} == there
    assert rows(paimon_java, table) == before


def test_an_expiry_of_the_compaction_removes_its_index_files(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """What proves that no vector is lost goes with the expired versions."""
    table = tmp_path / "t"
    _appended(paimon_java, table, NOW)
    before = rows(paimon_java, table)
    assert expired(table).outcome is Outcome.VERIFIED
    assert not [*(table / "index").iterdir()]
    assert rows(paimon_java, table) == before


@pytest.mark.parametrize("kind", ["deleted", "compacted in part", "keyed"])
def test_an_index_manifest_that_was_cut_to_nothing_ends_the_sweep(
    paimon_java: PaimonJava, tmp_path: Path, kind: str
) -> None:
    """A cut one looks as if Java had emptied it."""
    table = tmp_path / "t"
    if kind == "keyed":
        _keyed(paimon_java, table, VECTORS)
        version = next(one for one in paimon_java.snapshots(table) if one.get("indexManifest"))
    else:
        appended = _appended(paimon_java, table)
        appended.delete(0.3)
        if kind == "compacted in part":
            compaction = paimon_java.prepare_compact(table, Compaction(full=True))
            others = {file.name for file in appended.files()}
            appended.append(10)
            last = {file.name: [0, 2] for file in appended.files() if file.name not in others}
            paimon_java.delete_positions(table, last)
            paimon_java.commit_prepared(compaction.handle)
        version = paimon_java.snapshots(table)[-1]
    assert _index(table, version)
    emptied(table / "manifest" / version["indexManifest"])
    _plant(table)
    there = names(table)
    try:
        done, _ = swept(table, DELETE)
    except EvidenceError as failure:
        assert "a deletion vector of" in str(failure)
    else:
        assert done.outcome is Outcome.REFUSED, done
    assert names(table) >= there
