"""Iceberg tables in Glue, as moto's server has it: whole runs, races of commits, and what is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest
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

from nightkeep.errors import AddressError, Unreachable
from nightkeep.formats.iceberg.catalog.catalog import open_catalog
from nightkeep.formats.iceberg.catalog.glue_pointers import GluePointers
from nightkeep.formats.iceberg.catalog.opening import pointers_of
from nightkeep.model import Outcome

LAKE = "glues"
SETTINGS = f"PYICEBERG_CATALOG__{LAKE.upper()}__"


@pytest.fixture
def lake(glue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    settings = {"TYPE": "glue", "GLUE__ENDPOINT": glue, "WAREHOUSE": f"file://{tmp_path}/lake"}
    for name, value in settings.items():
        monkeypatch.setenv(f"{SETTINGS}{name}", value)
    keys = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing", "AWS_REGION": "us-east-1"}
    for name, value in {**keys, "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    yield LAKE
    catalog = open_catalog(LAKE)
    if catalog.table_exists(NAME):
        catalog.drop_table(NAME)


@pytest.mark.few(1)
@pytest.mark.parametrize("version", [2, 3])
def test_a_table_is_maintained(lake: str, tmp_path: Path, version: int) -> None:
    theirs = made(lake, files=4)
    if version == 3:
        upgrade(lake)
    shown = rows(theirs)
    document = care_for(lake, tmp_path / "reports")
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert rows(theirs) == shown
    pointers = pointers_of(open_catalog(lake))
    assert isinstance(pointers, GluePointers)
    assert [(claim.table, claim.metadata) for claim in pointers.claims()] == [
        (("db", "events"), pointers.metadata_location(("db", "events")))
    ]


def test_of_commits_at_once_one_wins(lake: str) -> None:
    made(lake)
    assert_one_of_many_wins(lake)


def test_races_with_pyiceberg_lose_nothing(lake: str) -> None:
    assert_races_with_pyiceberg_lose_nothing(lake, made(lake), rounds=3)


def test_what_is_not_there_and_what_is_something_else_is_named(lake: str) -> None:
    with pytest.raises(AddressError, match="expected a table, found none of that name"):
        handle(lake)
    catalog = open_catalog(lake)
    catalog.create_namespace_if_not_exists("db")
    pointers = pointers_of(catalog)
    assert isinstance(pointers, GluePointers)
    table = {"Name": "events", "Parameters": {"table_type": "HUDI"}}
    pointers.catalog.glue.create_table(DatabaseName="db", TableInput=table)  # type: ignore[typeddict-item]
    with pytest.raises(AddressError, match="expected an Iceberg table, found one of type HUDI"):
        handle(lake)
    pointers.catalog.glue.delete_table(DatabaseName="db", Name="events")


def test_what_to_set_is_reported(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as now:
        now.setenv(f"{SETTINGS}GLUE__ENDPOINT", "http://127.0.0.1:1")
        now.setenv(f"{SETTINGS}GLUE__MAX_RETRIES", "1")
        with pytest.raises(Unreachable, match=r"expected an answer of http://127\.0\.0\.1:1, found connection refused"):
            handle(lake)
    with monkeypatch.context() as now:
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
            now.delenv(name)
        now.setenv(f"{SETTINGS}OTHER", "settings")
        with pytest.raises(AddressError, match="expected a region of Glue, found none; set AWS_REGION"):
            handle(lake)
    with monkeypatch.context() as now:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            now.delenv(name)
        now.setenv("AWS_EC2_METADATA_DISABLED", "true")
        now.setenv(f"{SETTINGS}OTHER", "again")
        with pytest.raises(AddressError, match="expected credentials for Glue, found none; set AWS_ACCESS_KEY_ID"):
            handle(lake)
