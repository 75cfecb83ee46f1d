"""Catalogs by name, and commits through them: Iceberg's Java reads what we commit, and decides races with us."""

import gzip
import json
import pickle
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.fault_proxy import Way
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_rest import IcebergRest
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.rest_faults import COMMIT, RestFaults
from tests.formats.iceberg.catalog_world import MACHINE, configure, handle_of, loaded, next_snapshot

from nightkeep.errors import AddressError, CorruptMetadata, RefusedTable, Unreachable
from nightkeep.formats.iceberg.catalog import catalog as catalogs
from nightkeep.formats.iceberg.catalog import metadata_swap, rest_catalog, sql_pointers, update_commit
from nightkeep.formats.iceberg.catalog.catalog import open_catalog, parse_location
from nightkeep.formats.iceberg.catalog.sql_pointers import SqlPointers
from nightkeep.formats.iceberg.format import open_table
from nightkeep.model import Address

COLUMNS = (("id", "long"), ("name", "string"))
ROWS = [[1, "a"], [2, "b"]]
VERSIONS = (2, 3)


def made(java: IcebergJava, table: Table, version: int = 2, **properties: str) -> Table:
    java.create(table, COLUMNS, Layout(format_version=version, properties=properties))
    java.append(table, ROWS)
    return table


@pytest.fixture
def lake(iceberg: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    configure(monkeypatch, iceberg)
    return iceberg


def commits(handle: Any, snapshot: dict[str, Any]) -> bool:
    return bool(handle.commit(snapshot, snapshot["parent-snapshot-id"]))


def rewrite(table: Table, document: dict[str, Any]) -> None:
    """Another content of the current metadata file, also for Java, which keeps checksums beside its files."""
    table.metadata.with_name(f".{table.metadata.name}.crc").unlink()
    table.metadata.write_text(json.dumps(document))


# Names


@pytest.mark.parametrize(
    ("text", "identifier"),
    [
        ("db.t", ("db", "t")),
        ("a.b.t", ("a", "b", "t")),
        ("`a.b`.`c.d`", ("a.b", "c.d")),
        ("db.`t 1`", ("db", "t 1")),
        ("db.t 1", ("db", "t 1")),
        ("`d``b`.t", ("d`b", "t")),
        ("a/b.t", ("a/b", "t")),
    ],
)
def test_a_name_with_dots_is_in_backquotes(text: str, identifier: tuple[str, ...]) -> None:
    handle = parse_location(f"lake/{text}", MACHINE)
    assert handle.identifier == identifier
    assert parse_location(f"lake/{str(handle).removeprefix('lake.')}", MACHINE) == handle


def test_tables_with_dots_in_their_names_are_maintained(iceberg_java: IcebergJava, lake: Warehouse) -> None:
    table = made(iceberg_java, lake.table("db.events"))
    dotted, version = "orders.v2", table.document()["current-snapshot-id"]
    with closing(sqlite3.connect(lake.database)) as connection, connection:
        connection.execute("UPDATE iceberg_tables SET table_name = ?", (dotted,))
    found = open_table(Address("iceberg", f"{lake.name}/db.`{dotted}`", "orders"))
    assert found.snapshot().version == version
    assert found.commits.rollback(7) == f"CALL `{lake.name}`.system.rollback_to_snapshot('`db`.`{dotted}`', 7)"
    with pytest.raises(AddressError, match="found none of that name"):
        open_table(Address("iceberg", f"{lake.name}/db.orders.v2", "orders"))


@pytest.mark.parametrize(
    "location",
    [
        "",
        "lake",
        "lake/",
        "lake/t",
        "/db.t",
        "lake/.t",
        "lake/db.",
        "lake/a..t",
        "lake/`a.t`",
        "lake/`a.t",
        "lake/db.`t",
        "lake/``.t",
        "lake/a`b`.t",
        "lake/`a`b.t",
        "lake/db.t`",
    ],
)
def test_a_location_is_a_catalog_and_a_name_in_a_namespace(location: str) -> None:
    with pytest.raises(AddressError, match=r"expected iceberg:CATALOG/NAMESPACE.TABLE, found"):
        parse_location(location, MACHINE)


def test_a_handle_carries_names_and_no_credentials(lake: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, lake, {"PASSWORD": "sesame"})
    open_catalog(lake.name)
    handle = parse_location(f"{lake.name}/a.b.t", MACHINE)
    assert (handle.catalog, handle.identifier) == (lake.name, ("a", "b", "t"))
    copy = pickle.dumps(handle)
    assert pickle.loads(copy) == handle and b"sesame" not in copy


def test_an_unknown_catalog_is_named_with_those_that_are_known(lake: Warehouse) -> None:
    with pytest.raises(
        AddressError, match=rf"catalog lack: expected .*PYICEBERG_CATALOG__LACK__.* found .*{lake.name}"
    ):
        parse_location("lack/db.t", MACHINE).load()


@pytest.mark.parametrize("name", ["db.t", "db.other", "nowhere.t"])
def test_no_such_table_is_named(iceberg_java: IcebergJava, lake: Warehouse, name: str) -> None:
    made(iceberg_java, lake.table("db.u"))
    with pytest.raises(AddressError, match=rf"{lake.name}.{name}: expected a table, found none"):
        handle_of(lake.table(name)).load()


def test_looking_at_a_database_without_a_catalog_makes_none(lake: Warehouse) -> None:
    lake.folder.mkdir()
    with pytest.raises(AddressError, match="expected a database with Iceberg's tables"):
        handle_of(lake.table()).load()
    with closing(sqlite3.connect(lake.database)) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("sqlite:////nowhere/at/all.db", Unreachable),
        ("http://127.0.0.1:9", Unreachable),
        ("postgresql+nothing://127.0.0.1/x", AddressError),
        ("ftp://127.0.0.1", AddressError),
        ("sqlite:/ /x", AddressError),
    ],
)
def test_a_catalog_that_does_not_open_is_named(
    monkeypatch: pytest.MonkeyPatch, uri: str, error: type[Exception]
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__CLOSED__URI", uri)
    with pytest.raises(error, match="closed"):
        parse_location("closed/db.t", MACHINE).load()


def test_settings_are_those_of_now(
    iceberg_java: IcebergJava, iceberg_warehouse: Callable[[], Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = iceberg_warehouse(), iceberg_warehouse()
    made(iceberg_java, second.table())
    elsewhere = Warehouse(second.name, first.folder)
    elsewhere.folder.mkdir()
    configure(monkeypatch, elsewhere)
    with pytest.raises(AddressError):
        handle_of(second.table()).load()
    configure(monkeypatch, second)
    assert open_catalog(second.name) is open_catalog(second.name)
    assert loaded(second.table()).version == iceberg_java.describe(second.table())["snapshot"]


def test_every_load_asks_the_catalog(iceberg_java: IcebergJava, lake: Warehouse) -> None:
    table = made(iceberg_java, lake.table("a.b.c.t"))
    for row in ([3, "c"], [4, "d"]):
        snapshot = iceberg_java.append(table, [row])
        assert loaded(table).version == snapshot


def test_a_view_is_no_table(iceberg_java: IcebergJava, lake: Warehouse) -> None:
    table = made(iceberg_java, lake.table())
    table.metadata.write_text(json.dumps({"view-uuid": "x", "format-version": 1}))
    with pytest.raises(AddressError, match="expected a table, found a view"):
        handle_of(table).load()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\x1f\x8bzz", gzip.compress(b"1", mtime=0), b"\xff\xfe"])
def test_metadata_that_is_none_is_corrupt(iceberg_java: IcebergJava, lake: Warehouse, data: bytes) -> None:
    table = made(iceberg_java, lake.table())
    table.metadata.write_bytes(data)
    with pytest.raises(CorruptMetadata, match=r"metadata\.json"):
        handle_of(table).load()


# Commits to SQL catalogs


@pytest.mark.parametrize("version", VERSIONS)
def test_java_reads_and_goes_on_after_our_commit(iceberg_java: IcebergJava, lake: Warehouse, version: int) -> None:
    table = made(iceberg_java, lake.table(), version)
    handle = handle_of(table)
    raw, location = handle.load()
    snapshot = next_snapshot(raw)
    assert not handle.visible(7)
    assert commits(handle, snapshot) and handle.visible(7)
    assert iceberg_java.describe(table)["snapshot"] == 7
    assert [list(row) for row in iceberg_java.read(table).rows] == ROWS
    assert iceberg_java.metadata(table)["metadata-log"][-1]["metadata-file"] == location
    iceberg_java.append(table, [[3, "c"]])
    after = iceberg_java.metadata(table)
    assert after["snapshots"][-1]["parent-snapshot-id"] == 7
    assert after.get("next-row-id") == (3 if version == 3 else None)
    assert not commits(handle, snapshot)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_metadata_states_beyond_the_commit_is_kept(
    iceberg_java: IcebergJava, lake: Warehouse, version: int
) -> None:
    table = made(iceberg_java, lake.table(), version)
    iceberg_java.statistics(table)
    iceberg_java.refs(table, {"change": "create_tag", "name": "v1", "snapshot": loaded(table).version})
    document = {**table.document(), "nobody-knows": {"this": [1, None]}}
    document["refs"]["main"]["min-snapshots-to-keep"] = 3
    rewrite(table, document)
    handle = handle_of(table)
    assert commits(handle, next_snapshot(document))
    after = table.document()
    differing = {key for key in after if after[key] != document.get(key)}
    rows = {"next-row-id"} if version == 3 else set()
    assert differing - rows == {
        "current-snapshot-id",
        "refs",
        "last-sequence-number",
        "last-updated-ms",
        "snapshots",
        "snapshot-log",
        "metadata-log",
    }
    assert after["refs"] == {
        "main": {"snapshot-id": 7, "type": "branch", "min-snapshots-to-keep": 3},
        "v1": document["refs"]["v1"],
    }
    assert iceberg_java.metadata(table)["statistics"] == document["statistics"]


def test_compressed_metadata_stays_compressed(iceberg_java: IcebergJava, lake: Warehouse) -> None:
    table = made(iceberg_java, lake.table(), **{"write.metadata.compression-codec": "gzip"})
    handle = handle_of(table)
    raw, location = handle.load()
    assert location.endswith(".gz.metadata.json")
    assert commits(handle, next_snapshot(raw))
    assert table.metadata.name.endswith(".gz.metadata.json") and table.metadata.read_bytes()[:2] == b"\x1f\x8b"
    assert iceberg_java.describe(table)["snapshot"] == 7


def test_versions_are_numbered_on_and_lie_where_the_table_states(
    iceberg_java: IcebergJava, lake: Warehouse, tmp_path: Path
) -> None:
    table = made(iceberg_java, lake.table(), **{"write.metadata.path": f"file://{tmp_path}/elsewhere/"})
    number = int(table.metadata.name[:5])
    assert commits(handle_of(table), next_snapshot(table.document()))
    assert table.metadata.parent == tmp_path / "elsewhere" and int(table.metadata.name[:5]) == number + 1


def test_a_table_registered_by_another_name_gets_names_of_java(iceberg_java: IcebergJava, lake: Warehouse) -> None:
    table = made(iceberg_java, lake.table())
    other = lake.folder / "odd.metadata.json"
    other.write_bytes(table.metadata.read_bytes())
    iceberg_java.register(lake.table("db.u"), other)
    assert commits(handle_of(lake.table("db.u")), next_snapshot(table.document()))
    assert lake.table("db.u").metadata.name.startswith("00000-")


def metadata_files(table: Table) -> set[str]:
    return {file.name for file in table.metadata.parent.glob("*.metadata.json")}


@pytest.mark.parametrize("change", ["append", "property", "branch"])
def test_a_lost_race_leaves_no_file(
    iceberg_java: IcebergJava, lake: Warehouse, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    table = made(iceberg_java, lake.table())
    handle = handle_of(table)
    raw, location = handle.load()
    snapshot = next_snapshot(raw)
    if change == "append":
        iceberg_java.append(table, [[3, "c"]])
    elif change == "property":
        iceberg_java.alter(table, {"change": "set_properties", "properties": {"a": "b"}})
    else:
        iceberg_java.refs(table, {"change": "create_branch", "name": "dev", "snapshot": raw["current-snapshot-id"]})
        iceberg_java.append(table, [[3, "c"]], branch="dev")
    before = metadata_files(table)
    stale = {"snapshot": snapshot, "before": (raw, location)}
    assert not metadata_swap.commit(SqlPointers(open_catalog(lake.name)), handle.identifier, MACHINE, **stale)  # type: ignore[arg-type]
    assert metadata_files(table) == before
    # Asked again on what is current by now: only another property is in nobody's way.
    assert commits(handle, snapshot) == (change == "property")
    assert handle.visible(7) == (change == "property")


def test_of_many_commits_on_one_parent_one_wins(iceberg_java: IcebergJava, lake: Warehouse) -> None:
    table = made(iceberg_java, lake.table(), 3)
    handle = handle_of(table)
    raw, _ = handle.load()
    before = metadata_files(table)
    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(lambda number: commits(handle, next_snapshot(raw, number)), range(10, 18)))
    assert won.count(True) == 1
    assert iceberg_java.describe(table)["snapshot"] == 10 + won.index(True)
    assert len(metadata_files(table) - before) == 1


def test_a_database_that_does_not_answer_leaves_the_outcome_open(
    iceberg_java: IcebergJava, lake: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_pointers, "BUSY_MS", 1)
    table = made(iceberg_java, lake.table())
    handle, before = handle_of(table), metadata_files(table)
    raw, _ = handle.load()
    with closing(sqlite3.connect(lake.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OSError, match=r"expected an answer of catalog .* locked"):
            commits(handle, next_snapshot(raw))
        # In doubt nothing is deleted.
        (new,) = metadata_files(table) - before
        assert not handle.visible(7)
        other.execute("ROLLBACK")
    assert commits(handle, next_snapshot(raw))
    assert new in metadata_files(table)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_first_snapshot_of_a_table(iceberg_java: IcebergJava, lake: Warehouse, version: int) -> None:
    """With a list of no manifests, which a snapshot may have."""
    table, other = lake.table(), made(iceberg_java, lake.table("db.u"), version)
    iceberg_java.create(table, COLUMNS, Layout(format_version=version))
    handle = handle_of(table)
    assert loaded(table).version == -1 and loaded(table).units == ()
    snapshot = {**next_snapshot(other.document()), "parent-snapshot-id": None, "sequence-number": 1}
    snapshot |= {"first-row-id": 0, "added-rows": 2} if version == 3 else {}
    assert not handle.commit(snapshot, 5)
    assert handle.commit(snapshot, None)
    assert iceberg_java.describe(table)["snapshot"] == 7
    assert [list(row) for row in iceberg_java.read(table).rows] == ROWS


def test_a_database_of_the_first_layout_will_do(iceberg_java: IcebergJava, lake: Warehouse) -> None:
    """JdbcCatalog's jdbc.schema-version V0, its default: no column tells tables from views."""
    table = made(iceberg_java, lake.table())
    with closing(sqlite3.connect(lake.database)) as connection:
        connection.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    assert commits(handle_of(table), next_snapshot(table.document()))
    assert loaded(table).version == 7


# Catalogs that keep metadata themselves


def test_other_catalogs_take_tables_of_the_second_version(
    iceberg_java: IcebergJava, lake: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyiceberg's own commit, as Hive's and Glue's catalogs do it."""
    table, third = made(iceberg_java, lake.table()), made(iceberg_java, lake.table("db.u"), 3)
    monkeypatch.setattr(catalogs, "pointers_of", lambda _: None)
    handle = handle_of(table)
    raw, _ = handle.load()
    snapshot = next_snapshot(raw)
    assert commits(handle, snapshot) and handle.visible(7)
    assert not commits(handle, {**snapshot, "snapshot-id": 8})
    assert not update_commit.commit(
        open_catalog(lake.name),
        open_catalog(lake.name).load_table(handle.identifier),
        raw,
        snapshot={**snapshot, "snapshot-id": 8},
    )
    assert [list(row) for row in iceberg_java.read(table).rows] == ROWS
    with pytest.raises(RefusedTable, match="format version 3 in catalogs other than REST, SQL, Hive and Glue"):
        loaded(third)
    with pytest.raises(AddressError, match="expected a table"):
        handle_of(lake.table("db.none")).load()


@pytest.fixture
def server(
    iceberg_rest: IcebergRest, iceberg: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[RestFaults, Warehouse]]:
    """A REST catalog behind a proxy; its tables are those of the SQLite catalog `iceberg`."""
    with RestFaults(iceberg_rest.serve(iceberg)) as faults:
        warehouse = Warehouse(iceberg.name, iceberg.folder, uri=faults.endpoint)
        configure(monkeypatch, warehouse)
        yield faults, warehouse


@pytest.mark.few(1)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_takes_our_commit(
    iceberg_java: IcebergJava, server: tuple[RestFaults, Warehouse], version: int
) -> None:
    _, warehouse = server
    table = warehouse.table()
    direct = made(iceberg_java, Table(Warehouse(warehouse.name, warehouse.folder), table.name), version)
    iceberg_java.refs(direct, {"change": "create_tag", "name": "v1", "snapshot": loaded(table).version})
    handle = handle_of(table)
    raw, location = handle.load()
    assert raw == direct.document()
    assert location.removeprefix("file:").replace("//", "") == str(direct.metadata)
    snapshot = next_snapshot(raw)
    assert not handle.commit(snapshot, 5)
    assert commits(handle, snapshot) and handle.visible(7)
    assert [list(row) for row in iceberg_java.read(direct).rows] == ROWS
    assert direct.document()["snapshots"][-1] == {**snapshot, "summary": direct.document()["snapshots"][-1]["summary"]}
    assert not commits(handle, {**snapshot, "snapshot-id": 8})
    assert loaded(table).version == 7


def test_a_server_gets_how_long_snapshots_of_main_are_kept(
    iceberg_java: IcebergJava, server: tuple[RestFaults, Warehouse]
) -> None:
    _, warehouse = server
    direct = made(iceberg_java, Table(Warehouse(warehouse.name, warehouse.folder), "db.t"))
    document = direct.document()
    document["refs"]["main"] |= {"min-snapshots-to-keep": 3, "max-snapshot-age-ms": 5, "max-ref-age-ms": 9}
    rewrite(direct, document)
    assert commits(handle_of(warehouse.table()), next_snapshot(document))
    assert direct.document()["refs"]["main"] == {**document["refs"]["main"], "snapshot-id": 7}


@pytest.mark.few(2)
@pytest.mark.in_turn("way")
@pytest.mark.parametrize("status", [0, 500, 502, 503, 504])
@pytest.mark.parametrize("way", [Way.BEFORE, Way.AFTER])
def test_a_lost_answer_leaves_the_outcome_open(
    iceberg_java: IcebergJava, server: tuple[RestFaults, Warehouse], status: int, way: Way
) -> None:
    faults, warehouse = server
    made(iceberg_java, Table(Warehouse(warehouse.name, warehouse.folder), "db.t"))
    handle = handle_of(warehouse.table())
    raw, _ = handle.load()
    faults.fail(status, request=COMMIT, way=way)
    with pytest.raises(OSError, match="expected the catalog's answer to a commit"):
        commits(handle, next_snapshot(raw))
    assert handle.visible(7) == (way is Way.AFTER)


def test_a_server_that_states_nothing_is_not_waited_for(
    iceberg_java: IcebergJava, server: tuple[RestFaults, Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_catalog, "COMMIT_SECONDS", 0.5)
    faults, warehouse = server
    made(iceberg_java, Table(Warehouse(warehouse.name, warehouse.folder), "db.t"))
    handle = handle_of(warehouse.table())
    raw, _ = handle.load()
    with faults.paused(request=COMMIT, way=Way.AFTER), pytest.raises(OSError, match="no answer in time"):
        commits(handle, next_snapshot(raw))
    assert handle.visible(7)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_commit_that_the_server_does_not_take_is_named(
    iceberg_java: IcebergJava, server: tuple[RestFaults, Warehouse], status: int
) -> None:
    faults, warehouse = server
    made(iceberg_java, Table(Warehouse(warehouse.name, warehouse.folder), "db.t"))
    handle = handle_of(warehouse.table())
    raw, _ = handle.load()
    faults.fail(status, request=COMMIT, times=2)
    with pytest.raises(AddressError, match="expected a catalog that takes our commit, found"):
        commits(handle, next_snapshot(raw))
    assert not handle.visible(7)
