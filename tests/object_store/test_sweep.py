"""Sweeps and expiries of tables of every format in a bucket: what is left over goes, and engines read what they did."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from samples.iceberg_places import CATALOG
from tests.drivers.lake_rows import Rows, rows_of
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Scan
from tests.drivers.s3_faults import S3Faults
from tests.drivers.s3_server import Bucket, S3Server
from tests.object_store.bucket_tables import catalog_environment, delta_rs_storage, place_iceberg, s3_properties
from tests.object_store.swept_tables import UUID, InStore, delta, iceberg, paimon
from tests.support.extended import some_extended

from nightkeep.formats import open_table
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.model import Fingerprint, Outcome, View
from nightkeep.model.sweep_rules import SweepMode

ROOT = Path(__file__).parents[2]
ODD_DAYS = ("a b", "100%", "x/y", "%2F", "\u00e4\u4e16", "q=1", "1+1", "it's & <so>")
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", StringType()))
PER_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))

TABLES = ("paimon", "delta", "iceberg v2", "iceberg v3", "iceberg odd")
_DAY = "day=20758/region=west%3Acoast/bucket-0"
_ODD = "day=a b%2Fc%25/region=1+1 \u00e4/bucket-0"
_MADE = f"00000-7-{UUID}-00001"
LEFT = {
    "paimon": (
        f"{_DAY}/data-{UUID}-0.parquet",
        f"{_ODD}/data-{UUID}-1.parquet",
        f"{_ODD}/changelog-{UUID}-0.parquet",
        f"{_DAY}/.data-{UUID}-5.parquet.{UUID}.tmp",
        f"manifest/manifest-{UUID}-0",
        f"index/index-{UUID}-0",
        f"manifest/manifest-list-{UUID}-0",
        f"manifest/index-manifest-{UUID}-0",
        f"statistics/stat-{UUID}-0",
        f"snapshot/.snapshot-99.{UUID}.tmp",
        f"changelog/.changelog-99.{UUID}.tmp",
    ),
    "delta": (
        f"p=a b%2F0/part-00000-{UUID}.c000.snappy.parquet",
        f"p=%2520/part-00001-{UUID}.c000.snappy.parquet",
        f"p=1+1 \u00e4/part-00002-{UUID}.c000.snappy.parquet",
        f"part-00000-{UUID} \u00e4%20b.parquet",
        f"deletion_vector_{UUID}.bin",
        f"_change_data/cdc-00000-{UUID}.c000.snappy.parquet",
        f"_delta_log/.7.json.{UUID}.tmp",
        f"_delta_log/_commit_{UUID}.json.tmp",
    ),
    "iceberg": (
        f"data/{_MADE}.parquet",
        f"data/day=1+1%20/{_MADE}.parquet",
        f"data/day=a b \u00e4/{_MADE}-deletes.parquet",
        f"data/{_MADE}.puffin",
        f"metadata/{UUID}-m0.avro",
        f"metadata/snap-77-1-{UUID}.avro",
        f"metadata/partition-stats-7-{UUID}.parquet",
        f"metadata/7-{UUID}.stats",
    ),
}
"""By format, what writers leave that die."""
STRANGE = {
    "paimon": (f"{_DAY}/report.txt", "manifest/notes.txt", "README.md", f"{_DAY}/deeper/data-{UUID}-9.parquet"),
    "delta": ("notes.txt", f"backup/part-00000-{UUID}.c000.snappy.parquet", "_hidden/x.parquet"),
    "iceberg": ("data/export.parquet", "README.md", "metadata/notes.avro"),
}
YOUNG = {
    "paimon": (f"{_DAY}/data-{UUID}-90.parquet",),
    "delta": (f"p=a b%2F0/part-00009-{UUID}.c000.snappy.parquet",),
    "iceberg": (f"data/00000-9-{UUID}-00001.parquet",),
}


@dataclass(frozen=True)
class Lake:
    """One bucket of Iceberg tables spelled s3://, another spelled s3a://, and a table of each other format."""

    tables: dict[str, InStore]
    databases: dict[str, Path]
    endpoint: str

    def rows(self, name: str, lakes: Lakes, java: PaimonJava) -> object:
        """As an engine reads them: on S3, or over the folder behind the server."""
        table = self.tables[name]
        if name == "paimon":
            return sorted(java.read(table.folder, Scan(options=MERGE_ON_READ)).rows)
        if name == "delta":
            return delta_rows(table, lakes, self.endpoint)
        if name in ("iceberg v2", "iceberg v3"):
            return fingerprint_of(table)
        return pyiceberg_rows(self.databases[name], self.endpoint, table)


