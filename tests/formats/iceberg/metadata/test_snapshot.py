"""Snapshots: units and the deletes in their scope as Java plans them, versions and schemas of them, staged ones."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.catalog_world import MACHINE, address_of, configure, handle_of, loaded, next_snapshot
from tests.formats.iceberg.golden_tables import RECIPES
from tests.formats.iceberg.recipe_fixtures import Made
from tests.formats.iceberg.shown import snapshot_of
from tests.support.extended import some_extended

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.iceberg.metadata.content_files import FileContent
from nightkeep.formats.iceberg.metadata.delete_index import index_deletes
from nightkeep.formats.iceberg.metadata.snapshot import NO_SNAPSHOT, IcebergSnapshot, load, load_staged

ORDERS = (("id", "long"), ("day", "date"), ("name", "string"))
READ = sorted(
    name for name, recipe in RECIPES.items() if not recipe.by_spark and not name.startswith("partition_types")
)


@pytest.fixture
def table(iceberg: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Table:
    configure(monkeypatch, iceberg)
    return iceberg.table()


def by_day(java: IcebergJava, table: Table, version: int = 2) -> Table:
    java.create(table, ORDERS, Layout(partition=(("day", "identity"),), format_version=version))
    java.append(table, [[1, "2026-11-01", "a"], [2, "2026-11-02", "b"]])
    return table


def names(snapshot: IcebergSnapshot) -> list[str]:
    return [str(unit.key) for unit in snapshot.units]


def place(delete: dict[str, Any]) -> tuple[str, int | None]:
    return (delete["file_path"], delete.get("content_offset"))


@pytest.mark.few(5)
@pytest.mark.parametrize("name", some_extended(READ, keep=20))
def test_deletes_hold_for_the_files_that_java_applies_them_to(made: Made, iceberg_java: IcebergJava, name: str) -> None:
    table = made(name)
    snapshot = snapshot_of(table)
    planned = {task["file_path"]: task["deletes"] for task in iceberg_java.tasks(table)}
    assert sorted(planned) == sorted(file.path for unit in snapshot.units for file in unit.files)
    for unit in snapshot.units:
        index = index_deletes(unit.positional, unit.equality)
        for file in unit.files:
            kinds = {kind: {place(each) for each in planned[file.path] if each["content"] == kind} for kind in (1, 2)}
            vector = index.vector_of(file)
            positional = [delete for delete, paths in index.positions_of([file]) if file.path in paths]
            ours = {each.identity for each in (*positional, *([vector] if vector else []))}
            assert ours == kinds[FileContent.POSITION_DELETES]
            # Java leaves out what bounds rule out; that is the plan's to do.
            newer = {each.identity for each in index.equality if each.sequence_number > file.sequence_number}
            assert kinds[FileContent.EQUALITY_DELETES] <= newer


@pytest.mark.few(15)
@pytest.mark.parametrize("name", READ)
def test_a_snapshot_states_what_the_table_states(made: Made, iceberg_java: IcebergJava, name: str) -> None:
    table = made(name)
    snapshot, told = snapshot_of(table), iceberg_java.metadata(table)
    assert snapshot.version == (told.get("current-snapshot-id") or NO_SNAPSHOT)
    assert snapshot.next_row_id == told.get("next-row-id")
    if snapshot.version == NO_SNAPSHOT:
        assert (snapshot.units, snapshot.parent_version, snapshot.sequence_number) == ((), None, 0)
        return
    (raw,) = [each for each in told["snapshots"] if each["snapshot-id"] == snapshot.version]
    assert snapshot.sequence_number == raw.get("sequence-number", 0)
    assert snapshot.parent_version == raw.get("parent-snapshot-id")
    assert {**snapshot.summary, "operation": snapshot.operation} == raw["summary"]
    live = [file for unit in snapshot.units for file in unit.files]
    assert str(len(live)) == raw["summary"]["total-data-files"]
    assert str(sum(file.rows for file in live)) == raw["summary"]["total-records"]
    keys = [unit.key for unit in snapshot.units]
    assert keys == sorted(set(keys))
    assert len(snapshot.manifests) == len(iceberg_java.manifests(table))


def test_specs_are_units_of_their_own_and_global_deletes_are_everywhere(made: Made) -> None:
    plain, deleted = snapshot_of(made("specs_v2")), snapshot_of(made("specs_deleted_v2"))
    specs = {unit.spec_id for unit in plain.units}
    assert len(specs) >= 4
    assert {name.partition("/")[0] for name in names(plain)} >= {f"spec-{number}" for number in specs - {0}}
    everywhere = {file.path for unit in deleted.units for file in unit.equality if plain.schema.is_global(file.spec_id)}
    assert everywhere
    for unit in deleted.units:
        assert everywhere <= {file.path for file in unit.equality}
        own = [file for file in unit.equality if file.path not in everywhere]
        assert all((file.spec_id, file.partition) == (unit.spec_id, unit.values) for file in own)
    assert any(len(unit.equality) > len(everywhere) for unit in deleted.units)


def test_partition_columns_are_those_of_all_specs(made: Made) -> None:
    snapshot = snapshot_of(made("specs_v2"))
    assert all(unit.partition.keys() == set(snapshot.partition_columns) for unit in snapshot.units)


# Versions


def test_a_version_is_read_with_the_schema_it_was_written_with(iceberg_java: IcebergJava, table: Table) -> None:
    by_day(iceberg_java, table)
    first = loaded(table).version
    iceberg_java.alter(table, {"change": "rename_column", "name": "name", "to": "title"})
    assert first == loaded(table).version
    second = iceberg_java.append(table, [[3, "2026-11-02", "c"]])
    assert [field.name for field in loaded(table, first).schema.current.fields] == ["id", "day", "name"]
    assert [field.name for field in loaded(table, second).schema.current.fields] == ["id", "day", "title"]
    later = loaded(table)
    again = load(address_of(table), handle_of(table), first, read_as=later.schema)
    assert again.schema == later.schema and again.version == first
    assert [file.rows for unit in again.units for file in unit.files] == [1, 1]
    assert later.parent_version == first and later.summary["added-records"] == "1"


def test_a_snapshot_that_is_gone_is_missing(iceberg_java: IcebergJava, table: Table) -> None:
    by_day(iceberg_java, table)
    first = loaded(table).version
    iceberg_java.append(table, [[3, "2026-11-02", "c"]])
    iceberg_java.expire(table, snapshots=[first])
    with pytest.raises(MissingFile, match=f"snapshot {first}: expected a snapshot that the table keeps, found none"):
        loaded(table, first)
    assert loaded(table).parent_version == first
    assert loaded(table, NO_SNAPSHOT).units == ()


def test_other_branches_are_not_looked_at(iceberg_java: IcebergJava, table: Table) -> None:
    by_day(iceberg_java, table)
    before = loaded(table)
    iceberg_java.refs(table, {"change": "create_branch", "name": "dev", "snapshot": before.version})
    other = iceberg_java.append(table, [[3, "2026-11-03", "c"]], branch="dev")
    assert loaded(table).version == before.version and names(loaded(table)) == names(before)
    assert loaded(table, other).parent_version == before.version
    iceberg_java.append(table, [[4, "2026-11-04", "d"]])
    iceberg_java.refs(table, {"change": "rollback", "snapshot": before.version})
    assert loaded(table).version == before.version


def test_a_partition_whose_last_file_is_taken_is_a_unit_of_that_very_version(
    iceberg_java: IcebergJava, table: Table
) -> None:
    by_day(iceberg_java, table)
    (path,) = [file.path for file in loaded(table).units[0].files]
    iceberg_java.commit(table, kind="overwrite", remove=[path])
    snapshot = loaded(table)
    assert [(str(unit.key), len(unit.files)) for unit in snapshot.units] == [
        ("day=2026-11-01", 0),
        ("day=2026-11-02", 1),
    ]
    iceberg_java.append(table, [[3, "2026-11-02", "c"]])
    assert names(loaded(table)) == ["day=2026-11-02"]


def test_a_partition_of_deletes_alone_is_a_unit(iceberg_java: IcebergJava, table: Table) -> None:
    by_day(iceberg_java, table)
    iceberg_java.cdc(table, [("-D", [9, "2026-11-09", None])], keys=["id", "day"])
    unit = loaded(table).units[-1]
    assert (str(unit.key), unit.files, len(unit.equality)) == ("day=2026-11-09", (), 1)


def test_global_deletes_of_an_empty_table_are_stray(iceberg_java: IcebergJava, table: Table) -> None:
    iceberg_java.create(table, ORDERS)
    iceberg_java.cdc(table, [("-D", [9, None, None])], keys=["id"])
    snapshot = loaded(table)
    assert snapshot.units == () and [file.content for file in snapshot.stray] == [FileContent.EQUALITY_DELETES]
    iceberg_java.append(table, [[1, None, "a"]])
    (unit,) = loaded(table).units
    assert unit.equality == snapshot.stray and loaded(table).stray == ()


# Broken tables


def test_two_vectors_of_a_file_are_corrupt(iceberg_java: IcebergJava, table: Table) -> None:
    by_day(iceberg_java, table, 3)
    (path,) = [file.path for file in loaded(table).units[0].files]
    first = iceberg_java.commit(table, iceberg_java.vectors(table, [(path, 0)]))
    iceberg_java.commit(table, iceberg_java.vectors(table, [(path, 0)], merge=False), base=first)
    with pytest.raises(CorruptMetadata, match="expected one deletion vector"):
        loaded(table)


def test_a_file_that_was_appended_twice_is_corrupt(iceberg_java: IcebergJava, table: Table) -> None:
    by_day(iceberg_java, table)
    written = iceberg_java.rows(table, [[3, "2026-11-02", "c"]])
    iceberg_java.commit(table, written, kind="append")
    iceberg_java.commit(table, written, kind="append")
    with pytest.raises(CorruptMetadata, match="expected a file that is live once"):
        loaded(table)


def test_a_manifest_that_is_gone_is_missing(iceberg_java: IcebergJava, table: Table) -> None:
    by_day(iceberg_java, table)
    manifest = loaded(table).manifests[0]
    MACHINE.delete(manifest.name)
    with pytest.raises(MissingFile):
        loaded(table)


# Staged snapshots


@pytest.mark.parametrize("version", [2, 3])
def test_a_staged_snapshot_reads_as_it_will_once_it_is_published(
    iceberg_java: IcebergJava, table: Table, version: int
) -> None:
    by_day(iceberg_java, table, version)
    iceberg_java.cdc(table, [("+U", [1, "2026-11-01", "z"])], keys=["id", "day"])
    handle, name = handle_of(table), f"{table.warehouse.folder}/staged.json"[1:]
    snapshot = next_snapshot(handle.load()[0])
    if version == 3:
        snapshot["added-rows"] = 5
    MACHINE.put(name, json.dumps(snapshot).encode())
    staged = load_staged(address_of(table), handle, name)
    before = loaded(table)
    assert staged.version == 7 and before.version != 7 and staged.parent_version == before.version
    assert handle.commit(snapshot, before.version)
    published = loaded(table)
    for field in (
        "version",
        "parent_version",
        "sequence_number",
        "timestamp_ms",
        "schema",
        "units",
        "operation",
        "summary",
        "manifests",
        "raw",
        "next_row_id",
        "stray",
    ):
        assert getattr(staged, field) == getattr(published, field), field
    assert staged.next_row_id == (8 if version == 3 else None)
    assert not staged.changes_rows or published.operation != "replace"


def test_a_staged_snapshot_that_is_none_is_corrupt(
    iceberg_java: IcebergJava, table: Table, iceberg_warehouse: Callable[[], Warehouse]
) -> None:
    by_day(iceberg_java, table)
    name = f"{table.warehouse.folder}/staged.json"[1:]
    for data in (b"", b"{}", b'{"snapshot-id": 5}', b'{"snapshot-id": "5", "manifest-list": "/x"}'):
        MACHINE.delete(name)
        MACHINE.put(name, data)
        with pytest.raises(CorruptMetadata):
            load_staged(address_of(table), handle_of(table), name)
