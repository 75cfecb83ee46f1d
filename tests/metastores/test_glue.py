"""A Glue catalog, as moto's server has it, as a place where tables are, and as what names them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from pyiceberg.catalog import load_catalog
from tests.discovery.warehouses import policy
from tests.formats.iceberg.pyiceberg_tables import ROWS
from tests.metastores.metastore_world import DELTA, PAIMON, care_for, copied, glue_table

from nightkeep.discovery import Found, find_tables
from nightkeep.errors import AddressError
from nightkeep.limits import LISTED
from nightkeep.metastores import glue as listed_glue
from nightkeep.metastores import located
from nightkeep.model import Address, Outcome

PLACE = "glue://us-east-1"


@pytest.fixture
def client(glue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of a catalog with the database `shop`, of which nothing is left afterwards."""
    environment = {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_ENDPOINT_URL": glue,
        "PYICEBERG_HOME": str(tmp_path),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    made = boto3.client("glue", region_name="us-east-1", endpoint_url=glue)
    made.create_database(DatabaseInput={"Name": "shop"})
    yield made
    for table in made.get_tables(DatabaseName="shop")["TableList"]:
        made.delete_table(DatabaseName="shop", Name=table["Name"])
    made.delete_database(Name="shop")


def found(folder: Path, entry: str = "{glue: us-east-1}") -> Found:
    return find_tables(policy(folder, f"version: 1\ndiscover: [{entry}]\n").discoveries)


def test_tables_of_all_formats_are_found_and_maintained(client: Any, tmp_path: Path) -> None:
    delta, paimon = copied(tmp_path)
    for table in (
        glue_table("clicks", f"file:{delta}", DELTA),
        glue_table("orders", f"file:{paimon}", PAIMON),
        glue_table("plain", "s3://b/plain", {"classification": "json"}),
        glue_table("seen", "", {}, "VIRTUAL_VIEW"),
    ):
        client.create_table(DatabaseName="shop", TableInput=table)
    theirs = load_catalog("theirs", type="glue", **{"glue.region": "us-east-1"})
    events = theirs.create_table("shop.events", ROWS.schema, location=f"file://{tmp_path}/events")
    for _ in range(4):
        events.append(ROWS)
    told = found(tmp_path)
    assert not told.unlistable
    assert [(each.name, each.format, each.location) for each in sorted(told.tables, key=lambda each: each.name)] == [
        ("shop.clicks", "delta", str(delta)),
        ("shop.events", "iceberg", f"{PLACE}/shop.events"),
        ("shop.orders", "paimon", str(paimon)),
    ]
    assert sorted((each.name, each.kind) for each in told.others) == [("shop.plain", "json"), ("shop.seen", "view")]
    for address in (f"iceberg:{PLACE}/shop.events", f"delta:{PLACE}/shop.clicks"):
        done = care_for(address, tmp_path / "reports")
        assert done.outcome is Outcome.VERIFIED, done.reason
    with pytest.raises(AddressError, match=r"shop\.gone: expected a table, found none of that name in glue://"):
        located(Address("delta", f"{PLACE}/shop.gone", "gone"))


def test_many_tables_come_in_pages_up_to_the_limit(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(130):
        client.create_table(DatabaseName="shop", TableInput=glue_table(f"t{number:03}", f"s3a://b/t{number}", DELTA))
    told = found(tmp_path, "{glue: us-east-1, exclude: ['*.t00*']}")
    assert len(told.tables) == 120 and told.tables[-1].location.startswith("s3://b/t")
    monkeypatch.setenv(LISTED.variable, "100")
    told = found(tmp_path)
    assert not told.tables[100:] and "more than the limit of 100" in told.unlistable[0].why


def test_glue_that_is_down_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_glue, "RETRIES", 1)
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ACCESS_KEY_ID": "a",
        "PYICEBERG_HOME": "/",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    told = found(tmp_path)
    assert not told.tables and "Could not connect to the endpoint URL" in told.unlistable[0].why
