"""Sample tables of all formats in a bucket: planned, rewritten, proven, published and checked there by one session.

The tasks read and write the bucket by themselves, the check reads it through S3A; other engines judge what came of it,
on S3 where they can, and over the folder that is behind the server.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from samples.iceberg_places import place
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.lake_rows import rows_of
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Scan
from tests.drivers.s3_server import Bucket, S3Server
from tests.drivers.s3a import s3a_jars
from tests.drivers.toolchain import FEW_ROWS
from tests.object_store.bucket_tables import (
    SAMPLES,
    catalog_environment,
    delta_rs_storage,
    place_iceberg,
    s3_properties,
    upload,
)

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[2]
POLICY = """\
version: 1
tables:
  - {{name: orders, table: "paimon:{bucket}/shop%20.db/orders", writers: conditional}}
  - {{name: clicks, table: "delta:{bucket}/clicks a b", writers: conditional}}
  - {{name: ice, table: "iceberg:lake/shop.orders"}}
  - {{name: ice3, table: "iceberg:lake/shop.customers", operations: [persist-deletes]}}
"""
TABLES = ("orders", "clicks", "ice", "ice3")


@dataclass(frozen=True)
class Night:
    """What one session did with the tables of a bucket."""

    bucket: Bucket
    database: Path
    endpoint: str
    documents: dict[tuple[str, str], Any]
    log: str


@pytest.fixture(scope="module")
def night(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    folder, bucket = tmp_path_factory.mktemp("night"), s3_server.bucket()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment().items():
            patch.setenv(name, value)
        upload(SAMPLES / "paimon" / "shop.db" / "orders", bucket, "shop%20.db/orders")
        upload(SAMPLES / "delta" / "shop.db" / "clicks", bucket, "clicks a b")
        database = place_iceberg(bucket, folder, s3_server.endpoint, scheme="s3a")
        for name, value in catalog_environment(database).items():
            patch.setenv(name, value)
        policy = folder / "tables.yaml"
        policy.write_text(POLICY.format(bucket=bucket.uri))
        done = run_night(policy)
        assert done.returncode == 0, done.stderr[-6000:]
        documents = {(each["table"], each["operation"]): each for each in json.loads(done.stdout)}
        yield Night(bucket, database, s3_server.endpoint, documents, done.stderr)


def run_night(policy: Path) -> subprocess.CompletedProcess[str]:
    jars = ",".join(map(str, s3a_jars()))
    settings = " ".join(f"--conf {name}={value}" for name, value in FEW_ROWS.items())
    environment = {
        **os.environ,
        "PYSPARK_SUBMIT_ARGS": f"--jars {jars} {settings} pyspark-shell",
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'jobs'}",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-m", "tests.object_store.night_on_s3", str(policy), *TABLES]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("table", "operation"),
    [
        ("orders", "upgrade"),
        ("clicks", "optimize"),
        ("ice", "persist-deletes"),
        ("ice", "optimize"),
        ("ice3", "persist-deletes"),
    ],
)
def test_a_table_in_a_bucket_is_maintained_and_checked(night: Night, table: str, operation: str) -> None:
    found = night.documents[table, operation]
    assert (found["outcome"], found["reason"]) == ("verified", None)
    assert found["expectations"]["status"] == "passed", found["expectations"]


def test_delta_rs_on_s3_and_duckdb_behind_it_read_what_delta_rs_read_before(night: Night, lakes: Lakes) -> None:
    before = lakes.delta_rs_read(SAMPLES / "delta" / "shop.db" / "clicks")
    # delta-rs decodes a location, and one with a percent sign twice.
    found = lakes.delta_rs_read(f"{night.bucket.uri}/clicks%20a%20b", storage=delta_rs_storage(night.endpoint))
    assert found == before
    assert lakes.duckdb_read(night.bucket.folder / "clicks a b") == before


def test_java_reads_behind_the_server_what_it_read_before(night: Night, paimon_java: PaimonJava) -> None:
    before = paimon_java.read(SAMPLES / "paimon" / "shop.db" / "orders", Scan(options=MERGE_ON_READ))
    found = paimon_java.read(night.bucket.folder / "shop%20.db" / "orders")
    assert sorted(found.rows) == sorted(before.rows) and found.rows


@pytest.mark.parametrize("name", ["orders", "customers"])
def test_pyiceberg_reads_on_s3_what_java_read_before(
    night: Night, name: str, iceberg_java: IcebergJava, tmp_path: Path
) -> None:
    place(SAMPLES / "iceberg", tmp_path / "lake")
    before = iceberg_java.read(Warehouse("lake", tmp_path / "lake").table(f"shop.{name}"))
    catalog = SqlCatalog("lake", uri=f"sqlite:///{night.database}", **s3_properties(night.endpoint))
    try:
        found = rows_of(catalog.load_table(f"shop.{name}").scan().to_arrow()).ordered()
        location = catalog.load_table(f"shop.{name}").metadata_location
    finally:
        catalog.close()
    assert found.rows == before.ordered().rows and found.rows
    # The table's own spelling, wherever we read it from.
    assert location.startswith("s3a://")


def test_no_probe_and_no_staged_file_is_left(night: Night) -> None:
    names = [str(path.relative_to(night.bucket.folder)) for path in night.bucket.folder.rglob("*") if path.is_file()]
    assert not [name for name in names if "probe" in name or name.endswith((".tmp", ".snapshot.json"))]
