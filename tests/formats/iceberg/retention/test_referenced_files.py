"""What keeps files of an Iceberg table alive, held against table metadata and Avro read in the obvious way."""

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.golden_tables import KEPT
from tests.formats.iceberg.runs import configured, folder, opened
from tests.formats.iceberg.sweeping import (
    OLD_DAYS,
    UUID,
    aged,
    listed,
    live_names,
    named_by,
    needed_by,
    now_ms,
    planted,
    reached,
    records,
    rewritten,
    stored,
    swept,
)

from nightkeep.errors import CorruptMetadata, EvidenceError, MissingFile, RefusedTable
from nightkeep.formats.iceberg.metadata.locations import stored_name
from nightkeep.formats.iceberg.retention import referenced_files as live_module
from nightkeep.formats.iceberg.retention.referenced_files import ManifestFiles
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import FILES, Retention, Root
from nightkeep.storage import LocalStorage

EVERY_FILE = Retention(0, 0)
"""Nothing is young."""


@pytest.fixture
def golden_table(golden: Callable[[str], Table], iceberg: Warehouse) -> Iterator[Callable[[str], Table]]:
    with configured(iceberg):
        yield golden


@pytest.fixture
def table(golden_table: Callable[[str], Table]) -> Table:
    return golden_table("history_v2")


@pytest.mark.few(5)
@pytest.mark.parametrize("name", KEPT)
def test_all_that_readers_need_is_live_and_the_rest_is_found(name: str, golden_table: Callable[[str], Table]) -> None:
    """Of every kind of table that engines made; and what was planted in it goes, alone."""
    table = golden_table(name)
    needed, protected = live_names(opened(table).retention)
    assert needed == needed_by(table)
    assert named_by(table) <= protected | needed
    aged(folder(table))
    orphans = frozenset(swept(table).orphans)
    # Nothing else is in these folders but what the metadata knows, and metadata that it has forgotten.
    assert listed(table) - needed - protected == orphans
    left = planted(table, f"data/day=x y%/00000-0-{UUID}-00001.parquet", f"metadata/{UUID}-m7.avro")
    found = swept(table, SweepMode.DELETE)
    assert found.orphans.keys() == orphans | left
    assert not found.swept.failed and not (orphans | left) & listed(table)
    assert needed | (protected & listed(table)) <= listed(table)
    assert needed_by(table) == needed


def test_sizes_are_those_of_the_files(table: Table) -> None:
    seen = 0
    for files in reached(opened(table).retention, opened(table).retention.roots(EVERY_FILE)):
        assert files.schema == FILES
        for row in files.to_pylist():
            if row["bytes"] is not None:
                assert Path("/" + row["name"]).stat().st_size == row["bytes"]
                seen += 1
    assert seen > 3


def test_roots_are_the_version_of_now_and_every_snapshot(table: Table) -> None:
    ours = opened(table)
    before = ours.retention.roots(EVERY_FILE)
    snapshots = [snapshot["snapshot-id"] for snapshot in table.document()["snapshots"]]
    assert [root.version for root in before] == [None, *snapshots] and len({root.id for root in before}) == len(before)
    assert ours.retention.roots(Retention(now_ms(), DAY_MS)) == before
    assert pickle.loads(pickle.dumps(before)) == before
    assert [root.task for root in pickle.loads(pickle.dumps(before))] == [root.task for root in before]


def test_sources_are_equal_wherever_they_are_named(table: Table) -> None:
    """So that a manifest that many snapshots share is read once."""
    ours = opened(table)
    sources = [source for root in ours.retention.roots(EVERY_FILE) for source in ours.retention.reach(root).sources]
    paths = {
        manifest["manifest_path"]
        for snapshot in table.document()["snapshots"]
        for manifest in records(snapshot["manifest-list"])
    }
    assert len(sources) > len(set(sources)) == len(paths)
    assert pickle.loads(pickle.dumps(sources)) == sources


