"""Sweeps of real tables in a bucket whose server fails requests: in doubt nothing goes, and a rerun ends it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.drivers.fault_proxy import Way
from tests.drivers.s3_faults import S3Faults
from tests.drivers.s3_server import Bucket, S3Server
from tests.object_store.bucket_tables import catalog_environment, place_iceberg
from tests.object_store.swept_tables import UUID, InStore, delta, iceberg, paimon
from tests.support.extended import some_extended

from nightkeep.errors import EvidenceError
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.storage.objects import clients

ALWAYS = 1_000
LISTING = "GET .*list-type=2"
NEXT_PAGE = f"{LISTING}.*continuation-token|GET .*continuation-token.*list-type=2"
LEFT = {
    "paimon": [f"day=a b%2Fc%25/region=1+1/bucket-0/data-{UUID}-{n}.parquet" for n in range(4)],
    "delta": [f"p=a b%2F0/part-0000{n}-{UUID}.c000.snappy.parquet" for n in range(4)],
    "iceberg": [f"data/day=1+1%20/00000-{n}-{UUID}-00001.parquet" for n in range(4)],
}
METADATA = {
    "paimon": "GET .*/manifest/manifest-[0-9a-f]",
    "delta": r"GET .*/_delta_log/0+1\.json",
    "iceberg": r"GET .*/metadata/[^/]*-m0\.avro",
}
"""Requests for files that tell which files are live, none of which says which version is the latest."""


@pytest.fixture(scope="module")
def tables(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, InStore]]:
    """One of each format in one bucket."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment().items():
            patch.setenv(name, value)
        bucket, scratch = s3_server.bucket(), tmp_path_factory.mktemp("failing")
        database = place_iceberg(bucket, scratch, s3_server.endpoint)
        for name, value in catalog_environment(database).items():
            patch.setenv(name, value)
        yield {
            "paimon": paimon(bucket, scratch),
            "delta": delta(bucket, golden="partition_paths"),
            "iceberg": iceberg(bucket, "orders"),
        }


