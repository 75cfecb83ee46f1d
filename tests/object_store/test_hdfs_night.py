"""A night over what is discovered in HDFS: the jobs of a group care for it, check it by Spark, expire and sweep it."""

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.delta_spark import DeltaSpark
from tests.drivers.hdfs_cluster import HdfsCluster
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Scan
from tests.object_store.bucket_tables import SAMPLES, catalog_environment, upload_to_hdfs

from nightkeep.model import Outcome
from nightkeep.records import CheckStatus, RunDocument, load_history
from nightkeep.storage import open_storage
from nightkeep.storage.hdfs import client as hdfs_client
from nightkeep.storage.hdfs.names import split_hdfs

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]
UUID = "c2d8813c-5e9f-4ab4-8fad-662173002a2f"
POLICY = """\
version: 1
discover:
  - {{paimon: "{place}/paimon"}}
  - {{delta: "{place}/delta", name: "lake.{{table}}"}}
  - {{iceberg: lake, name: "ice.{{table}}"}}
patterns:
  - match: "*"
    sweep: {{mode: delete}}
    expire: {{enabled: true, retain_last: 1}}
"""
TABLES = {
    "shop.orders": f"manifest/manifest-{UUID}-0",
    "lake.clicks": f"part-00000-{UUID}.c000.snappy.parquet",
    "ice.events": f"data/00000-7-{UUID}-00001.parquet",
}
"""What a killed writer left in each."""
WEEKS_AGO_MS = 30 * 24 * 3600 * 1000


@dataclass(frozen=True)
class Lake:
    """Tables in HDFS by their names, and what jobs told of them."""

    places: Mapping[str, str]
    events: Table
    before: Mapping[str, Any]
    told: Mapping[tuple[str, str], RunDocument]


def run_job(script: str, policy: Path, reports: Path) -> None:
    given = [
        "--policy",
        str(policy),
        "--reports",
        str(reports),
        "--run-id-prefix",
        script,
        "--tables",
        ",".join(TABLES),
    ]
    command = [sys.executable, str(ROOT / "jobs" / f"{script}.py"), *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-6000:]


def leave(location: str, name: str) -> None:
    """A file that nobody names, of weeks ago."""
    open_storage(location).put(name, b"left")
    authority, path = split_hdfs(f"{location}/{name}")
    then = time.time_ns() // 1_000_000 - WEEKS_AGO_MS
    hdfs_client.client(authority).set_times(f"/{path}", then, then)


@pytest.fixture(scope="module")
def lake(
    hdfs_cluster: HdfsCluster,
    iceberg_java: IcebergJava,
    delta_spark: DeltaSpark,
    paimon_java: PaimonJava,
    tmp_path_factory: pytest.TempPathFactory,
) -> Lake:
    folder, place = tmp_path_factory.mktemp("night"), hdfs_cluster.folder()
    warehouse = Warehouse("lake", folder / "warehouse")
    places = {"ice.events": f"{place}/ice berg/db/events"}
    for name, sample in (("shop.orders", "paimon/shop.db/orders"), ("lake.clicks", "delta/shop.db/clicks")):
        places[name] = upload_to_hdfs(SAMPLES / sample, f"{place}/{sample}")
    events = warehouse.table("db.events")
    expires = {"history.expire.max-snapshot-age-ms": "1"}
    iceberg_java.create(
        events, (("id", "long"), ("name", "string")), Layout(location=places["ice.events"], properties=expires)
    )
    for number in range(4):
        iceberg_java.append(events, [(number, "a"), (number, None)])
    for name, left in TABLES.items():
        leave(places[name], left)
    before = {
        "shop.orders": sorted(paimon_java.read(places["shop.orders"], Scan(options=MERGE_ON_READ)).rows),
        "lake.clicks": delta_spark.read(places["lake.clicks"]),
        "ice.events": iceberg_java.read(events),
    }
    policy = folder / "tables.yaml"
    policy.write_text(POLICY.format(place=place))
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in catalog_environment(warehouse.database).items():
            patch.setenv(variable, value)
        for script in ("care", "sweep_orphans"):
            run_job(script, policy, folder / "reports")
    told = {(each.table, each.operation): each for each in load_history(str(folder / "reports"))}
    return Lake(places, events, before, told)


@pytest.mark.parametrize(
    ("table", "operation"), [("shop.orders", "upgrade"), ("lake.clicks", "optimize"), ("ice.events", "optimize")]
)
def test_a_discovered_table_is_maintained_and_checked(lake: Lake, table: str, operation: str) -> None:
    found = lake.told[table, operation]
    assert (found.outcome, found.reason) == (Outcome.VERIFIED, None)
    assert found.expectations.status is CheckStatus.PASSED, found.expectations


@pytest.mark.parametrize("table", TABLES)
def test_what_a_killed_writer_left_goes_and_the_rest_is_checked(lake: Lake, table: str) -> None:
    found = lake.told[table, "sweep"]
    assert (found.outcome, found.extra["acted"]) == (Outcome.VERIFIED, {"files": 1, "bytes": 4}), found.reason
    assert found.expectations.status is CheckStatus.PASSED, found.expectations
    assert not open_storage(lake.places[table]).exists(TABLES[table])


def test_old_versions_of_iceberg_go_with_their_files(lake: Lake, iceberg_java: IcebergJava) -> None:
    found = lake.told["ice.events", "expire"]
    assert found.outcome is Outcome.VERIFIED, found.reason
    assert found.expectations.status is CheckStatus.PASSED, found.expectations
    assert len(found.extra["expired"]) == 4
    assert len(open_storage(lake.places["ice.events"]).list("data")) == 1


def test_the_engines_read_there_what_they_read_before(
    lake: Lake, paimon_java: PaimonJava, delta_spark: DeltaSpark, iceberg_java: IcebergJava
) -> None:
    assert sorted(paimon_java.read(lake.places["shop.orders"]).rows) == lake.before["shop.orders"]
    assert delta_spark.read(lake.places["lake.clicks"]) == lake.before["lake.clicks"]
    assert iceberg_java.read(lake.events) == lake.before["ice.events"] and len(iceberg_java.tasks(lake.events)) == 1
    iceberg_java.append(lake.events, [(9, "later")])
    assert len(iceberg_java.read(lake.events).rows) == 9