def test_what_a_young_snapshot_removed_is_protected_for_a_while(golden_table: Callable[[str], Table]) -> None:
    """Queries that began before it may still read them."""
    table = golden_table("history_v2")
    ours, document = opened(table), table.document()
    removed = {}
    for snapshot in document["snapshots"]:
        for manifest in records(snapshot["manifest-list"]):
            if manifest["added_snapshot_id"] == snapshot["snapshot-id"]:
                for entry in records(manifest["manifest_path"]):
                    if entry["status"] == 2:
                        removed[stored(entry["data_file"]["file_path"])] = snapshot["timestamp-ms"]
    assert removed
    names = frozenset(removed)

    def told(older_than_ms: int, now: int) -> frozenset[str]:
        rows = [
            row
            for files in reached(ours.retention, ours.retention.roots(Retention(now, older_than_ms)))
            for row in files.to_pylist()
        ]
        return frozenset(row["name"] for row in rows if not row["needed"]) & names

    last = max(removed.values())
    assert told(0, last + 1) == frozenset()
    assert told(1, last + 1) == {name for name, removed_ms in removed.items() if removed_ms == last}
    assert told(1000 * OLD_DAYS * DAY_MS, last + 1) == names


def test_a_manifest_with_fewer_entries_than_its_list_counts_is_evidence(table: Table) -> None:
    """A container that is cut between two blocks is a valid one."""
    ours = opened(table)
    (source, *_) = (each for root in ours.retention.roots(EVERY_FILE) for each in ours.retention.reach(root).sources)
    assert isinstance(source, ManifestFiles)
    path = Path("/" + source.name)
    data = path.read_bytes()
    assert data[-16:] == data[data.index(data[-16:]) :][:16]
    path.write_bytes(data[: data.index(data[-16:]) + 16])
    with pytest.raises(CorruptMetadata, match=r"files as its list counts, found 0, 0, 0"):
        list(ours.retention.live(source))
    path.write_bytes(b"Obj\1 none")
    with pytest.raises(CorruptMetadata, match=path.name):
        list(ours.retention.live(source))
    path.unlink()
    with pytest.raises(MissingFile, match=path.name):
        list(ours.retention.live(source))


@pytest.mark.parametrize("what", ["manifest-list", "manifest", "data"])
def test_a_missing_file_stops_the_sweep(what: str, table: Table) -> None:
    document = table.document()
    aged(folder(table))
    left = planted(table, f"data/00000-0-{UUID}-00001.parquet")
    path = document["snapshots"][-1]["manifest-list"]
    if what != "manifest-list":
        path = next(records(path))["manifest_path"]
    if what == "data":
        path = next(entry for entry in records(path) if entry["status"] != 2)["data_file"]["file_path"]
    Path("/" + stored(path)).unlink()
    before = listed(table)
    with pytest.raises(EvidenceError, match=stored(path).rpartition("/")[2]):
        swept(table, SweepMode.DELETE)
    assert left <= before == listed(table)


def test_unreadable_metadata_stops_the_sweep(table: Table) -> None:
    aged(folder(table))
    planted(table, f"data/00000-0-{UUID}-00001.parquet")
    before = listed(table)
    document = table.document()
    for broken in (
        {"snapshots": [{**document["snapshots"][0], "manifest-list": None}]},
        {"snapshots": "none"},
        {"metadata-log": [{"timestamp-ms": 0}]},
        {"statistics": [{"snapshot-id": 1}]},
    ):
        rewritten(table, **{**document, **broken})
        with pytest.raises(CorruptMetadata):
            swept(table, SweepMode.DELETE)
    table.metadata.write_text("{")
    with pytest.raises(CorruptMetadata):
        swept(table, SweepMode.DELETE)
    assert listed(table) == before


@pytest.mark.parametrize(
    "broken", [{"manifest-list": "ftp://host/lake/x.avro"}, {"key-id": "k"}, {"manifest-list": None, "manifests": []}]
)
def test_snapshots_that_cannot_be_reported_are_refused(broken: dict[str, object], table: Table) -> None:
    document = table.document()
    *others, last = document["snapshots"]
    last = {key: value for key, value in {**last, **broken}.items() if value is not None}
    rewritten(table, snapshots=[*others, last])
    with pytest.raises(RefusedTable):
        swept(table)


