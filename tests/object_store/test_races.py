"""Publishing in a bucket: one wins, a lost answer is no lost commit, and beside writers who overwrite we do not try."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.drivers.fault_proxy import Way
from tests.drivers.lakes_oracle import Lakes
from tests.drivers.paimon_values import MERGE_ON_READ, Scan
from tests.drivers.s3_faults import S3Faults
from tests.drivers.s3_server import Bucket, S3Server
from tests.object_store.bucket_tables import catalog_environment, in_bucket, place_iceberg, s3_properties, upload
from tests.object_store.in_bucket import InBucket, another_process

from nightkeep.admission.order import Order
from nightkeep.model import Operation, Outcome
from nightkeep.policy import load
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.storage.objects.store import ObjectStorage
from nightkeep.tasks import inline

pytestmark = pytest.mark.in_turn("table")


@pytest.fixture
def faults(s3_server: S3Server, s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Faults]:
    """A proxy that everything of this process goes through; the bucket is `s3_bucket`."""
    with S3Faults(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture(params=["delta", "paimon"])
def table(request: pytest.FixtureRequest, s3_bucket: Bucket, tmp_path: Path) -> InBucket:
    return in_bucket(request.param, s3_bucket, tmp_path)


def test_of_two_that_publish_at_once_one_wins_and_nothing_is_lost(
    faults: S3Faults, table: InBucket, rows: Callable[[], object], before: object
) -> None:
    base, found = table.latest(), []
    with faults.paused(request=table.put(base + 1)) as late:
        slow = threading.Thread(target=lambda: found.append(table.care("slow")))
        slow.start()
        late.wait()
        quick = table.care("quick")
    slow.join(60)
    assert (quick.outcome, quick.committed_version) == (Outcome.VERIFIED, base + 1)
    assert rows() == before and before
    (lost,) = found
    assert (lost.outcome, lost.committed_version) == (Outcome.CONFLICTED, None)
    assert table.latest() == base + 1
    # What lost is taken away again.
    assert not table.files_of("slow")
    again = table.care("slow")
    assert again.outcome is Outcome.UNCHANGED


@pytest.fixture
def rows(request: pytest.FixtureRequest, table: InBucket, s3_bucket: Bucket) -> Callable[[], object]:
    """What an engine reads of the objects behind the server."""
    if table.format == "delta":
        lakes = request.getfixturevalue("lakes")
        return lambda: lakes.duckdb_read(s3_bucket.folder / table.key)
    java = request.getfixturevalue("paimon_java")
    return lambda: sorted(java.read(s3_bucket.folder / table.key, Scan(options=MERGE_ON_READ)).rows)


@pytest.fixture
def before(rows: Callable[[], object]) -> object:
    return rows()


def test_a_run_that_is_killed_while_it_commits_has_one_commit_after_its_retry(
    faults: S3Faults, table: InBucket, rows: Callable[[], object], before: object
) -> None:
    base = table.latest()
    request = faults.paused(request=table.put(base + 1))
    with request as commit, another_process(table, "killed"):
        commit.wait()
    # Killed by now; its request is on the way still, and may arrive before the retry, after it, or between.
    found = table.care("killed")
    assert (found.outcome, found.committed_version) == (Outcome.VERIFIED, base + 1)
    assert table.committed("killed") == [table.latest()] == [base + 1]
    assert rows() == before and before


def _go_back(table: InBucket) -> None:
    """The newest version goes, and one that changes nothing of the version before it takes its number."""
    storage, latest = ObjectStorage(table.location), table.latest()
    newest, older = (f"{table.commits}/{table.name(number)}" for number in (latest, latest - 1))
    storage.delete(newest)
    if table.format == "delta":
        told = {"commitInfo": {"timestamp": 1, "operation": "WRITE", "engineInfo": "another"}}
    else:
        told = json.loads(storage.read(older)) | {"id": latest, "uuid": str(uuid.uuid4())}
        storage.replace("snapshot/LATEST", str(latest).encode(), temporary="none")
    storage.put(newest, json.dumps(told).encode())


def test_a_version_that_is_replaced_before_the_gate_is_a_conflict(
    faults: S3Faults, table: InBucket, rows: Callable[[], object], before: object
) -> None:
    base, found = table.latest(), []
    with faults.paused(request=f"PUT .*/{table.commits}/.*staged-.*") as staging:
        ours = threading.Thread(target=lambda: found.append(table.care("ours")))
        ours.start()
        staging.wait()
        _go_back(table)
        truth = rows()
    ours.join(60)
    (document,) = found
    assert truth != before
    assert (document.outcome, document.committed_version) == (Outcome.CONFLICTED, None), document.reason
    assert f"version {base} is not the one that was planned on" in str(document.reason)
    assert (table.latest(), rows()) == (base, truth)
    assert not table.files_of("ours")


def test_a_version_that_is_replaced_while_a_commit_is_on_its_way_is_reported(faults: S3Faults, table: InBucket) -> None:
    base, found = table.latest(), []
    with faults.paused(request=table.put(base + 1)) as commit:
        ours = threading.Thread(target=lambda: found.append(table.care("ours")))
        ours.start()
        commit.wait()
        _go_back(table)
    ours.join(60)
    (document,) = found
    assert (document.outcome, document.committed_version) == (Outcome.MISMATCH, base + 1), document.reason
    assert "was replaced while it was committed; nothing was deleted; on hold" in str(document.reason)
    assert table.care("next").outcome is Outcome.SKIPPED


def test_a_lost_answer_to_a_commit_is_found_by_reading(faults: S3Faults, table: InBucket) -> None:
    base = table.latest()
    dropped = faults.drop(request=table.put(base + 1), way=Way.AFTER)
    found = table.care("lost")
    assert dropped.seen
    assert (found.outcome, found.committed_version) == (Outcome.VERIFIED, base + 1)
    assert table.latest() == base + 1
    assert table.care("lost").outcome is Outcome.VERIFIED and table.latest() == base + 1
    assert not [name for name in table.files_of("lost") if name.startswith(f"{table.commits}/")]


def test_a_run_whose_commit_failed_is_done_by_its_retry(faults: S3Faults, table: InBucket) -> None:
    base = table.latest()
    faults.fail(403, request=table.put(base + 1))
    failed = table.care("retried")
    assert (failed.outcome, table.latest()) == (Outcome.FAILED, base)
    # It may have happened: nothing of it is deleted.
    kept = table.files_of("retried")
    assert kept
    found = table.care("retried")
    assert (found.outcome, found.committed_version, table.latest()) == (Outcome.VERIFIED, base + 1, base + 1)
    assert kept & table.names()


def test_a_store_that_ignores_conditions_is_refused_before_anything_is_published(
    faults: S3Faults, table: InBucket
) -> None:
    base = table.latest()
    faults.forget_conditions()
    found = table.care()
    assert found.outcome is Outcome.REFUSED and "If-None-Match" in str(found.reason)
    assert table.latest() == base


def test_beside_writers_that_may_overwrite_a_table_is_refused_by_name(s3_bucket: Bucket, table: InBucket) -> None:
    before = table.names()
    found = table.care(writers="unknown")
    who = "Delta-Lake/4.4.0" if table.format == "delta" else "Paimon's writers"
    assert found.outcome is Outcome.REFUSED and who in str(found.reason)
    assert "writers: conditional" in str(found.reason)
    assert table.names() == before


def test_writers_that_create_exclusively_need_no_word(s3_bucket: Bucket, lakes: Lakes, tmp_path: Path) -> None:
    for start in (0, 10, 20):
        lakes.delta_rs_append(tmp_path / "t", pa.table({"id": pa.array(range(start, start + 10))}))
    location = upload(tmp_path / "t", s3_bucket, "t")
    table = InBucket(location, Operation.OPTIMIZE, "_delta_log", tmp_path / "reports")
    assert table.care(writers="unknown").outcome is Outcome.VERIFIED
    # Ours is one of the commits now.
    assert table.care(writers="unknown").outcome is Outcome.UNCHANGED
    assert len(lakes.duckdb_read(s3_bucket.folder / "t").rows) == 30


def test_a_table_in_several_buckets_is_refused_before_anything_is_read(
    s3_server: S3Server, s3_bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = place_iceberg(s3_bucket, tmp_path, s3_server.endpoint)
    for name, value in catalog_environment(database).items():
        monkeypatch.setenv(name, value)
    catalog = SqlCatalog("lake", uri=f"sqlite:///{database}", **s3_properties(s3_server.endpoint))
    try:
        with catalog.load_table("shop.orders").transaction() as change:
            change.set_properties({"write.data.path": "s3://elsewhere/orders"})
    finally:
        catalog.close()
    policy = load("tables.yaml", text="version: 1").effective("iceberg:lake/shop.orders")
    order = Order(Operation.PERSIST_DELETES, "elsewhere", str(tmp_path / "reports"))
    found = run_operation(policy, order, mapper=lambda: inline)
    assert found.outcome is Outcome.REFUSED
    assert f"{s3_bucket.uri} and s3://elsewhere" in str(found.reason)
