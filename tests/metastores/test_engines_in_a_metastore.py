"""Tables that the engines write in a real metastore: what they leave there, and what they read of what we publish."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hive_metastore.ttypes import Table
from tests.discovery.warehouses import policy
from tests.drivers.delta_spark import DeltaSpark
from tests.drivers.hive_metastore import HiveMetastore
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import HiveNamed, Layout, Writer
from tests.drivers.toolchain import FEW_ROWS
from tests.metastores.metastore_world import care_for
from tests.metastores.test_table_kind import EXPECTED, written

from nightkeep.discovery import Found, find_tables
from nightkeep.metastores.entry import MetastoreEntry
from nightkeep.metastores.hive import entries
from nightkeep.metastores.hive_connections import MetastoreConnections
from nightkeep.metastores.table_kind import table_kind
from nightkeep.model import Operation, Outcome
from nightkeep.model.listed_tables import UnlistedPlace

VOLATILE = ("current-s", "view.", "uuid", "transient_lastDdlTime", "numFiles", "totalSize", "numRows", "snapshot-count")


@pytest.fixture
def metastore(hive_metastore: HiveMetastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    yield hive_metastore.uri
    with MetastoreConnections({"uri": hive_metastore.uri}) as client:
        for database in client.get_all_databases():
            for name in client.get_all_tables(database):
                client.drop_table(database, name, False)
            if database != "default":
                client.drop_database(database, False, False)


def found(uri: str, folder: Path) -> Found:
    return find_tables(policy(folder, f"version: 1\ndiscover: [{{hive: '{uri}'}}]\n").discoveries)


@pytest.mark.slow
@pytest.mark.extended
def test_paimon_reads_and_changes_what_is_published(metastore: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    """A commit of rewritten files does not touch the metastore, and nothing there has to follow it."""
    for number, more in enumerate(({}, {"location-in-properties": "true"}, {"table.type": "external"})):
        table = HiveNamed(f"shop.orders{number}", metastore, {"warehouse": f"{tmp_path}/wh", **more})
        options = {"bucket": "1", "deletion-vectors.enabled": "true"}
        place = paimon_java.create_in_hive(table, Layout((("id", "INT"), ("v", "STRING")), ("id",), options=options))
        for version in range(3):
            paimon_java.write(place, [("+I", each, f"v{version}") for each in range(version, 20)], Writer())
        named = f"paimon:{metastore}/{table.table}"
        before = stored(metastore, table.table)
        done = care_for(named, tmp_path / "reports", operation=Operation.UPGRADE)
        assert done.outcome is Outcome.VERIFIED, done.reason
        assert stored(metastore, table.table) == before
        assert len(paimon_java.read_in_hive(table).rows) == 20
        added = {"change": "add_column", "name": "more", "type": "INT"}
        assert paimon_java.alter_in_hive(table, added) == 1
        assert paimon_java.read_in_hive(table).columns == ("id", "v", "more")
    assert [each.location for each in found(metastore, tmp_path).tables] == [
        f"{tmp_path}/wh/shop.db/orders{number}" for number in range(3)
    ]


def stored(uri: str, name: str) -> Table:
    with MetastoreConnections({"uri": uri}) as client:
        return client.get_table(*name.split("."))


@pytest.mark.slow
@pytest.mark.extended
def test_what_the_engines_write_is_what_the_stored_entries_state(
    metastore: str, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    """entries.json has what this makes."""
    spark = {**FEW_ROWS, "spark.sql.catalogImplementation": "hive", "spark.hadoop.hive.metastore.uris": metastore}
    lake = str(tmp_path)
    with DeltaSpark(conf={**spark, "spark.sql.warehouse.dir": f"{lake}/wh"}) as delta:
        delta.sql(
            f"CREATE DATABASE shop LOCATION '{lake}/wh/shop.db'",
            f"CREATE DATABASE elsewhere LOCATION '{lake}/else where'",
            "CREATE TABLE shop.managed (id int, v string) USING delta",
            "INSERT INTO shop.managed VALUES (1, 'a')",
            f"CREATE TABLE shop.external (id int) USING delta LOCATION '{lake}/ext/e x'",
            "ALTER TABLE shop.external RENAME TO shop.renamed",
            "CREATE TABLE elsewhere.spaced (id int) USING delta",
            "CREATE TABLE shop.plain (id int) USING parquet",
            "CREATE TABLE shop.csv (id int) USING csv",
            "CREATE TABLE shop.hivetext (id int) STORED AS TEXTFILE",
            "CREATE TABLE shop.hiveparquet (id int) STORED AS PARQUET",
            "CREATE VIEW shop.v AS SELECT * FROM shop.plain",
        )
        delta.sql(*(f"INSERT INTO shop.managed VALUES ({n}, 'b')" for n in range(6)))
        done = care_for(f"delta:{metastore}/shop.managed", tmp_path / "reports")
        assert done.outcome is Outcome.VERIFIED, done.reason
        assert len(delta.sql("REFRESH TABLE shop.managed", "SELECT * FROM shop.managed").rows) == 7
    catalog = "spark.sql.catalog.ice"
    of_hive = {catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.type": "hive", f"{catalog}.uri": metastore}
    with IcebergSpark(conf={**FEW_ROWS, **of_hive, f"{catalog}.cache-enabled": "false"}) as iceberg:
        iceberg.sql(
            "CREATE TABLE ice.shop.events (id int) USING iceberg",
            *(f"INSERT INTO ice.shop.events VALUES ({n})" for n in range(6)),
            "CREATE TABLE ice.shop.hiveon (id int) USING iceberg TBLPROPERTIES ('engine.hive.enabled'='true')",
        )
        done = care_for(f"iceberg:{metastore}/shop.events", tmp_path / "reports")
        assert done.outcome is Outcome.VERIFIED, done.reason
        assert len(iceberg.sql("SELECT * FROM ice.shop.events").rows) == 6
    layout = Layout((("id", "INT"), ("v", "STRING")))
    for name, keys, more in (
        ("pk", ("id",), {}),
        ("app", (), {"location-in-properties": "true"}),
        ("ext", (), {"table.type": "external"}),
    ):
        options = {"bucket": "1"} if keys else {}
        at = HiveNamed(f"pdb.{name}", metastore, {"warehouse": f"{lake}/pai", **more})
        paimon_java.create_in_hive(at, Layout(layout.columns, keys, options=options))
    told = [each for each in entries({"uri": metastore}) if not isinstance(each, UnlistedPlace)]
    shown = {".".join(each.parts): str(table_kind(each)).replace(lake, "/lake") for each in told}
    assert shown == {name: str(kind) for name, kind in EXPECTED.items()}
    steady = [_steady(each, lake) for each in sorted(told, key=lambda each: each.parts)]
    assert steady == [_steady(each, "/lake") for each in written()]


def _steady(entry: MetastoreEntry, lake: str) -> object:
    """The entry without what differs from run to run."""
    kept = {
        name: value
        for name, value in entry.parameters.items()
        if not name.startswith(VOLATILE) and not name.endswith("metadata_location") and name != "owner"
    }
    value = {"parts": entry.parts, "kind": entry.kind, "location": entry.location, "parameters": kept}
    whole = {**value, "properties": dict(entry.properties), "input_format": entry.input_format}
    return json.loads(json.dumps(whole).replace(lake, "/lake"))