def test_the_same_file_is_named_the_same_however_it_is_spelled() -> None:
    spelled = ("/lake/db/t/a b%25", "file:/lake/db/t/a b%25", "file:///lake/db/t/a b%25", "file:///lake//db/t///a b%25")
    assert {stored_name(each) for each in spelled} == {"lake/db/t/a b%25"}


def test_live_files_elsewhere_are_nobodys_orphans(table: Table) -> None:
    """Files that were added from other folders, and that the sweep neither lists nor misses."""
    document = table.document()
    log = [*document.get("metadata-log", ()), {"timestamp-ms": 1, "metadata-file": "file:/elsewhere/x.metadata.json"}]
    rewritten(table, **{**document, "metadata-log": log})
    aged(folder(table))
    assert "elsewhere/x.metadata.json" in live_names(opened(table).retention)[1]
    assert not {name for name in swept(table).orphans if name.startswith("elsewhere")}


def test_a_table_without_snapshots_has_its_metadata(table: Table) -> None:
    document = table.document()
    empty = {"snapshots": [], "refs": {}, "current-snapshot-id": -1, "snapshot-log": [], "statistics": []}
    table.metadata.write_text(json.dumps({**document, **empty, "metadata-log": []}))
    aged(folder(table))
    (root,) = opened(table).retention.roots(EVERY_FILE)
    assert root.version is None
    assert swept(table).orphans.keys() == listed(table) - {stored(table.metadata)}


def test_roots_of_others_are_no_roots_of_this_table(table: Table) -> None:
    with pytest.raises(TypeError, match="a root of an Iceberg table"):
        opened(table).retention.reach(Root("version 1", 1))
    with pytest.raises(TypeError, match="a manifest of an Iceberg table"):
        list(opened(table).retention.live("manifest"))


# A folder by two names


def test_a_live_file_in_another_bucket_has_its_whole_location_for_a_name(table: Table) -> None:
    """Which may be an alias of this one: access points have names of their own."""
    machine = LocalStorage("/")
    assert live_module._here(machine, "s3://alias/t/a.parquet") == ("s3://alias/t/a.parquet", False)
    assert live_module._here(machine, "file:/t/a.parquet") == ("t/a.parquet", True)
    sources = [
        source
        for root in opened(table).retention.roots(EVERY_FILE)
        for source in opened(table).retention.reach(root).sources
    ]
    for source in sources:
        assert isinstance(source, ManifestFiles)
        found = [batch.to_pylist() for batch in live_module.live(machine, source)]
        alias = [batch.to_pylist() for batch in live_module.live(cast(Any, Bucket()), source)]
        for row in (row for rows in found for row in rows):
            row |= {"name": f"file:/{row['name']}", "needed": False}
        assert alias == found
    assert sources


class Bucket:
    """This machine's files, in a store that metadata does not name."""

    root = "s3://here"

    def read(self, name: str) -> bytes:
        return Path("/" + name).read_bytes()


def test_a_table_folder_by_two_names_keeps_its_files(tmp_path: Path) -> None:
    """Metadata has files by the name that a link points to, the table is opened by the link's."""
    (tmp_path / "real/db").mkdir(parents=True)
    (tmp_path / "lake").symlink_to(tmp_path / "real")
    warehouse = Warehouse("linked", tmp_path / "lake")
    with configured(warehouse):
        catalog = SqlCatalog("linked", uri=f"sqlite:///{warehouse.database}", warehouse=warehouse.location)
        catalog.create_namespace("db")
        data = pa.table({"id": pa.array([1], pa.int64())})
        made = catalog.create_table("db.t", data.schema, f"{warehouse.location}/db/t")
        made.append(data)
        for properties in (
            {"write.data.path": f"file://{tmp_path}/real/db/t/data"},
            {"write.data.path": f"{made.location()}/data"},
        ):
            with made.transaction() as change:
                change.set_properties(properties)
            made.append(data)
        table = warehouse.table()
        aged(tmp_path / "real")
        before = listed(table)
        for mode in SweepMode:
            with pytest.raises(EvidenceError, match=r"two names: .*/lake/db/t/data/.* and .*/real/db/t/data/"):
                swept(table, mode)
        assert {name for name in listed(table) if "_nightkeep" not in name} == before
        assert catalog.load_table("db.t").scan().to_arrow().num_rows == 3
