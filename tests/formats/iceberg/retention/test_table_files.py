"""Where files of an Iceberg table may be, and which names are an engine's or ours."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.catalog_world import address_of
from tests.formats.iceberg.runs import configured, folder, opened
from tests.formats.iceberg.sweeping import UUID, rewritten, swept

from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.retention import table_files as module
from nightkeep.formats.iceberg.retention.table_files import find_table_files
from nightkeep.model import Address
from nightkeep.protocol.table_files import TableFiles, refuse_changes
from nightkeep.retention.orphans.classify import NESTED, classify
from nightkeep.storage import LocalStorage

HOME = "file:///lake/db/t"


def of(properties: Mapping[str, str] | None = None, *, fields: tuple[str, ...] = (), home: str = HOME) -> TableFiles:
    """Of a table that is nowhere."""
    raw: dict[str, Any] = {
        "format-version": 2,
        "table-uuid": UUID,
        "location": home,
        "properties": dict(properties or {}),
        "partition-specs": [{"spec-id": 0, "fields": [{"name": name} for name in fields]}],
    }
    address = Address("iceberg", "lake/db.t", "db.t")
    return find_table_files(address, LocalStorage("/"), (raw, f"{home}/metadata/00001-{UUID}.metadata.json"))


def kinds(found: TableFiles, *names: str) -> list[str | None]:
    frame = pl.DataFrame({"name": list(names)}, schema={"name": pl.String})
    seen = {row["name"]: row["kind"] for row in classify(frame, found).to_dicts()}
    return [seen.get(name) for name in names]


KNOWN = {
    # Java's, of Spark, Flink and Kafka Connect, with Hive's operations.
    f"data/00000-5-{UUID}-0-00001.parquet": "data",
    f"data/00000-5-{UUID}-00001.orc": "data",
    f"data/day=2026-11-01/00012-0-{UUID}-00003.avro": "data",
    f"data/a+b=%C3%A4%2F/00012-0-{UUID}-00003.parquet": "data",
    f"data/00000-5-{UUID}-00001-deletes.parquet": "deletes",
    f"data/00000-5-{UUID}-00001-deletes.puffin": "vectors",
    f"data/0011/1010/0101/11110000/day=1/00000-5-{UUID}-00001.parquet": "data",
    f"data/0011/1010/0101/11110000-00000-5-{UUID}-00001.parquet": "data",
    f"data/00000-0-root_20261101_{UUID}-job_1-00001.parquet": "data",
    # pyiceberg's, Trino's, DuckDB's, Impala's, Spark's own.
    f"data/00000-0-{UUID}.parquet": "data",
    f"data/20261101_010203_00004_abcde-{UUID}.parquet": "data",
    f"data/{UUID}.parquet": "data",
    f"data/{UUID}_1234_data.0.parq": "data",
    f"data/part-00000-{UUID}-c000.snappy.parquet": "data",
    # Ours.
    "data/00000-nk-0123456789abcdef-89abcdef-11be064d-00112233.parquet": "data",
    "data/00001-nk-0123456789abcdef-table-11be064d-00112233-zorder.parquet": "data",
    "data/00001-nk-0123456789abcdef-89abcdef-11be064d-00112233-deletes.parquet": "deletes",
    "data/00001-nk-0123456789abcdef-89abcdef-11be064d-00112233-deletes.puffin": "vectors",
    "metadata/nk-0123456789abcdef-11be064d-77-m0.avro": "manifest",
    "metadata/snap-77-nk-0123456789abcdef-11be064d.avro": "manifest-list",
    "metadata/nk-0123456789abcdef-11be064d-77.snapshot.json": "staged",
    # Metadata.
    f"metadata/{UUID}-m12.avro": "manifest",
    f"metadata/optimized-m-{UUID}.avro": "manifest",
    "metadata/00112233445566778899aabbccddeeff-0a1b-00000-0-17-00001.avro": "manifest",
    f"metadata/snap-123-1-{UUID}.avro": "manifest-list",
    f"metadata/00017-{UUID}.metadata.json": "metadata",
    f"metadata/00017-{UUID}.gz.metadata.json": "metadata",
    f"metadata/00017-{UUID}.metadata.json.gz": "metadata",
    f"metadata/123-{UUID}.stats": "statistics",
    f"metadata/20261101_010203_00004_abcde-{UUID}.stats": "statistics",
    f"metadata/{UUID}.puffin": "statistics",
    f"metadata/partition-stats-123-{UUID}.parquet": "partition-statistics",
}
NOT_OURS = (
    "metadata/version-hint.text",
    "metadata/v12.metadata.json",
    f"metadata/.00017-{UUID}.metadata.json.crc",
    f"metadata/00017-{UUID}.metadata.json.bak",
    f"metadata/deeper/snap-123-1-{UUID}.avro",
    "data/export.parquet",
    f"data/.00000-5-{UUID}-00001.parquet.crc",
    f"data/_00000-5-{UUID}-00001.parquet",
    f"data/.hidden-{UUID}.parquet",
    f"data/_temporary/0/00000-5-{UUID}-00001.parquet",
    f"data/.staging/00000-5-{UUID}-00001.parquet",
    f"data/00000-5-{UUID}-00001.csv",
    f"_nightkeep/quarantine/r/00000-5-{UUID}-00001.parquet",
    "README.md",
    "data/_SUCCESS",
    # Copies that somebody keeps, and exports of engines that name files so.
    f"00000-5-{UUID}-00001.parquet",
    f"backup-before-migration/00000-5-{UUID}-00001.parquet",
    f"backup/data/day=1/00000-5-{UUID}-00001-deletes.parquet",
    f"exports/2026/part-00000-{UUID}-c000.snappy.parquet",
    f"month=1/00000-5-{UUID}-00001.parquet",
    f"day=1/backup/00000-5-{UUID}-00001.parquet",
    f"0011/1010/00000-5-{UUID}-00001.parquet",
    f"0011/1010/0101/11110000/backup/00000-5-{UUID}-00001.parquet",
)
IN_HOME = (
    f"day=1/00000-5-{UUID}-00001.parquet",
    f"day=1/_hour+of=2/{UUID}_1234_data.0.parq",
    f"0011/1010/0101/11110000/00000-5-{UUID}-00001-deletes.puffin",
    f"0011/1010/0101/11110000/day=1/00000-5-{UUID}-00001.parquet",
    f"0011/1010/0101/11110000-00000-5-{UUID}-00001.parquet",
)


def test_names_of_engines_and_ours_are_known() -> None:
    assert dict(zip(KNOWN, kinds(of(), *(f"lake/db/t/{name}" for name in KNOWN)), strict=True)) == KNOWN


def test_other_names_are_never_touched() -> None:
    found = kinds(of(), *(f"lake/db/t/{name}" for name in NOT_OURS))
    assert {name: kind for name, kind in zip(NOT_OURS, found, strict=True) if kind} == {}


def test_data_in_the_tables_own_folder_is_known_by_folders_that_writers_make() -> None:
    names = [f"lake/db/t/{name}" for name in IN_HOME]
    assert kinds(of(fields=("day", "_hour of")), *names) == ["data", "data", "vectors", "data", "data"]
    others = [f"lake/db/t/{name}" for name in NOT_OURS]
    assert {*kinds(of(fields=("day", "_hour of")), *others)} == {None}
    # A table without partitions has none of their folders.
    assert kinds(of(), *names) == [None, None, "vectors", None, "data"]


@pytest.mark.parametrize("path", [HOME, f"{HOME}/"])
def test_data_that_a_property_puts_into_the_tables_own_folder_is_known(path: str) -> None:
    found = of({"write.data.path": path}, fields=("day",))
    file = f"00000-5-{UUID}-00001.parquet"
    names = [f"lake/db/t/{name}{file}" for name in ("", "day=1/", "data/x/", "backup/", "day=1/backup/")]
    assert kinds(found, *names) == ["data", "data", "data", None, None]


def test_folders_of_hidden_partition_fields_are_the_tables() -> None:
    file = f"00000-5-{UUID}-00001.parquet"
    found = of(fields=("_day", ".b c", "plain"))
    names = [f"lake/db/t/data/{folder}/{file}" for folder in ("_day=1", ".b+c=2", "_other=1", "_day", "plain=3")]
    assert kinds(found, *names) == ["data", "data", None, None, "data"]


def test_folders_that_properties_name_are_the_tables_if_they_name_them() -> None:
    file = f"00000-5-{UUID}-00001.parquet"
    found = of({"write.data.path": "file:/fast/db/t/files", "write.metadata.path": "file:/fast/shared"})
    names = [f"fast/db/t/files/x=1/{file}", f"fast/shared/snap-1-1-{UUID}.avro", f"lake/db/t/data/{file}"]
    assert kinds(found, *names) == ["data", None, "data"]
    found = of({"write.metadata.path": "file:/fast/db/t"})
    assert kinds(found, f"fast/db/t/snap-1-1-{UUID}.avro", f"fast/db/t/{file}") == ["manifest-list", None]


def test_of_a_folder_of_many_tables_only_what_names_this_one() -> None:
    found = of({"write.object-storage.path": "file:/everybody"})
    file, hashed = f"00000-5-{UUID}-00001.parquet", "0011/1010/0101/11110000"
    names = [f"everybody/{hashed}/{path}/{file}" for path in ("db/t", "db/t/day=1", "db/u", "other/t", "x/db/t")]
    assert kinds(found, *names) == ["data", "data", None, None, None]
    assert kinds(of({"write.data.path": "file:/lake"}), f"lake/db/u/data/{file}", f"lake/{file}") == [None, None]


def test_what_is_outside_of_the_table_may_be_shared() -> None:
    """With a table of another catalog whose location ends alike."""
    outside = {
        "write.data.path": "file:/fast/db/t/files",
        "write.object-storage.path": "file:/everybody",
        "write.folder-storage.path": f"{HOME}/deeper",
        "write.metadata.path": "file:/fast/db/t/versions",
    }
    found = {place.folder: place.shared for place in of(outside).places}
    assert found == {
        "lake/db/t": False,
        "fast/db/t/files": True,
        "everybody": True,
        "lake/db/t/deeper": False,
        "lake/db/t/metadata": False,
        "fast/db/t/versions": True,
    }


def test_folders_of_other_tables_are_recognised_by_their_metadata() -> None:
    signs = {
        "data/u/metadata/00000-1.metadata.json": "data/u",
        "u/v/metadata/v3.metadata.json": "u/v",
        "u/metadata/version-hint.text": "u",
        "d/_delta_log/00000000000000000000.json": "d",
        "p/schema/schema-0": "p",
        "q/snapshot/snapshot-1": "q",
        "h/.hoodie/hoodie.properties": "h",
        f"metadata/00017-{UUID}.metadata.json": None,
        "data/metadata.json": None,
    }
    frame = pl.DataFrame({"name": [f"lake/db/t/{name}" for name in signs]})
    found = {row["name"].removeprefix("lake/db/t/"): row[NESTED] for row in classify(frame, of()).to_dicts()}
    expected = {name: None if sign is None else f"lake/db/t/{sign}/" for name, sign in signs.items()}
    assert found == expected


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1))
def test_a_quoted_name_is_that_name_alone(name: str) -> None:
    pattern = module._quoted(name)
    assert re.fullmatch(pattern, name)
    others = [name, f"{name}x", f"x{name}", name[1:]]
    assert pl.Series(others).str.contains(rf"\A(?:{pattern})\z").to_list() == [other == name for other in others]


@given(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=8),
    st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=8),
)
def test_a_context_matches_its_own_table(namespace: str, table: str) -> None:
    if {".", ".."} & {namespace, table}:
        return
    found = of({"write.object-storage.path": "file:/everybody"}, home=f"file:///lake/{namespace}/{table}")
    name = f"everybody/0011/1010/0101/11110000/{namespace}/{table}/00000-5-{UUID}-00001.parquet"
    assert kinds(found, name) == ["data"]


# Tables that are somewhere


@pytest.fixture
def table(golden: Callable[[str], Table], iceberg: Warehouse) -> Iterator[Table]:
    with configured(iceberg):
        yield golden("history_v2")


def test_a_table_whose_files_nobody_may_delete_is_refused(table: Table) -> None:
    rewritten(table, properties={**table.document()["properties"], "gc.enabled": "FALSE"})
    with pytest.raises(RefusedTable, match=r"gc\.enabled"):
        opened(table).retention.table_files()


def test_a_catalog_that_does_not_report_the_metadata_file_is_refused(table: Table) -> None:
    with pytest.raises(RefusedTable, match="current one"):
        find_table_files(address_of(table), LocalStorage("/"), (table.document(), ""))


def test_later_format_versions_are_refused_and_metadata_of_the_first_releases_is_not_changed(table: Table) -> None:
    location = f"file://{table.metadata}"
    with pytest.raises(RefusedTable, match="above 3"):
        find_table_files(address_of(table), LocalStorage("/"), ({**table.document(), "format-version": 4}, location))
    found = find_table_files(
        address_of(table), LocalStorage("/"), ({**table.document(), "format-version": 1, "schemas": None}, location)
    )
    with pytest.raises(RefusedTable, match="metadata of the first releases"):
        refuse_changes(found)
    refuse_changes(opened(table).retention.table_files())


def test_a_folder_of_two_tables_is_refused(table: Table) -> None:
    other = folder(table) / "metadata" / f"00000-{UUID}.metadata.json"
    other.write_text('{"table-uuid": "another"}')
    with pytest.raises(RefusedTable, match="the metadata of another table, another"):
        swept(table)
    other.write_text('{"table-uuid": "ano')
    assert opened(table).retention.table_files().home == str(folder(table))[1:]


def test_metadata_of_this_very_table_is_no_sign_of_another(table: Table) -> None:
    (folder(table) / "metadata" / f"00099-{UUID}.metadata.json").write_bytes(table.metadata.read_bytes())
    assert opened(table).retention.table_files().places[0].folder == str(folder(table))[1:]


def test_places_are_the_tables_folder_and_its_metadata(table: Table) -> None:
    home = str(Path(folder(table)))[1:]
    found = opened(table).retention.table_files()
    assert [place.folder for place in found.places] == [home, f"{home}/metadata"]
    assert (found.home, found.by_bare_name) == (home, False)
