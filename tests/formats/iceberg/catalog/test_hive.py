"""Iceberg tables in a Hive metastore: whole runs, races of commits by lock and by condition, and what is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hive_metastore.ttypes import UnlockRequest
from pyiceberg.catalog.hive import HiveCatalog
from tests.drivers.hive_metastore import HiveMetastore
from tests.formats.iceberg.catalog_world import next_snapshot
from tests.formats.iceberg.pyiceberg_tables import (
    NAME,
    assert_one_of_many_wins,
    assert_races_with_pyiceberg_lose_nothing,
    care_for,
    handle,
    made,
    rows,
    upgrade,
)

import nightkeep
from nightkeep.errors import AddressError, Unreachable
from nightkeep.formats.iceberg.catalog import hive_pointers
from nightkeep.formats.iceberg.catalog.catalog import open_catalog
from nightkeep.formats.iceberg.catalog.opening import pointers_of
from nightkeep.metastores import hive_connections
from nightkeep.model import Outcome

LAKE = "hives"


@pytest.fixture
def lake(hive_metastore: HiveMetastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a catalog; its table is dropped afterwards, as all tests share the metastore."""
    settings = {"TYPE": "hive", "URI": hive_metastore.uri, "WAREHOUSE": f"file://{tmp_path}/lake"}
    for name, value in {**settings, "HIVE__HIVE2_COMPATIBLE": "true"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{LAKE.upper()}__{name}", value)
    yield LAKE
    catalog = open_catalog(LAKE)
    if catalog.table_exists(NAME):
        catalog.drop_table(NAME)


def parameters() -> dict[str, str]:
    catalog = open_catalog(LAKE)
    assert isinstance(catalog, HiveCatalog)
    with catalog._client as client:
        return dict(client.get_table("db", "events").parameters)


def alter(**changed: str) -> None:
    """Change parameters of the table as any other client may, without a lock."""
    catalog = open_catalog(LAKE)
    assert isinstance(catalog, HiveCatalog)
    with catalog._client as client:
        table = client.get_table("db", "events")
        table.parameters.update(changed)
        client.alter_table("db", "events", table)


@contextmanager
def lock_of_another() -> Iterator[None]:
    catalog = open_catalog(LAKE)
    assert isinstance(catalog, HiveCatalog)
    with catalog._client as client:
        held = client.lock(catalog._create_lock_request("db", "events"))
        try:
            yield
        finally:
            client.unlock(UnlockRequest(lockid=held.lockid))


@pytest.mark.few(1)
@pytest.mark.parametrize("version", [2, 3])
def test_a_table_is_maintained(lake: str, tmp_path: Path, version: int) -> None:
    theirs = made(lake, files=4)
    if version == 3:
        upgrade(lake)
    alter(numRows="1", numFiles="1", owner_of_it="team")
    shown, before = rows(theirs), parameters()
    document = care_for(lake, tmp_path / "reports")
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert rows(theirs) == shown
    after = parameters()
    assert after["previous_metadata_location"] == before["metadata_location"] != after["metadata_location"]
    assert (after["numRows"], after["numFiles"], after["owner_of_it"]) == (str(len(shown)), "1", "team")


def test_tables_claim_the_folders_of_their_metadata(lake: str, tmp_path: Path) -> None:
    made(lake)
    pointers = pointers_of(open_catalog(lake))
    assert pointers is not None
    assert [(claim.table, claim.metadata) for claim in pointers.claims()] == [
        (("db", "events"), parameters()["metadata_location"])
    ]
    document = care_for(lake, tmp_path / "reports")
    assert document.outcome is Outcome.UNCHANGED, document.reason
    swept = nightkeep.sweep(f"iceberg:{lake}/{NAME}", reports=tmp_path / "reports")
    assert "failed" not in str(swept), str(swept)


def test_of_commits_at_once_one_wins(lake: str) -> None:
    made(lake)
    assert_one_of_many_wins(lake)


def test_races_with_pyiceberg_lose_nothing(lake: str) -> None:
    assert_races_with_pyiceberg_lose_nothing(lake, made(lake), rounds=3)


def test_a_writer_without_a_lock_is_not_overwritten(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers may be told to take none (engine.hive.lock-enabled): the metastore itself compares once more."""
    made(lake)
    ours = handle(lake)
    raw, location = ours.load()
    found = hive_pointers._table

    def overtaken(*arguments: Any) -> Any:
        table = found(*arguments)
        alter(metadata_location="file:/of/another.metadata.json")
        return table

    pointers = pointers_of(open_catalog(lake))
    assert pointers is not None
    monkeypatch.setattr(hive_pointers, "_table", overtaken)
    assert not pointers.swap(ours.identifier, old=location, new="file:/ours.metadata.json", after=raw)
    assert parameters()["metadata_location"] == "file:/of/another.metadata.json"
    alter(metadata_location=location)


def test_the_lock_of_another_is_waited_for_and_then_named(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made(lake)
    ours = handle(lake)
    raw, _ = ours.load()
    snapshot = next_snapshot(raw)
    monkeypatch.setattr(hive_pointers, "LOCK_SECONDS", 0.3)
    with (
        lock_of_another(),
        pytest.raises(OSError, match=r"lock of the table within 0.3 s, found it WAITING; SHOW LOCKS"),
    ):
        ours.commit(snapshot, snapshot["parent-snapshot-id"])
    assert not ours.visible(snapshot["snapshot-id"])
    assert ours.commit(snapshot, snapshot["parent-snapshot-id"])


def test_tables_of_other_kinds_are_named(lake: str) -> None:
    made(lake)
    alter(table_type="SOMETHING")
    with pytest.raises(AddressError, match=r"db\.events: expected an Iceberg table, found one of type SOMETHING"):
        handle(lake)
    alter(table_type="ICEBERG", **{"spark.sql.sources.provider": "delta"})
    # Delta's UniForm: its Iceberg metadata is written by Delta alone.
    with pytest.raises(AddressError, match=r"db\.events: expected an Iceberg table, found one of type delta"):
        handle(lake)
    alter(**{"spark.sql.sources.provider": "iceberg"})
    assert handle(lake).load()


def test_the_first_metastore_that_answers_is_asked(
    lake: str, hive_metastore: HiveMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(lake)
    variable = f"PYICEBERG_CATALOG__{LAKE.upper()}__URI"
    monkeypatch.setenv(variable, f"thrift://127.0.0.1:1,{hive_metastore.uri}")
    assert handle(lake).load()
    monkeypatch.setenv(variable, "thrift://127.0.0.1:1")
    with pytest.raises(Unreachable) as raised:
        handle(lake)
    assert str(raised.value).endswith(
        f"expected an answer of thrift://127.0.0.1:1, found connection refused; start it, or set uri of {LAKE} in "
        f".pyiceberg.yaml, or {variable}"
    )
    monkeypatch.setenv(variable, hive_metastore.uri)


def test_a_metastore_is_not_waited_for_longer_than_a_lock_lives() -> None:
    assert hive_connections.COMMIT_SECONDS < 300
