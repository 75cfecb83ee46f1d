"""Tables that a Hive metastore names, whose files lie in a bucket or in HDFS: found, and cared for by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hive_metastore.ttypes import Table
from tests.discovery.warehouses import SAMPLES, policy
from tests.drivers.hive_metastore import HiveMetastore
from tests.metastores.metastore_world import DELTA, PAIMON, care_for, hive_table, in_hive
from tests.object_store.bucket_tables import filled

from nightkeep.discovery import find_tables
from nightkeep.formats import open_table
from nightkeep.model import Address, Operation, Outcome
from nightkeep.storage.hdfs.store import HdfsStorage
from nightkeep.storage.objects.store import ObjectStorage

pytestmark = pytest.mark.extended

CLICKS, ORDERS = "delta/shop.db/clicks", "paimon/shop.db/orders"


@dataclass(frozen=True)
class Named:
    """A metastore with the two samples, and where their files are."""

    uri: str
    places: Mapping[str, str]


def in_bucket(request: pytest.FixtureRequest, folder: Path) -> tuple[Callable[[str], ObjectStorage], str, list[Table]]:
    place = request.getfixturevalue("s3_bucket").uri
    said = place.replace("s3://", "s3a://")
    # Paimon writes so for a metastore that has no file system for buckets (`location-in-properties`).
    paimon = hive_table("orders", f"file:{folder}/none", {**PAIMON, "paimon_location": f"{said}/{ORDERS}"})
    return ObjectStorage, place, [hive_table("clicks", f"{said}/{CLICKS}", DELTA), paimon]


def in_hdfs(request: pytest.FixtureRequest, folder: Path) -> tuple[Callable[[str], HdfsStorage], str, list[Table]]:
    place = request.getfixturevalue("hdfs_folder")
    entries = [hive_table("clicks", f"{place}/{CLICKS}", DELTA), hive_table("orders", f"{place}/{ORDERS}", PAIMON)]
    return HdfsStorage, place, entries


@pytest.fixture(params=[in_bucket, in_hdfs])
def named(
    request: pytest.FixtureRequest, hive_metastore: HiveMetastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Named]:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    storage, place, entries = request.param(request, tmp_path)
    places = {sample: filled(storage(f"{place}/{sample}"), SAMPLES / sample) for sample in (CLICKS, ORDERS)}
    with in_hive(hive_metastore.uri, {each.tableName: each for each in entries}):
        yield Named(hive_metastore.uri, places)


@pytest.mark.parametrize(("sample", "operation"), [(CLICKS, Operation.OPTIMIZE), (ORDERS, Operation.UPGRADE)])
def test_a_table_is_maintained_by_its_name_where_its_files_are(
    named: Named, tmp_path: Path, sample: str, operation: Operation
) -> None:
    kind, name = sample.split("/")[0], sample.split("/")[-1]
    place = Address(kind, named.places[sample], "t")
    told = policy(tmp_path, f"version: 1\ndefaults: {{writers: conditional}}\ndiscover: [{{hive: '{named.uri}'}}]\n")
    found = {each.name: each.address.location for each in find_tables(told.discoveries).tables}
    assert found[f"shop.{name}"] == place.location
    base = open_table(place).snapshot().version
    by_name = f"{kind}:{named.uri}/shop.{name}"
    done = care_for(by_name, tmp_path / "reports", tmp_path / "tables.yaml", operation=operation)
    assert (done.outcome, done.reason) == (Outcome.VERIFIED, None)
    assert done.committed_version == open_table(place).snapshot().version == base + 1
