"""Buckets when many write and requests fail: one winner per name, each file listed once, failures named and bounded."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.drivers.fault_proxy import Fault, Way
from tests.drivers.s3_faults import S3Faults, put_folder
from tests.drivers.s3_server import ACCESS_KEY, SECRET_KEY, Bucket, S3Server

from nightkeep.errors import AddressError, CorruptMetadata, MissingFile
from nightkeep.storage import open_storage
from nightkeep.storage.objects import clients
from nightkeep.storage.objects import store as objects
from nightkeep.storage.objects.names import split_location
from nightkeep.storage.objects.store import ObjectStorage

PROCESSES, THREADS = 5, 20
RETRIES = 3


@pytest.fixture
def faults(s3_server: S3Server, s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Faults]:
    """A proxy that the environment names as the server, asked again only thrice and soon."""
    monkeypatch.setattr(clients, "RETRIES", RETRIES)
    monkeypatch.setattr(clients, "FIRST_WAIT_MS", 1)
    with S3Faults(s3_server.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)
        yield proxy


@pytest.fixture
def store(s3_bucket: Bucket, faults: S3Faults) -> ObjectStorage:
    """A store behind the proxy."""
    return ObjectStorage(f"{s3_bucket.uri}/t")


def names(store: ObjectStorage, folder: str = "") -> list[str]:
    return sorted(stored.name for batch in store.walk(folder) for stored in batch)


def test_pages_of_a_listing_make_up_the_whole(store: ObjectStorage, faults: S3Faults, s3_bucket: Bucket) -> None:
    expected = [f"dt={number % 7}/b {number % 3}/f%{number}" for number in range(2_000)]
    for name in expected:
        path = s3_bucket.folder / "t" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    faults.pages(150)
    assert names(store) == sorted(expected)
    assert faults.asked("GET .*list-type=2") >= 2_000 / 150
    for listed in (store.list("dt=3/b 1"), store.list("dt=3")):
        assert len(listed) == len({stored.name for stored in listed})
    assert [stored.name for stored in store.list("dt=3/b 1")] == sorted(
        name for name in expected if name.startswith("dt=3/b 1/")
    )
    faults.pages(2)
    assert store.folders("") == tuple(f"dt={number}" for number in range(7))


def test_a_listing_is_not_held_as_a_whole(store: ObjectStorage, faults: S3Faults, s3_bucket: Bucket) -> None:
    folder = s3_bucket.folder / "t"
    folder.mkdir()
    for number in range(2_500):
        (folder / str(number)).write_bytes(b"1")
    batches = store.walk("")
    assert len(next(batches)) == 1000
    assert faults.asked("GET .*list-type=2") < 3
    assert [len(batch) for batch in batches] == [1000, 500]


def test_what_stands_for_a_folder_is_no_file(store: ObjectStorage, faults: S3Faults, s3_bucket: Bucket) -> None:
    for folder in ("full", "void", "void/deep"):
        put_folder(faults.endpoint, s3_bucket.name, f"t/{folder}")
    store.put("full/empty", b"")
    store.put("full/f", b"1")
    store.put("full-", b"")
    assert names(store) == ["full-", "full/empty", "full/f"]
    # Only of what is empty and followed by nothing below it does the listing not tell.
    assert [request.rpartition("/t/")[2] for request in faults.requests if request.startswith("HEAD")] == [
        # The first look, which asks whether anybody answers.
        "HEAD /",
        "full-",
        "full/empty",
        "void/deep",
    ]
    assert [stored.name for stored in store.list("")] == ["full-"]
    assert store.folders("") == ("full", "void")
    assert store.stat("void") is None
    assert not store.delete("void")
    assert (s3_bucket.folder / "t/void/deep").is_dir()


def once(faults: S3Faults, request: str, way: Way, status: int) -> Fault:
    return faults.fail(status, request=request, way=way) if status else faults.drop(request=request, way=way)


def test_a_copy_in_one_piece_of_many_is_compared_by_its_bytes(
    store: ObjectStorage, faults: S3Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_PIECE", 7_000_000)
    data = os.urandom(20_000_000)
    with store.create("from") as sink:
        sink.write(data)
    assert store.move("from", "to")
    assert (faults.asked("GET .*/from"), faults.asked("GET .*/to")) == (3, 3)
    assert store.read("to") == data


def test_what_is_too_large_to_be_copied_is_read_and_written(
    store: ObjectStorage, faults: S3Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_PIECE", 7_000_000)
    monkeypatch.setattr(objects, "_COPIED_BYTES", 19_999_999)
    data = os.urandom(20_000_000)
    with store.create("from") as sink:
        sink.write(data)
    faults.fail(500, request="PUT .*/to.*partNumber=2", times=RETRIES + 1)
    with pytest.raises(OSError, match="injected"):
        store.move("from", "to")
    assert names(store) == ["from"]
    assert store.move("from", "to")
    assert (names(store), store.read("to")) == (["to"], data)
    copied = data[:19_999_999]
    store.put("less", copied)
    assert store.move("less", "there") and store.read("there") == copied
    assert faults.asked("PUT .*/there") == 1


def test_a_copy_that_is_none_costs_no_file(store: ObjectStorage, faults: S3Faults, s3_bucket: Bucket) -> None:
    store.put("from", b"whole")
    with ThreadPoolExecutor(1) as pool, faults.paused(request="HEAD .*/to") as looked:
        moved = pool.submit(store.move, "from", "to")
        looked.wait()
        with faults.paused(request="HEAD .*/to") as compared:
            looked.released.set()
            compared.wait()
            (s3_bucket.folder / "t/to").unlink()
            (s3_bucket.folder / "t/to").write_bytes(b"wrong")
            compared.released.set()
        with pytest.raises(OSError, match="expected a copy of from, found other bytes; both are left"):
            moved.result()
    assert store.read("from") == b"whole"


def test_no_permission_is_stated_at_once_and_is_not_absence(
    store: ObjectStorage, faults: S3Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("f", b"1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    before = len(faults.requests)
    for act in (store.read, store.stat, store.exists, store.open):
        with pytest.raises(PermissionError, match="t/f: "):
            act("f")
    with pytest.raises(PermissionError):
        store.put_if_absent("g", b"", temporary="t")
    with pytest.raises(OSError, match="403"):
        store.list("")
    assert len(faults.requests) - before <= 7


def test_keys_that_stay_are_named_and_asked_for_once_more(store: ObjectStorage, faults: S3Faults) -> None:
    every = [f"d/a&b {number}" for number in range(30)]
    for name in every:
        store.put(name, b"")
    faults.lock("t/d/a&b 7", times=1)
    faults.lock("t/d/a&b 8", times=100)
    faults.lock("t/d/a&b 9", times=100)
    failed = store.delete_all(every)
    assert [name for name, _ in failed] == ["d/a&b 8", "d/a&b 9"]
    assert all("AccessDenied" in why and name in why for name, why in failed)
    assert names(store) == ["d/a&b 8", "d/a&b 9"]
    assert faults.asked("POST .*delete") == 1 + len(every)
    with pytest.raises(OSError, match="AccessDenied"):
        store.delete("d/a&b 8")


def test_a_store_that_stays_silent_is_not_asked_for_each_name(store: ObjectStorage, faults: S3Faults) -> None:
    store.put("f", b"")
    faults.fail(500, request="(POST|HEAD)", times=10_000)
    every = ["f", *(f"{number}" for number in range(2_500))]
    failed = store.delete_all(every)
    assert [name for name, _ in failed] == every
    assert len(faults.requests) < 4 * (RETRIES + 1)


def test_more_names_than_a_request_takes_are_deleted(store: ObjectStorage, faults: S3Faults, s3_bucket: Bucket) -> None:
    folder = s3_bucket.folder / "t"
    folder.mkdir()
    for number in range(1_200):
        (folder / str(number)).touch()
    assert store.delete_all([str(number) for number in range(1_200)]) == ()
    assert (names(store), faults.asked("POST .*delete")) == ([], 2)


def test_a_parquet_file_opens_in_one_request_and_is_read_in_few(store: ObjectStorage, faults: S3Faults) -> None:
    table = pa.table({"id": range(300_000)})
    with store.create("data/part.parquet") as sink:
        pq.write_table(table, sink, row_group_size=60_000, use_dictionary=False, compression="none")
    size = store.stat("data/part.parquet")
    assert size is not None and size.bytes > 2_000_000
    faults.requests.clear()
    with store.open("data/part.parquet") as source, pq.ParquetFile(source, pre_buffer=True) as parquet:
        assert parquet.metadata.num_rows == 300_000
        assert len(faults.requests) == 1
        assert parquet.read() == table
    assert len(faults.requests) <= 1 + parquet.num_row_groups


def test_a_file_that_shrank_under_its_reader_has_no_bytes_left(store: ObjectStorage) -> None:
    store.put("f", b"x" * 1_000_000)
    with store.open("f") as source:
        store.replace("f", b"x" * 1_000, temporary="t")
        with pytest.raises(OSError, match="expected 300000 bytes from 500 on, found 500"):
            source.read_at(300_000, 500)


def test_times_are_whole_seconds_whichever_answer_reports_them(store: ObjectStorage) -> None:
    told: dict[str, Any] = {
        "path": "t/f",
        "last_modified": datetime(2026, 1, 1, 0, 0, 1, 999_000, tzinfo=UTC),
        "size": 1,
        "e_tag": None,
        "version": None,
    }
    assert store._stored(told).modified_ms == 1_767_225_601_000


@pytest.mark.parametrize("name", ["tab\there", "new\nline", "a//b", "./a", "a/", ""])
def test_a_name_that_the_client_cannot_spell_is_refused(store: ObjectStorage, name: str) -> None:
    for act in (store.read, store.stat, store.delete):
        with pytest.raises(CorruptMetadata, match="a name below this folder"):
            act(name)


def test_a_small_file_is_read_with_its_opening(store: ObjectStorage, faults: S3Faults) -> None:
    store.put("small", b"0123456789")
    faults.requests.clear()
    with store.open("small") as source:
        assert (source.size(), source.read(3), source.read_at(2, 8)) == (10, b"012", b"89")
    assert len(faults.requests) == 1


def test_properties_of_a_catalog_are_stronger_than_the_environment(
    s3_server: S3Server, s3_bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    ObjectStorage(f"{s3_bucket.uri}/t").put("f", b"1")
    for name in s3_server.environment():
        monkeypatch.setenv(name, "http://127.0.0.1:1" if "URL" in name else "wrong")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of other keys")
    properties = {
        "s3.endpoint": s3_server.endpoint,
        "s3.access-key-id": ACCESS_KEY,
        "s3.secret-access-key": SECRET_KEY,
        "client.region": "us-nowhere-1",
        "s3.region": "us-east-1",
        "warehouse": "s3://elsewhere",
        "uri": "http://catalog",
    }
    store = open_storage(f"{s3_bucket.uri}/t", properties)
    assert store.read("f") == b"1"
    assert SECRET_KEY not in repr(store)


def test_keys_of_others_that_have_no_spelling_here_stop_a_listing(store: ObjectStorage, faults: S3Faults) -> None:
    store.put("odd", b"1")
    for odd in ("o//d", "./odd", "..", "o&#9;d"):
        faults.respell("t/odd", f"t/{odd}")
        for act in (store.list, lambda folder: list(store.walk(folder))):
            with pytest.raises(OSError, match="/t"):
                act("")


def test_a_bucket_that_is_not_there_is_not_an_empty_one(store: ObjectStorage) -> None:
    with pytest.raises(OSError, match="no such bucket at "):
        open_storage("s3://no-such-bucket/t")
    with pytest.raises(OSError, match="no such bucket at "):
        list(ObjectStorage("s3://no-such-bucket/t").walk(""))
    with pytest.raises(MissingFile):
        store.read("f")


@pytest.mark.parametrize(
    "location", ["s3://", "s3:///t", "s3://bucket//t", "s3://bucket/a/../b", "http://h/t", "s3:/b"]
)
def test_an_address_that_is_none_is_named(location: str) -> None:
    with pytest.raises(AddressError, match=location):
        open_storage(location)


@pytest.mark.parametrize(
    ("location", "kind"),
    [("gs://bucket/t", "GCSStore"), ("abfss://container@account.dfs.core.windows.net/t", "AzureStore")],
)
def test_other_stores_have_clients_of_their_own(location: str, kind: str) -> None:
    scheme, authority, prefix = split_location(location)
    assert (type(clients.client(scheme, authority, ())).__name__, prefix) == (kind, "t")


def test_a_conflict_of_conditions_is_neither_won_nor_lost(store: ObjectStorage, faults: S3Faults) -> None:
    # AWS: 409 ConditionalRequestConflict, where another request for the same key is under way.
    once(faults, "PUT .*/free", Way.BEFORE, 409)
    assert store.put_if_absent("free", b"ours", temporary="t")
    busy = faults.fail(409, request="PUT .*/busy", times=1000)
    with pytest.raises(OSError, match="expected it to be created or to exist, found neither"):
        store.put_if_absent("busy", b"ours", temporary="t")
    assert (names(store), len(busy.seen)) == (["free"], 10)


def test_a_prefix_without_objects_is_answered_with_the_one_beside_it_that_is_near(
    faults: S3Faults, s3_bucket: Bucket
) -> None:
    for name in ("lake/clicks/a", "lake/orders/b"):
        ObjectStorage(s3_bucket.uri).put(name, b"1")
    for asked, meant in (
        ("lake/clickz", "clicks"),
        ("lake/Orders/", "orders"),
        ("lake/zzz", None),
        ("nowhere/t", None),
    ):
        with pytest.raises(AddressError, match="expected the files of a table, found none") as failure:
            open_storage(f"{s3_bucket.uri}/{asked}")
        assert str(failure.value).endswith("found none" if meant is None else f"found none; did you mean {meant}?")