def delta_rows(table: InStore, lakes: Lakes, endpoint: str) -> Rows:
    """By delta-rs on S3, which decodes a location, and DuckDB behind it, which agree."""
    location = table.address.location.replace(" ", "%20")
    found = lakes.delta_rs_read(location, storage=delta_rs_storage(endpoint))
    assert found == lakes.duckdb_read(table.folder) and found.rows
    return found


def fingerprint_of(table: InStore) -> Fingerprint:
    """By our own reader: pyiceberg refuses deletes by key, and no other engine here reads Iceberg on S3."""
    found = open_table(table.address)
    units = found.snapshot().units
    batches = (batch for unit in units for batch in found.gate.rows(unit, found.gate.survivors(unit, View.MERGED)))
    return reduce(add, map(fingerprint, batches), Fingerprint())


def pyiceberg_rows(database: Path, endpoint: str, table: InStore) -> Rows:
    catalog = SqlCatalog(CATALOG, uri=f"sqlite:///{database}", **s3_properties(endpoint))
    try:
        return rows_of(catalog.load_table(f"shop.{table.address.name}").scan().to_arrow()).ordered()
    finally:
        catalog.close()


def odd(bucket: Bucket, database: Path, endpoint: str) -> InStore:
    """pyiceberg's, of the folder as s3a:// and of data as s3:// (what #1981 takes for two places)."""
    catalog = SqlCatalog(CATALOG, uri=f"sqlite:///{database}", **s3_properties(endpoint))
    place = f"{bucket.name}/lake/shop/odd"
    try:
        table = catalog.create_table(
            "shop.odd", SCHEMA, f"s3a://{place}", PER_DAY, properties={"write.data.path": f"s3://{place}/data"}
        )
        for number in range(2):
            table.append(pa.table({"id": [number] * len(ODD_DAYS), "day": [*ODD_DAYS]}))
    finally:
        catalog.close()
    return iceberg(bucket, "odd")