@pytest.fixture
def faults(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Faults]:
    """A proxy before the server; each request is tried twice."""
    monkeypatch.setattr(clients, "RETRIES", 1)
    monkeypatch.setattr(clients, "FIRST_WAIT_MS", 1)
    with S3Faults(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture
def table(tables: dict[str, InStore], kind: str, faults: S3Faults) -> InStore:
    """With four old files that nobody needs, wherever the last test left them, and nothing quarantined."""
    found = tables[kind]
    for path in found.folder.glob("_nightkeep/**/*"):
        if path.is_file():
            path.unlink()
    found.plant(*LEFT[kind])
    return found


each_kind = pytest.mark.parametrize("kind", LEFT)


@pytest.mark.few(1)
@pytest.mark.in_turn("fault")
@each_kind
@pytest.mark.parametrize("fault", ["small pages", "throttled once", "pages throttled once", "metadata cut once"])
def test_what_is_mended_by_asking_again_changes_nothing(
    kind: str, fault: str, table: InStore, faults: S3Faults
) -> None:
    before = table.files()
    faults.pages(3)
    if fault == "throttled once":
        faults.fail(503, request=LISTING)
    elif fault == "pages throttled once":
        faults.fail(503, request=NEXT_PAGE)
    elif fault == "metadata cut once":
        faults.cut(request=METADATA[kind])
    told, orphans = table.swept(SweepMode.QUARANTINE)
    assert (told.outcome, told.acted.files) == (Outcome.VERIFIED, 4)
    assert orphans == before.keys() - table.files().keys() and len(orphans) == 4
    assert faults.asked(NEXT_PAGE) > 3
    assert not table.presence().faults


READING = {
    "first page": (LISTING, Way.BEFORE, 500),
    "first page cut": (LISTING, Way.HALF, 0),
    "next page": (NEXT_PAGE, Way.BEFORE, 500),
    "next page cut": (NEXT_PAGE, Way.HALF, 0),
    "metadata": ("", Way.BEFORE, 500),
    "metadata denied": ("", Way.BEFORE, 403),
    "metadata cut": ("", Way.HALF, 0),
}


@pytest.mark.in_turn("kind")
@each_kind
@pytest.mark.parametrize("fault", READING)
def test_what_cannot_be_listed_or_read_ends_the_sweep(kind: str, fault: str, table: InStore, faults: S3Faults) -> None:
    before, (request, way, status) = table.files(), READING[fault]
    faults.pages(3)
    broken = faults.fail(status, request=request or METADATA[kind], way=way, times=ALWAYS)
    with pytest.raises((OSError, EvidenceError)):
        table.swept(SweepMode.DELETE)
    assert broken.seen
    assert table.files() == before
    broken.times = 0
    assert table.swept()[1] == before.keys() & {f"{table.home}/{name}".lstrip("/") for name in LEFT[kind]}


@each_kind
def test_a_live_file_under_another_name_ends_the_sweep(kind: str, table: InStore, faults: S3Faults) -> None:
    before = table.files()
    live = max(name for name in before if name.endswith(".parquet") and UUID not in name and "_delta_log" not in name)
    key = str((table.root / live).relative_to(table.bucket))
    faults.respell(key, key.replace(".parquet", "-lost.parquet"))
    with pytest.raises(EvidenceError):
        table.swept(SweepMode.DELETE)
    assert table.files() == before


ACTING = {
    "copy": ("paimon", "PUT .*_nightkeep.*[.]file", Way.BEFORE, 503),
    "copy's answer": ("delta", "PUT .*_nightkeep.*[.]file", Way.AFTER, 0),
    "copy's answer of another": ("iceberg", "PUT .*_nightkeep.*[.]file", Way.AFTER, 0),
    "delete": ("iceberg", "(DELETE|POST) .*", Way.BEFORE, 500),
    "delete's answer": ("paimon", "(DELETE|POST) .*", Way.AFTER, 0),
    "plan's answer": ("delta", "PUT .*plan-", Way.AFTER, 0),
}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("kind", "fault"), some_extended([(kind, fault) for fault, (kind, *_) in ACTING.items()], keep=2)
)
def test_a_move_that_fails_is_ended_by_the_next(
    kind: str, fault: str, table: InStore, faults: S3Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It deletes the first file of all, and nothing is told of the rest where it cannot.
    monkeypatch.setattr("nightkeep.retention.orphans.sweep_table.store_ahead_ms", lambda *_: 0)
    before, (_, request, way, status) = table.files(), ACTING[fault]
    broken = faults.fail(status, request=request, way=way, times=5)
    first, orphans = table.swept(SweepMode.QUARANTINE)
    assert broken.seen and len(orphans) == 4
    assert first.outcome is Outcome.FAILED or first.acted.files == 4
    assert {*table.files().values(), *table.aside()} == {*before.values()}
    assert not table.presence().faults
    broken.times = 0
    table.swept(SweepMode.QUARANTINE, "weekly-2")
    assert table.aside() == sorted(before[name] for name in orphans)
    assert table.files().keys() == before.keys() - orphans
    assert not table.presence().faults
    for run_id in table.quarantines():
        assert table.restored(run_id).conflicts == ()
    assert table.files() == before


@pytest.mark.extended
@each_kind
def test_files_that_a_bulk_delete_leaves_are_named_and_go_with_the_next(
    kind: str, table: InStore, faults: S3Faults
) -> None:
    before = table.files()
    held = f"{table.home}/{LEFT[kind][2]}".removeprefix("/")
    # The store knows the table's folder as a part of the key.
    key = str((table.root / held).relative_to(table.bucket))
    faults.lock(key, times=ALWAYS)
    told, orphans = table.swept(SweepMode.DELETE)
    assert (told.outcome, told.acted.files, len(orphans)) == (Outcome.FAILED, 3, 4)
    assert [name for name, _ in told.failed] == [held]
    assert held in table.files() and not table.presence().faults
    faults.lock(key, times=0)
    told, orphans = table.swept(SweepMode.DELETE, "weekly-2")
    assert (told.outcome, told.acted.files, orphans) == (Outcome.VERIFIED, 1, {held})
    assert len(table.files()) == len(before) - 4 and not table.presence().faults


def test_what_an_expiry_cannot_delete_is_found_by_the_next_sweep(
    s3_bucket: Bucket, tmp_path: Path, faults: S3Faults
) -> None:
    """The store fails in the middle of the snapshots, then at one of the files that only they needed."""
    table = paimon(s3_bucket, tmp_path, options={"snapshot.num-retained.min": "1"})
    lost = f"manifest/{json.loads((table.folder / 'snapshot/snapshot-4').read_bytes())['deltaManifestList']}"
    keys = [str((table.folder / name).relative_to(table.bucket)) for name in ("snapshot/snapshot-3", lost)]
    faults.lock(keys[0], times=ALWAYS)
    with pytest.raises(OSError, match="snapshot-3"):
        table.expired()
    names = {path.name for path in (table.folder / "snapshot").iterdir()}
    assert names >= {"snapshot-3", "snapshot-4"} and "snapshot-2" not in names
    assert not table.presence().faults
    faults.lock(keys[0], times=0)
    faults.lock(keys[1], times=ALWAYS)
    told = table.expired()
    assert told.outcome is Outcome.FAILED and [name for name, _ in told.acted.failed] == [lost]
    assert not table.presence().faults
    faults.lock(keys[1], times=0)
    table.age(table.files())
    told, orphans = table.swept(SweepMode.DELETE)
    assert (told.outcome, lost in orphans) == (Outcome.VERIFIED, True)
    assert not table.presence().faults and table.swept()[1] == set()
