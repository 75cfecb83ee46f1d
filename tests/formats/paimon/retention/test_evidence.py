"""Paimon tables whose metadata was damaged: no sweep calls a live file an orphan, whatever it was."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.formats.paimon.contents import opened
from tests.formats.paimon.damaged import LEFT, leave, paimon_worlds, sample_copy
from tests.formats.paimon.keeping import aged, names, retention, swept
from tests.retention.damage import World, emptied, fuzz, without_sizes
from tests.support.extended import some_extended

from nightkeep.errors import EvidenceError, RefusedTable
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.file_check import check_files
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sweep_request import SweepOrder

Worlds = tuple[Path, list[World]]
DELETE, ASIDE = SweepOrder(SweepMode.DELETE, max_share=1.0), SweepOrder(SweepMode.QUARANTINE, max_share=1.0)


def told(table: Path) -> tuple[Path, Mapping[str, object]]:
    """The newest snapshot."""
    path = max((table / "snapshot").glob("snapshot-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    return path, json.loads(path.read_text())


def table_of(folder: Path, sample: str, *, old: bool) -> Path:
    table = sample_copy(folder / sample, sample)
    leave(table)
    for path in (table / "snapshot").glob("snapshot-*") if old else ():
        without_sizes(path)
    aged(table)
    return table


@pytest.mark.parametrize("old", [False, True], ids=["sizes told", "older release"])
@pytest.mark.parametrize("mode", [SweepMode.DRY_RUN, SweepMode.QUARANTINE, SweepMode.DELETE])
@pytest.mark.parametrize("key", ["baseManifestList", "deltaManifestList", "changelogManifestList"])
def test_a_list_that_was_cut_to_nothing_ends_the_sweep(key: str, mode: SweepMode, old: bool, tmp_path: Path) -> None:
    table = table_of(tmp_path, "events_input", old=old)
    cut = table / "manifest" / str(told(table)[1][key])
    emptied(cut)
    aged(table)
    before = names(table)
    with pytest.raises(EvidenceError, match=cut.name):
        swept(table, SweepOrder(mode, max_share=1.0))
    assert {name for name in names(table) if not name.startswith("_nightkeep/")} == before


@pytest.mark.few(1)
@pytest.mark.parametrize("old", [False, True], ids=["sizes told", "older release"])
def test_every_list_of_an_earlier_snapshot_is_compared_as_well(old: bool, tmp_path: Path) -> None:
    table = table_of(tmp_path, "orders", old=old)
    for path in sorted((table / "snapshot").glob("snapshot-*")):
        for key in ("baseManifestList", "deltaManifestList"):
            cut = table / "manifest" / str(json.loads(path.read_text())[key])
            whole = cut.read_bytes()
            emptied(cut)
            if cut.read_bytes() != whole:
                aged(table)
                try:
                    done, orphans = swept(table)
                except EvidenceError as failure:
                    assert cut.name in str(failure) or path.name in str(failure)
                else:
                    # A commit that only moved files between levels: as many files and rows as before.
                    assert old and done.counted is not None and done.counted.not_evident
                    assert all(LEFT in name for name in orphans)
            cut.write_bytes(whole)


@pytest.mark.parametrize("old", [False, True], ids=["sizes told", "older release"])
@pytest.mark.parametrize("sample", ["orders", "events_input", "positions"])
def test_a_table_that_adds_up_is_swept_for_good(sample: str, old: bool, tmp_path: Path) -> None:
    """Releases before 1.0 told no sizes: rows and the end of each file are evidence enough."""
    table = table_of(tmp_path, sample, old=old)
    left = {name for name in names(table) if LEFT in name}
    done, orphans = swept(table, DELETE)
    assert done.outcome is Outcome.VERIFIED and left <= set(orphans)
    assert not left & names(table)


def test_an_empty_list_that_nobody_reports_the_size_of_is_no_evidence(tmp_path: Path) -> None:
    """A commit that changed nothing has such a list, and so has one whose list was cut."""
    table = table_of(tmp_path, "orders", old=True)
    path, raw = told(table)
    emptied(table / "manifest" / str(raw["deltaManifestList"]))
    total = int(str(raw["totalRecordCount"])) - int(str(raw["deltaRecordCount"]))
    path.write_text(json.dumps({**raw, "deltaRecordCount": 0, "totalRecordCount": total}))
    aged(table)
    before = names(table)

    dry, orphans = swept(table)
    done, _ = swept(table, DELETE)

    assert dry.outcome is Outcome.SKIPPED and orphans
    assert "deleting would be refused" in dry.reason and str(raw["deltaManifestList"]) in dry.reason
    assert done.outcome is Outcome.REFUSED and "no evidence" in done.reason
    assert {name for name in names(table) if not name.startswith("_nightkeep/")} == before
    assert swept(table, ASIDE)[0].outcome is Outcome.VERIFIED


def test_index_files_stay_where_their_manifest_may_be_cut(tmp_path: Path) -> None:
    """No snapshot tells how large its index manifest is."""
    table = table_of(tmp_path, "orders", old=False)
    _, raw = told(table)
    emptied(table / "manifest" / str(raw["indexManifest"]))
    aged(table)
    index = {name for name in names(table) if name.startswith("index/")}

    dry, orphans = swept(table)
    refused, _ = swept(table, DELETE)
    aside, put = swept(table, ASIDE)

    assert dry.counted is not None and dry.counted.doubted.files
    assert not index & {*orphans, *put} and index <= names(table)
    assert refused.outcome is Outcome.REFUSED and str(raw["indexManifest"]) in refused.reason
    assert aside.outcome is Outcome.VERIFIED


def test_a_list_in_another_ones_place_ends_the_sweep(tmp_path: Path) -> None:
    table = table_of(tmp_path, "orders", old=True)
    lists = [json.loads(path.read_text())["deltaManifestList"] for path in (table / "snapshot").glob("snapshot-*")]
    shutil.copyfile(table / "manifest" / lists[0], table / "manifest" / lists[1])
    aged(table)
    with pytest.raises(EvidenceError):
        swept(table)


def test_a_delta_list_in_the_place_of_a_changelog_s_ends_the_sweep(tmp_path: Path) -> None:
    """Both of one commit tell as many rows, and an older release no sizes."""
    table = table_of(tmp_path, "events_input", old=True)
    exchanged = 0
    for path in sorted((table / "snapshot").glob("snapshot-*")):
        snapshot = json.loads(path.read_text())
        if not snapshot.get("changelogManifestList") or not snapshot["changelogRecordCount"]:
            continue
        one, other = (table / "manifest" / str(snapshot[f"{key}ManifestList"]) for key in ("delta", "changelog"))
        before = {one: one.read_bytes(), other: other.read_bytes()}
        one.write_bytes(before[other])
        other.write_bytes(before[one])
        aged(table)
        with pytest.raises(EvidenceError):
            swept(table, DELETE)
        for each, data in before.items():
            each.write_bytes(data)
        exchanged += 1
    aged(table)
    done, _ = swept(table, DELETE)
    assert exchanged and done.outcome is Outcome.VERIFIED


@pytest.mark.parametrize("old", [False, True], ids=["sizes told", "older release"])
def test_a_changelog_that_is_reported_and_not_named_ends_the_sweep(old: bool, tmp_path: Path) -> None:
    table = table_of(tmp_path, "events_input", old=old)
    for path in sorted((table / "snapshot").glob("snapshot-*")):
        snapshot = json.loads(path.read_text())
        if snapshot.pop("changelogManifestList", None) is None:
            continue
        whole = path.read_bytes()
        path.write_text(json.dumps(snapshot))
        with pytest.raises(EvidenceError, match=f"{path.name}: expected changelogManifestList"):
            swept(table, DELETE)
        path.write_bytes(whole)


def test_index_files_stay_where_a_version_names_no_manifest_of_them_any_more(tmp_path: Path) -> None:
    """The version before has one, which every commit keeps or writes anew."""
    table = table_of(tmp_path, "orders", old=False)
    path, snapshot = told(table)
    lost = table / "manifest" / f"index-manifest-{LEFT}000000000098-0"
    shutil.copyfile(table / "manifest" / str(snapshot["indexManifest"]), lost)
    aged(table)
    assert f"manifest/{lost.name}" in swept(table)[1]
    path.write_text(json.dumps({key: value for key, value in snapshot.items() if key != "indexManifest"}))
    aged(table)
    dry, orphans = swept(table)
    assert dry.counted is not None and "names no index manifest" in str(dry.counted.not_evident)
    assert orphans and not any("index" in name for name in orphans)
    assert swept(table, DELETE)[0].outcome is Outcome.REFUSED


def test_metadata_under_a_key_that_we_do_not_know_ends_the_sweep(tmp_path: Path) -> None:
    """One bit, and there is no index manifest any more."""
    table = table_of(tmp_path, "orders", old=False)
    path, _ = told(table)
    path.write_text(path.read_text().replace('"indexManifest"', '"indexManigest"'))
    aged(table)
    with pytest.raises(RefusedTable, match="indexManigest"):
        swept(table)


@pytest.mark.few(1)
@pytest.mark.parametrize("key", ["baseManifestList", "deltaManifestList", "indexManifest"])
def test_the_look_afterwards_does_not_agree_with_a_list_that_was_cut(key: str, tmp_path: Path) -> None:
    table = table_of(tmp_path, "orders", old=True)
    whole = check_files(opened(table).retention, retention(), sets=MemorySets, salt="a")
    emptied(table / "manifest" / str(told(table)[1][key]))
    aged(table)
    assert not whole.faults and not whole.unproven
    if key == "indexManifest":
        found = check_files(opened(table).retention, retention(), sets=MemorySets, salt="a")
        assert found.unproven and "without evidence of being whole" in str(found)
        return
    with pytest.raises(EvidenceError):
        check_files(opened(table).retention, retention(), sets=MemorySets, salt="a")


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    folder = tmp_path_factory.mktemp("worlds")
    return folder, paimon_worlds(folder)


@pytest.mark.slow
@pytest.mark.parametrize("count", some_extended([50, 100], keep=1))
def test_no_damage_makes_a_live_file_an_orphan(worlds: Worlds, count: int) -> None:
    found = fuzz(worlds[1], count=count)
    assert not found.failures and not found.surprises, str(found)
    assert found.endings["named the orphans"] and found.endings["stopped: CorruptMetadata"]


def test_what_is_read_is_what_versions_need(worlds: Worlds) -> None:
    """The fuzzer's own account of what is live holds every data file of the newest version."""
    folder, every = worlds
    for world in every:
        newest = opened(folder / world.name).snapshot()
        assert {unit.path(file) for unit in newest.units for file in unit.files} <= world.live
