"""What every store promises: a folder, buckets of a real S3 server and of emulators of Azure and Google, and HDFS."""

import os
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.drivers.s3_server import Bucket
from tests.support.examples import examples
from tests.support.store_twin import PLACES, STEP, Step, done, done_to

from nightkeep.errors import AddressError, CorruptMetadata, MissingFile
from nightkeep.storage import ListedFile, LocalStorage, MoveEnd, Storage, delete_listed, move_listed, open_storage
from nightkeep.storage.hdfs.store import HdfsStorage
from nightkeep.storage.objects.store import ObjectStorage

ODD_NAMES = (
    "a b",
    "100%",
    "100%25",
    "a%2Fb",
    "dt=2026-01-01 00%3A00%3A00/part",
    "a+b",
    "#1",
    "what?x=1&y=2",
    "gr\xfcn",
    "\u65e5\u672c/\u6771\u4eac",
    "\u00a0",
    'it\'s "<&>"',
    "back\\slash",
    "[a]{b}*~^|`",
    "x:y,z;@$!()",
    "~",
    "_delta_log/.s3-optimization-0",
)
OUT = ("../outside", "bucket-0/../../outside", "/etc/passwd", "..")


pytestmark = pytest.mark.slow


BUCKETS = {"bucket": "s3_bucket", "prefix": "s3_bucket", "container": "azure_container", "google": "google_bucket"}


