"""Manifests of tables with many commits: ours are merged as Java's are, and both go on upon each other's."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.breaking import waiting
from tests.formats.paimon.contents import files, leftovers, opened
from tests.formats.paimon.followed import read
from tests.formats.paimon.keeping import live_names, names
from tests.formats.paimon.upgrade import upgrade
from tests.support.table_storage import storage_of

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.commit.commit import parent_of
from nightkeep.formats.paimon.metadata.own_commits import MERGED_PARENT
from nightkeep.model import Outcome

COLUMNS = [("k", "INT NOT NULL"), ("note", "STRING")]
OPTIONS = {"bucket": "2", "deletion-vectors.enabled": "true", "write-only": "true", "snapshot.num-retained.min": "1"}
CASES: Sequence[Mapping[str, str]] = (
    {"manifest.merge-min-count": "2"},
    {"manifest.merge-min-count": "4"},
    {"manifest.target-file-size": "1 b"},
    {"manifest.target-file-size": "1 b", "manifest.full-compaction-threshold-size": "1 b"},
    {"manifest.full-compaction-threshold-size": "1 b"},
    {},
)


def written(engine: PaimonJava, table: Path, number: int) -> None:
    rows = [("-D" if k % 7 == 0 else "+U", k, f"{number} {k}") for k in range(10 * number, 10 * number + 30)]
    engine.write(table, rows, Writer(user="writer"))


def base(table: Path) -> list[tuple[int, int]]:
    """Numbers of files that manifests of the base list add and delete."""
    manifests: Sequence[Record] = opened(table).snapshot().base_manifests
    return [(meta["_NUM_ADDED_FILES"], meta["_NUM_DELETED_FILES"]) for meta in manifests]


def test_manifests_are_merged_as_java_merges_them(paimon_java: PaimonJava, tmp_path: Path) -> None:
    for number, case in enumerate(CASES):
        ours, java = tmp_path / f"{number}-ours", tmp_path / f"{number}-java"
        paimon_java.create(ours, Layout(columns=COLUMNS, primary_keys=["k"], options={**OPTIONS, **case}))
        for step in range(3):
            written(paimon_java, ours, step)
        for step in range(3, 6):
            shutil.rmtree(java, ignore_errors=True)
            shutil.copytree(ours, java)
            document = upgrade(ours)
            assert document.outcome is Outcome.VERIFIED, (case, document.reason)
            paimon_java.compact(java, Compaction(user="compactor", single_pick=True))
            assert base(ours) == base(java), (case, step)
            assert read(paimon_java, ours) == read(paimon_java, java)
            written(paimon_java, ours, step)
        # Java compacts, merges all manifests and expires upon ours.
        paimon_java.compact(ours, Compaction(full=True, user="compactor"))
        shown = read(paimon_java, ours)
        paimon_java.compact_manifests(ours)
        paimon_java.expire(ours)
        assert read(paimon_java, ours) == shown, case
        assert {*live_names(ours)} <= names(ours)


def test_many_commits_of_ours_leave_few_manifests(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = tmp_path / "t"
    options = {**OPTIONS, "bucket": "12", "manifest.merge-min-count": "5"}
    paimon_java.create(table, Layout(columns=COLUMNS, primary_keys=["k"], options=options))
    paimon_java.write(table, [("+I", k, f"{k}") for k in range(200)], Writer(user="writer"))
    document = upgrade(table, commit_size="1B", run_id="many")
    assert (document.outcome, document.committed_version) == (Outcome.VERIFIED, 13)
    assert len(base(table)) <= 5
    merging = [path for path in table.glob("snapshot/snapshot-*") if MERGED_PARENT in path.read_text()]
    assert len(merging) == 2
    assert json.loads((table / "snapshot/snapshot-13").read_text())["totalRecordCount"] == 200
    assert len(read(paimon_java, table)) == 200
    again = upgrade(table, commit_size="1B", run_id="many")
    assert (again.outcome, again.committed_version) == (Outcome.VERIFIED, 13)

    storage, snapshot = storage_of(opened(table)), opened(table).snapshot
    assert [parent_of(storage, snapshot(number)) for number in (6, 7)] == [
        (replace(snapshot(number).identity, content=""), None) for number in (5, 6)
    ]
    parent = table / "snapshot/snapshot-5"
    parent.write_text(parent.read_text().replace('"version": 3', '"version":  3'))
    _, why = parent_of(storage, snapshot(6))
    assert why == "snapshot 5, which it was staged on, was replaced while it was committed"


def test_a_race_leaves_no_merged_manifest_behind(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = tmp_path / "t"
    options = {**OPTIONS, "manifest.merge-min-count": "2"}
    paimon_java.create(table, Layout(columns=COLUMNS, primary_keys=["k"], options=options))
    for step in range(3):
        written(paimon_java, table, step)
    before = files(table)
    with waiting(table) as ours:
        written(paimon_java, table, 3)
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert len(base(table)) == 1
    assert not [name for name in leftovers(table, before) if "nk-" in name]
    assert upgrade(table).outcome is Outcome.VERIFIED
    assert len(read(paimon_java, table)) == 51
