"""Iceberg tables whose metadata was damaged: no sweep calls a live file an orphan, whatever it was."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.damaged import iceberg_worlds, leave
from tests.formats.iceberg.runs import configured, folder, opened
from tests.formats.iceberg.sweeping import aged, rewritten, swept
from tests.retention.damage import emptied, fuzz
from tests.support.extended import some_extended

from nightkeep.errors import EvidenceError
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode

Made = Callable[[str], Table]


@pytest.fixture(autouse=True)
def catalog(iceberg: Warehouse) -> Iterator[None]:
    with configured(iceberg):
        yield


def _place(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").lstrip("/"))


def _lists(table: Table) -> list[Path]:
    return [_place(snapshot["manifest-list"]) for snapshot in table.document()["snapshots"]]


def _without(table: Table, *keys: str) -> None:
    """Summaries as a writer leaves them that does not count."""
    snapshots = table.document()["snapshots"]
    for snapshot in snapshots:
        snapshot["summary"] = {key: value for key, value in snapshot["summary"].items() if key not in keys}
    rewritten(table, snapshots=snapshots)


@pytest.mark.parametrize("mode", [SweepMode.DRY_RUN, SweepMode.QUARANTINE, SweepMode.DELETE])
def test_a_list_that_was_cut_to_nothing_ends_the_sweep(mode: SweepMode, golden: Made) -> None:
    table = golden("merge_on_read_v2")
    left = leave(table)
    for cut in _lists(table):
        whole = cut.read_bytes()
        emptied(cut)
        aged(folder(table))
        if cut.read_bytes() != whole:
            with pytest.raises(EvidenceError, match=cut.name):
                swept(table, mode)
        cut.write_bytes(whole)
    assert all(Path("/" + name).exists() for name in left)


def test_a_manifest_in_another_ones_place_ends_the_sweep(golden: Made) -> None:
    table = golden("history_v2")
    leave(table)
    manifests = sorted((folder(table) / "metadata").glob("*-m[0-9].avro"))
    shutil.copyfile(manifests[0], manifests[1])
    aged(folder(table))
    with pytest.raises(EvidenceError):
        swept(table)


def test_a_list_in_another_ones_place_ends_the_sweep(golden: Made) -> None:
    table = golden("history_v2")
    first, second, *_ = _lists(table)
    shutil.copyfile(first, second)
    aged(folder(table))
    with pytest.raises(EvidenceError, match="manifest list of snapshot"):
        swept(table)


def test_an_older_version_of_the_metadata_in_its_place_ends_the_sweep(golden: Made) -> None:
    table = golden("history_v2")
    versions = sorted((folder(table) / "metadata").glob("*.metadata.json"))
    current = table.metadata
    before = versions[versions.index(current) - 1]
    shutil.copyfile(before, current)
    aged(folder(table))
    with pytest.raises(EvidenceError, match="last of its log"):
        swept(table)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "lacking", [("total-data-files",), ("total-delete-files",), ("total-data-files", "total-records")]
)
def test_summaries_without_totals_are_no_evidence(lacking: tuple[str, ...], golden: Made) -> None:
    table = golden("merge_on_read_v2")
    left = leave(table)
    _without(table, *lacking)
    aged(folder(table))

    dry, refused = swept(table), swept(table, SweepMode.DELETE)

    assert left <= dry.orphans.keys()
    assert dry.swept.outcome is Outcome.SKIPPED and "deleting would be refused" in dry.swept.reason
    assert refused.swept.outcome is Outcome.REFUSED and lacking[0] in refused.swept.reason
    assert all(Path("/" + name).exists() for name in left)
    assert swept(table, SweepMode.QUARANTINE).swept.outcome is Outcome.VERIFIED


def test_totals_that_contradict_what_is_listed_end_the_sweep(golden: Made) -> None:
    table = golden("merge_on_read_v2")
    snapshots = table.document()["snapshots"]
    snapshots[-1]["summary"]["total-data-files"] = "44"
    rewritten(table, snapshots=snapshots)
    aged(folder(table))
    with pytest.raises(EvidenceError, match="total-data-files = 44"):
        swept(table, SweepMode.DELETE)


def test_a_table_that_adds_up_is_swept_for_good(golden: Made) -> None:
    table = golden("merge_on_read_v3")
    left = leave(table)
    aged(folder(table))
    done = swept(table, SweepMode.DELETE)
    assert done.swept.outcome is Outcome.VERIFIED and left <= done.orphans.keys()
    assert opened(table).snapshot().units


@pytest.mark.slow
@pytest.mark.parametrize("count", some_extended([50, 100], keep=1))
def test_no_damage_makes_a_live_file_an_orphan(tmp_path: Path, count: int) -> None:
    found = fuzz(iceberg_worlds(tmp_path), count=count)
    assert not found.failures and not found.surprises, str(found)
    assert found.endings["named the orphans"] and found.endings["stopped: CorruptMetadata"]