@pytest.fixture(params=["folder", *BUCKETS, "hdfs"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return LocalStorage(str(tmp_path))
    if request.param == "hdfs":
        return HdfsStorage(f"{request.getfixturevalue('hdfs_folder')}/ware house/100%/t")
    place = request.getfixturevalue(BUCKETS[request.param])
    return ObjectStorage(place.uri if request.param == "bucket" else f"{place.uri}/ware house/100%/t")


def names(store: Storage, folder: str = "") -> list[str]:
    return sorted(stored.name for batch in store.walk(folder) for stored in batch)


def test_a_name_comes_back_letter_for_letter_whatever_its_letters(store: Storage) -> None:
    odd = ODD_NAMES
    for kind, unspelt in (("abfss:", "\\"), ("hdfs:", ":")):
        if store.root.startswith(kind):
            odd = tuple(name for name in ODD_NAMES if unspelt not in name)
            with pytest.raises(CorruptMetadata, match="a name below this folder"):
                store.put(f"back{unspelt}slash", b"")
    for name in odd:
        store.put(name, name.encode())
    assert names(store) == sorted(odd)
    assert sorted(stored.name for stored in store.list("")) == sorted(name for name in odd if "/" not in name)
    assert store.folders("") == ("_delta_log", "dt=2026-01-01 00%3A00%3A00", "\u65e5\u672c")
    assert [stored.name for stored in store.list("\u65e5\u672c")] == ["\u65e5\u672c/\u6771\u4eac"]
    for name in odd:
        assert store.read(name) == name.encode()
        assert store.move(name, f"moved/{name}")
    assert names(store) == names(store, "moved") == sorted(f"moved/{name}" for name in odd)
    assert store.delete_all([f"moved/{name}" for name in odd]) == ()
    assert names(store) == []


@pytest.mark.parametrize("name", OUT)
def test_no_name_leads_out_of_the_root(store: Storage, name: str) -> None:
    for act in (store.read, store.open, store.exists, store.stat, store.delete, store.list, store.folders):
        with pytest.raises(CorruptMetadata, match="a name below this folder"):
            act(name)
    for act in (
        lambda: store.put(name, b""),
        lambda: store.put_if_absent(name, b"", temporary="t"),
        lambda: store.replace(name, b"", temporary="t"),
        lambda: store.create(name).__enter__(),
        lambda: list(store.walk(name)),
        lambda: store.move(name, "a"),
        lambda: store.delete_all([name]),
    ):
        with pytest.raises(CorruptMetadata, match="a name below this folder"):
            act()
    store.put("a", b"1")
    with pytest.raises(CorruptMetadata, match="a name below this folder"):
        store.move("a", name)
    # A replacement may leave its temporary file.
    assert set(names(store)) - {"t"} == {"a"}


def test_what_exists_is_neither_replaced_nor_touched(store: Storage) -> None:
    store.put("a", b"first")
    assert not store.put_if_absent("a", b"second", temporary="t")
    with pytest.raises(FileExistsError):
        store.put("a", b"third")
    with pytest.raises(FileExistsError), store.create("a") as sink:
        sink.write(b"fourth")
    store.put("b", b"other")
    assert not store.move("b", "a")
    assert (store.read("a"), store.read("b"), names(store)) == (b"first", b"other", ["a", "b"])


def test_a_mover_is_asked_last_of_all_whether_the_first_name_may_go(store: Storage) -> None:
    store.put("a", b"whole")
    asked: list[list[str]] = []

    def may_go() -> bool:
        asked.append(names(store))
        return len(asked) > 1

    with pytest.raises(OSError, match="in time"):
        store.move("a", "b", may_go=may_go)
    # HDFS renames, so that the second name comes as the first one goes.
    before = ["a"] if isinstance(store, HdfsStorage) else ["a", "b"]
    assert all(store.read(name) == b"whole" for name in before)
    store.delete("b")
    assert store.move("a", "b", may_go=may_go)
    assert (names(store), asked) == (["b"], [before, before])


def test_a_name_is_created_where_there_is_none_and_a_hint_is_replaced(store: Storage) -> None:
    assert store.put_if_absent("log/1", b"one", temporary="t")
    store.replace("LATEST", b"1", temporary="t")
    store.replace("LATEST", b"2", temporary="t")
    assert (store.read("log/1"), store.read("LATEST"), names(store)) == (b"one", b"2", ["LATEST", "log/1"])


def test_listings_agree_with_each_other_and_with_one_look_at_a_file(store: Storage) -> None:
    sizes = {"f": 1, "a/f": 2, "a/b/f": 3, "a/b/g": 0, "ab/f": 5, "a-/f": 6, "a.b": 7}
    for name, size in sizes.items():
        store.put(name, b"x" * size)
    found = {stored.name: stored for batch in store.walk("") for stored in batch}
    assert {name: stored.bytes for name, stored in found.items()} == sizes
    assert all(store.stat(name) == stored for name, stored in found.items())
    assert store.list("a/b") == (found["a/b/f"], found["a/b/g"])
    assert store.list("") == (found["a.b"], found["f"])
    assert (store.folders(""), store.folders("a"), store.folders("ab")) == (("a", "a-", "ab"), ("a/b",), ())
    assert names(store, "a") == ["a/b/f", "a/b/g", "a/f"]
    for none in ("nowhere", "f", "a/b/f"):
        assert (store.list(none), store.folders(none), list(store.walk(none))) == ((), (), [])


def test_a_file_that_is_gone_is_named(store: Storage) -> None:
    store.put("manifest/here", b"")
    for act in (store.read, store.open, lambda name: store.move(name, "b")):
        with pytest.raises(MissingFile, match="manifest/gone"):
            act("manifest/gone")
    assert not store.delete("manifest/gone")
    assert store.delete("manifest/here")
    assert not store.exists("manifest/here")
    store.put("folder/f", b"")
    assert store.stat("folder") is store.stat("folder/gone") is store.stat("folder/f/gone") is None


def test_many_files_are_deleted_of_which_some_are_gone(store: Storage) -> None:
    for number in range(20):
        store.put(f"d/{number}", b"")
    assert store.delete_all([f"d/{number}" for number in range(10, 40)]) == ()
    assert names(store) == sorted(f"d/{number}" for number in range(10))
    assert store.delete_all([]) == ()


def test_listed_files_are_deleted_and_moved_unless_they_changed(store: Storage) -> None:
    for number in range(80):
        store.put(f"d/{number:02d}", b"abc")
    listed = [file for batch in store.walk("d") for file in batch]
    listed.sort()
    wrong, gone = listed[0]._replace(bytes=4), ListedFile("d/gone", 3, 0)
    assert delete_listed(store, [wrong, gone, *listed[1:40]]) == ((wrong.name, None), (gone.name, None))
    late = listed[1]._replace(name=listed[40].name, modified_ms=listed[40].modified_ms + 1000)
    moves = [(file, f"aside/{at}") for at, file in enumerate((late, gone, *listed[41:]))]
    ends = [answer.end for answer in move_listed(store, moves)]
    assert ends == [MoveEnd.CHANGED] * 2 + [MoveEnd.MOVED] * 39
    assert names(store) == sorted([f"aside/{at}" for at in range(2, 41)] + [listed[0].name, listed[40].name])


def test_a_store_travels_to_another_process(store: Storage) -> None:
    store.put("a", b"1")
    there: Storage = pickle.loads(pickle.dumps(store))
    assert (there, there.read("a")) == (store, b"1")


def test_a_sink_takes_a_parquet_file_and_a_reader_gives_its_columns(store: Storage) -> None:
    table = pa.table({"id": range(100_000), "name": [f"row {number}" for number in range(100_000)]})
    with store.create("data/part.parquet") as sink:
        pq.write_table(table, sink, row_group_size=10_000)
        assert not sink.closed
    with store.open("data/part.parquet") as source, pq.ParquetFile(source, pre_buffer=True) as parquet:
        assert parquet.read() == table
        assert parquet.read_row_group(7, columns=["name"]) == table.slice(70_000, 10_000).select(["name"])


@pytest.mark.parametrize("size", [0, 1, 300_000, 20_000_000])
def test_bytes_of_any_number_come_back(store: Storage, size: int) -> None:
    if store.root.startswith("gs:"):
        # The emulator takes no uploads in parts.
        size = min(size, 5_000_000)
    data = os.urandom(size)
    with store.create("big") as sink:
        for start in range(0, size, 1_000_000):
            sink.write(data[start : start + 1_000_000])
        assert sink.tell() == size
    assert store.read("big") == data
    with store.open("big") as source:
        assert (source.size(), source.read()) == (size, data)
    assert store.move("big", "bigger")
    assert (names(store), store.read("bigger") == data) == (["bigger"], True)


@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 1_100_000), st.integers(0, 600_000), st.booleans()), max_size=8))
def test_reads_in_any_order_are_slices(store: Storage, reads: list[tuple[int, int, bool]]) -> None:
    data = bytes(range(256)) * 4000
    if not store.exists("slices"):
        store.put("slices", data)
    with store.open("slices") as source:
        for offset, length, is_at in reads:
            if is_at and offset <= len(data):
                found = source.read_at(length, offset)
            else:
                source.seek(min(offset, len(data)))
                found = source.read(length)
            assert found == data[offset : offset + length]


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, max_size=12))
def test_a_store_is_a_dict_of_bytes(store: Storage, steps: list[Step]) -> None:
    store.delete_all(names(store))
    twin: dict[str, bytes] = {}
    for number, (verb, name, other, content) in enumerate(steps):
        # A store that was asked twice for one reason takes the same bytes for its own.
        data = content + str(number).encode()
        assert done(store, verb, name, other, data) == done_to(twin, verb, name, other, data)
        found = {stored.name: stored.bytes for batch in store.walk("") for stored in batch}
        assert found == {each: len(held) for each, held in twin.items()}
        assert {each: store.read(each) for each in twin} == twin
        assert {each for each in PLACES if store.stat(each) is not None} == twin.keys()


def test_an_address_must_hold_files(s3_bucket: Bucket) -> None:
    ObjectStorage(f"{s3_bucket.uri}/a b/t").put("x", b"1")
    for location in ("/a b/t", "/a b/t/", "/a b"):
        assert open_storage(s3_bucket.uri + location).root == s3_bucket.uri + location.rstrip("/")
    assert open_storage(f"s3a://{s3_bucket.name}/a b/t") == open_storage(f"s3n://{s3_bucket.name}/a b/t")
    assert open_storage(f"s3a://{s3_bucket.name}/a b/t").read("x") == b"1"
    assert open_storage(s3_bucket.uri).read("a b/t/x") == b"1"
    for location in ("/a b/u", "/a%20b/t", "/a", "//a b/t", "/a b/../a b/t", "/a b/t/x"):
        with pytest.raises(AddressError, match="expected"):
            open_storage(s3_bucket.uri + location)