@pytest.fixture(scope="module")
def lake(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment().items():
            patch.setenv(name, value)
        first, second = s3_server.bucket(), s3_server.bucket()
        scratch = [tmp_path_factory.mktemp(name) for name in ("s3", "s3a", "paimon")]
        plain = place_iceberg(first, scratch[0], s3_server.endpoint)
        other = place_iceberg(second, scratch[1], s3_server.endpoint, scheme="s3a")
        tables = {
            "paimon": paimon(first, scratch[2]),
            "delta": delta(first, golden="partition_paths"),
            "iceberg v2": iceberg(first, "orders"),
            "iceberg v3": iceberg(second, "customers"),
            "iceberg odd": odd(first, plain, s3_server.endpoint),
        }
        databases = {"iceberg v2": plain, "iceberg v3": other, "iceberg odd": plain}
        yield Lake(tables, databases, s3_server.endpoint)


@pytest.fixture
def table(lake: Lake, name: str, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> InStore:
    """With the environment that its storage is found by."""
    known = s3_server.environment() | (catalog_environment(lake.databases[name]) if name in lake.databases else {})
    for variable, value in known.items():
        monkeypatch.setenv(variable, value)
    return lake.tables[name]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", some_extended(TABLES, keep=2))
def test_what_is_left_over_goes_comes_back_and_goes_for_good(
    name: str, lake: Lake, table: InStore, lakes: Lakes, paimon_java: PaimonJava
) -> None:
    kind = name.partition(" ")[0]
    table.plant(*STRANGE[kind])
    table.plant(*YOUNG[kind], days=1)
    assert table.swept()[1] == set()
    whole, rows = table.files(), lake.rows(name, lakes, paimon_java)
    planted = table.plant(*LEFT[kind])
    before = table.files()
    assert (len(before), table.swept()[1]) == (len(whole) + len(LEFT[kind]), planted)

    told, _ = table.swept(SweepMode.QUARANTINE)
    assert (told.outcome, told.acted.files, told.failed) == (Outcome.VERIFIED, len(planted), ())
    assert table.files() == whole and table.aside() == sorted(before[each] for each in planted)
    assert lake.rows(name, lakes, paimon_java) == rows
    assert table.swept()[0].outcome is Outcome.UNCHANGED

    back = table.restored()
    assert (back.files, back.conflicts, table.aside()) == (len(planted), (), [])
    assert table.files() == before
    table.age(planted)
    told, orphans = table.swept(SweepMode.DELETE, "weekly-2")
    assert (told.outcome, told.acted.files, orphans) == (Outcome.VERIFIED, len(planted), planted)
    assert table.files() == whole
    assert lake.rows(name, lakes, paimon_java) == rows
    found = table.presence()
    assert found.files and found.opened and not found.faults


def commands(table: InStore, *arguments: str) -> subprocess.CompletedProcess[str]:
    place = f"{table.address.format}:{table.address.location}"
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from nightkeep.commands.app import main; main()",
            *arguments[:1],
            place,
            *arguments[1:],
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "jobs")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_sweeps_a_bucket_and_reports_whole_uris(s3_bucket: Bucket, tmp_path: Path) -> None:
    table = delta(s3_bucket, golden="partition_paths")
    planted = table.plant(*LEFT["delta"])
    reports = str(tmp_path / "reports")
    told = commands(table, "sweep", "--json", "--reports", reports)
    found = json.loads(told.stdout)
    assert (told.returncode, found["outcome"], found["mode"]) == (0, "skipped", "dry-run"), told.stderr
    assert {each["path"] for each in found["orphans"]} == {f"{table.address.location}/{name}" for name in planted}
    assert found["orphans_total"] == len(planted)
    assert found["orphans_bytes"] == sum(each["bytes"] for each in found["orphans"])
    assert planted <= table.files().keys()


@pytest.mark.few(1)
@pytest.mark.parametrize("denied", ["GET .*list-type=2", r"GET .*/0+1\.json"])
def test_the_command_reports_what_the_store_denied(
    denied: str, s3_bucket: Bucket, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = delta(s3_bucket, golden="partition_paths")
    planted = table.plant(*LEFT["delta"])
    with S3Faults(s3_server.endpoint) as faults:
        monkeypatch.setenv("AWS_ENDPOINT_URL", faults.endpoint)
        broken = faults.fail(403, request=denied, times=1_000)
        told = commands(table, "sweep", "--json", "--reports", str(tmp_path / "reports"))
    found = json.loads(told.stdout)
    assert broken.seen and planted <= table.files().keys()
    assert (told.returncode, found["outcome"], found.get("orphans", [])) == (1, "failed", []), told.stderr
    assert table.address.location in found["reason"] and "403" in found["reason"], found["reason"]


# Expiry


def test_old_snapshots_of_paimon_go_from_a_bucket(s3_bucket: Bucket, tmp_path: Path, paimon_java: PaimonJava) -> None:
    table = paimon(s3_bucket, tmp_path, options={"snapshot.num-retained.min": "1"})
    rows = sorted(paimon_java.read(table.folder, Scan(options=MERGE_ON_READ)).rows)
    told = table.expired()
    assert (told.outcome, told.reason) == (Outcome.VERIFIED, None)
    names = sorted(path.name for path in (table.folder / "snapshot").iterdir() if path.is_file())
    assert names == ["EARLIEST", "LATEST", "snapshot-6"]
    assert [(table.folder / "snapshot" / name).read_text() for name in names[:2]] == ["6", "6"]
    assert told.acted.gone.files and not told.acted.failed
    assert sorted(paimon_java.read(table.folder, Scan(options=MERGE_ON_READ)).rows) == rows and rows
    nothing_is_left(table)


def test_old_removals_of_delta_go_from_a_bucket_without_a_commit(
    s3_bucket: Bucket, s3_server: S3Server, lakes: Lakes
) -> None:
    table = delta(s3_bucket, golden="overwrite")
    rows, before = delta_rows(table, lakes, s3_server.endpoint), table.files()
    told = table.expired(days=400)
    assert (told.outcome, told.reason) == (Outcome.VERIFIED, None)
    gone = before.keys() - table.files().keys()
    assert gone and len(gone) == told.acted.gone.files
    assert table.files().items() <= before.items()
    assert delta_rows(table, lakes, s3_server.endpoint) == rows
    nothing_is_left(table)


@pytest.mark.parametrize("scheme", some_extended(["s3", "s3a"], keep=1))
def test_old_snapshots_of_iceberg_go_from_a_bucket(
    scheme: str, s3_bucket: Bucket, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = place_iceberg(s3_bucket, tmp_path, s3_server.endpoint, scheme=scheme)
    for variable, value in catalog_environment(database).items():
        monkeypatch.setenv(variable, value)
    for name in ("orders", "customers"):
        table = iceberg(s3_bucket, name)
        rows, before = fingerprint_of(table), table.files()
        told = table.expired()
        assert (told.outcome, told.reason) == (Outcome.VERIFIED, None)
        gone = before.keys() - table.files().keys()
        assert len(gone) == told.acted.gone.files
        assert sum("/snap-" in each for each in gone) == len(told.expiry.roots) > 1
        assert fingerprint_of(table) == rows
        (added,) = table.files().keys() - before.keys()
        location = json.loads((table.root / added).read_bytes())["snapshots"][0]["manifest-list"]
        assert location.startswith(f"{scheme}://")
        nothing_is_left(table)


def nothing_is_left(table: InStore) -> None:
    table.age(table.files())
    assert table.swept()[1] == set()
    found = table.presence()
    assert found.files and not found.faults
