"""Buckets when many write and requests fail: one winner per name, each file listed once, failures named and bounded."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from threading import Barrier
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.drivers.fault_proxy import Fault, Way
from tests.drivers.s3_faults import S3Faults, put_folder
from tests.drivers.s3_server import ACCESS_KEY, SECRET_KEY, Bucket, S3Server
from tests.support.examples import examples
from tests.support.processes import child
from tests.support.store_twin import PLACES, STEP, Step, done, done_to

from nightkeep.errors import AddressError, CorruptMetadata, MissingFile, RefusedTable
from nightkeep.storage import ObjectStorage, clients, objects, open_storage, require_exclusive_create

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


def test_one_of_a_hundred_creates_a_name_and_all_others_are_told(s3_server: S3Server, s3_bucket: Bucket) -> None:
    with ExitStack() as stack:
        racers = [
            stack.enter_context(child(_race, s3_bucket.uri, s3_server.environment(), number))
            for number in range(PROCESSES)
        ]
        assert [racer.hear() for racer in racers] == ["ready"] * PROCESSES
        for racer in racers:
            racer.say("go")
        answers = [answer for racer in racers for answer in racer.hear()]
    assert len(answers) == PROCESSES * THREADS
    for name in ("log/1", "log/2", "log/3"):
        (winner,) = [who for who, won in answers if name in won]
        assert (s3_bucket.folder / name).read_text() == f"written by {winner}" * 1000
    assert sorted(os.listdir(s3_bucket.folder / "log")) == ["1", "2", "3"]


def _race(pipe: Connection, root: str, environment: Mapping[str, str], number: int) -> None:
    os.environ.update(environment)
    store = ObjectStorage(root)
    store.exists("warm")
    start = Barrier(THREADS)

    def create(thread: int) -> tuple[str, list[str]]:
        who = f"{number}/{thread}"
        data = f"written by {who}".encode() * 1000
        start.wait()
        return who, [name for name in ("log/1", "log/2", "log/3") if store.put_if_absent(name, data, temporary="")]

    pipe.send("ready")
    pipe.recv()
    with ThreadPoolExecutor(THREADS) as pool:
        pipe.send(list(pool.map(create, range(THREADS))))


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
        "full-",
        "full/empty",
        "void/deep",
    ]
    assert [stored.name for stored in store.list("")] == ["full-"]
    assert store.folders("") == ("full", "void")
    assert store.stat("void") is None
    assert not store.delete("void")
    assert (s3_bucket.folder / "t/void/deep").is_dir()


LOST = [
    pytest.param(way, status, id=f"{way.name.lower()}-{status or 'drop'}")
    for way in (Way.BEFORE, Way.AFTER)
    for status in (500, 503, 0)
]


def once(faults: S3Faults, request: str, way: Way, status: int) -> Fault:
    return faults.fail(status, request=request, way=way) if status else faults.drop(request=request, way=way)


@pytest.mark.parametrize(("way", "status"), LOST)
def test_a_write_whose_answer_is_lost_is_done_once(
    store: ObjectStorage, faults: S3Faults, way: Way, status: int
) -> None:
    fault = once(faults, "PUT .*/new", way, status)
    store.put("new", b"whole")
    hint = once(faults, "PUT .*/LATEST", way, status)
    store.replace("LATEST", b"7", temporary="t")
    assert (store.read("new"), store.read("LATEST")) == (b"whole", b"7")
    assert len(fault.seen) == len(hint.seen) == 1


@pytest.mark.parametrize(("way", "status"), LOST)
def test_a_conditional_write_never_says_that_it_won_another_s_name(
    store: ObjectStorage, faults: S3Faults, way: Way, status: int
) -> None:
    once(faults, "PUT .*/free", way, status)
    is_won = store.put_if_absent("free", b"ours", temporary="t")
    # Asked again after it was done, the client meets its own file: False, and the caller looks whose it is.
    assert (is_won, store.read("free")) == (way is Way.BEFORE, b"ours")
    store.put("taken", b"theirs")
    once(faults, "PUT .*/taken", way, status)
    assert not store.put_if_absent("taken", b"ours", temporary="t")
    assert store.read("taken") == b"theirs"


@pytest.mark.parametrize(("way", "status"), LOST)
def test_a_move_whose_answers_are_lost_is_done_once(
    store: ObjectStorage, faults: S3Faults, way: Way, status: int
) -> None:
    store.put("from", b"whole")
    copied = once(faults, "PUT .*/to", way, status)
    deleted = once(faults, "POST .*delete", way, status)
    assert store.move("from", "to")
    assert (names(store), store.read("to")) == (["to"], b"whole")
    assert len(copied.seen) == len(deleted.seen) == 1


@pytest.mark.parametrize(("way", "status"), LOST)
def test_a_deletion_whose_answer_is_lost_is_done(store: ObjectStorage, faults: S3Faults, way: Way, status: int) -> None:
    for name in ("a", "b", "c"):
        store.put(name, b"")
    once(faults, "POST .*delete", way, status)
    assert store.delete("a")
    once(faults, "POST .*delete", way, status)
    assert store.delete_all(["a", "b"]) == ()
    assert names(store) == ["c"]


@pytest.mark.parametrize("status", [500, 503])
def test_a_move_that_stays_without_an_answer_leaves_the_bytes(
    store: ObjectStorage, faults: S3Faults, status: int
) -> None:
    store.put("from", b"whole")
    copy = faults.fail(status, request="PUT .*/to", way=Way.AFTER, times=RETRIES + 1)
    with pytest.raises(OSError, match=r"/from: .*injected"):
        store.move("from", "to")
    assert (len(copy.seen), names(store)) == (RETRIES + 1, ["from", "to"])
    assert not store.move("from", "to")
    store.delete("to")
    faults.fail(status, request="POST .*delete", times=RETRIES + 1)
    with pytest.raises(OSError, match="injected"):
        store.move("from", "to")
    assert {store.read(name) for name in names(store)} == {b"whole"}


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


ASKED: Sequence[object] = [
    pytest.param(lambda store: store.read("f"), "GET .*/f", id="read"),
    pytest.param(lambda store: store.open("f"), "(GET|HEAD) .*/f", id="open"),
    pytest.param(lambda store: store.stat("f"), "HEAD .*/f", id="stat"),
    pytest.param(lambda store: store.list(""), "GET .*list-type", id="list"),
    pytest.param(lambda store: store.folders(""), "GET .*list-type", id="folders"),
    pytest.param(lambda store: list(store.walk("")), "GET .*list-type", id="walk"),
    pytest.param(lambda store: store.put("g", b""), "PUT .*/g", id="put"),
    pytest.param(lambda store: store.put_if_absent("g", b"", temporary="t"), "PUT .*/g", id="put_if_absent"),
    pytest.param(lambda store: store.replace("g", b"", temporary="t"), "PUT .*/g", id="replace"),
    pytest.param(lambda store: store.delete("f"), "POST .*delete", id="delete"),
]


@pytest.mark.parametrize(("act", "request_"), ASKED)
def test_throttling_is_waited_for_and_its_end_is_not_for_ever(
    store: ObjectStorage, faults: S3Faults, act: Callable[[ObjectStorage], object], request_: str
) -> None:
    store.put("f", b"1")
    patience = faults.fail(503, request=request_, times=RETRIES)
    act(store)
    assert len(patience.seen) == RETRIES
    store.replace("f", b"1", temporary="t")
    outage = faults.fail(503, request=request_, times=1000)
    with pytest.raises(OSError, match="503"):
        act(store)
    assert len(outage.seen) <= 2 * (RETRIES + 1)


def test_no_permission_is_said_at_once_and_is_not_absence(
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


def test_an_answer_that_breaks_off_is_never_taken_for_the_whole(store: ObjectStorage, faults: S3Faults) -> None:
    data = os.urandom(3_000_000)
    store.put("big", data)
    cut = faults.cut(request="GET .*/big")
    assert store.read("big") == data
    with store.open("big") as source:
        again = faults.cut(request="GET .*/big")
        assert source.read() == data
    assert len(cut.seen) == len(again.seen) == 1
    faults.cut(request="GET .*/big", times=1000)
    with pytest.raises(OSError, match="t/big"):
        store.read("big")
    faults.cut(request="GET .*list-type", times=1000)
    for act in (store.list, store.folders, lambda folder: list(store.walk(folder))):
        with pytest.raises(OSError, match="/t"):
            act("")


def test_a_walk_that_breaks_in_the_middle_does_not_end_early(
    store: ObjectStorage, faults: S3Faults, s3_bucket: Bucket
) -> None:
    for number in range(30):
        store.put(f"{number}", b"")
    faults.pages(10)
    faults.fail(500, request="GET .*continuation-token", times=1000)
    with pytest.raises(OSError, match="injected"):
        list(store.walk(""))


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


@pytest.mark.parametrize("size", [10, 20_000_000])
def test_a_file_whose_writer_failed_is_never_there(store: ObjectStorage, faults: S3Faults, size: int) -> None:
    with pytest.raises(RuntimeError, match="the writer failed"), store.create("data") as sink:
        sink.write(b"x" * size)
        raise RuntimeError("the writer failed")
    assert names(store) == []
    assert bool(faults.asked("DELETE .*uploadId")) == (size > 10)
    with store.create("data") as sink:
        sink.write(b"whole")
    assert store.read("data") == b"whole"


def test_a_file_whose_writer_was_killed_is_never_there(s3_server: S3Server, s3_bucket: Bucket) -> None:
    with child(_die_writing, s3_bucket.uri, s3_server.environment()) as writer:
        assert writer.end() == -signal.SIGKILL
    store = ObjectStorage(s3_bucket.uri)
    assert names(store) == []
    store.put("data", b"whole")
    assert names(store) == ["data"]


def _die_writing(pipe: Connection, root: str, environment: Mapping[str, str]) -> None:
    os.environ.update(environment)
    with ObjectStorage(root).create("data") as sink:
        sink.write(b"x" * 20_000_000)
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("request_", ["PUT .*partNumber=2", "POST .*uploadId", "POST .*uploads"])
def test_a_file_of_which_a_part_failed_is_never_there(store: ObjectStorage, faults: S3Faults, request_: str) -> None:
    def write() -> None:
        with store.create("data") as sink:
            for _ in range(20):
                sink.write(b"x" * 1_000_000)

    faults.fail(500, request=request_, times=RETRIES)
    write()
    assert store.stat("data") is not None
    store.delete("data")
    faults.fail(500, request=request_, times=1000)
    with pytest.raises(OSError, match="injected"):
        write()
    assert names(store) == []


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


def test_times_are_whole_seconds_whichever_answer_tells_them(store: ObjectStorage) -> None:
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


def test_a_store_that_creates_again_is_refused_by_name(store: ObjectStorage, faults: S3Faults) -> None:
    require_exclusive_create(store)
    asked = len(faults.requests)
    require_exclusive_create(store)
    assert len(faults.requests) == asked
    faults.forget_conditions()
    forgetful = ObjectStorage(f"{store.root}/other")
    with pytest.raises(RefusedTable, match=f"{forgetful.root}.*If-None-Match.*conditional writes"):
        require_exclusive_create(forgetful)
    assert names(store) == []


def test_a_store_that_gives_no_answer_is_not_refused(store: ObjectStorage, faults: S3Faults) -> None:
    faults.fail(500, request="PUT", times=1000)
    with pytest.raises(OSError, match="injected"):
        require_exclusive_create(store)


def test_a_lost_answer_to_the_probe_refuses_nothing(store: ObjectStorage, faults: S3Faults) -> None:
    faults.drop(request="PUT .*_nightkeep/probe")
    require_exclusive_create(store)
    assert names(store) == []


TROUBLE = st.one_of(
    st.none(),
    st.tuples(
        st.sampled_from((Way.BEFORE, Way.AFTER)),
        st.sampled_from((500, 503, 0)),
        st.sampled_from((1, RETRIES, RETRIES + 1, 1000)),
        st.sampled_from(("PUT", "POST", "(PUT|POST)", "HEAD", ".*")),
    ),
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(STEP, TROUBLE), max_size=8))
def test_whatever_fails_a_name_has_its_old_bytes_or_its_new_ones(
    store: ObjectStorage, faults: S3Faults, steps: list[tuple[Step, tuple[Way, int, int, str] | None]]
) -> None:
    store.delete_all(names(store))
    before: dict[str, bytes] = {}
    for number, ((verb, name, other, content), trouble) in enumerate(steps):
        data = content + str(number).encode()
        after = dict(before)
        expected = done_to(after, verb, name, other, data)
        answer = _done_in_trouble(store, faults, (verb, name, other, data), trouble)
        found = {each: store.read(each) for each in names(store)}
        if answer == expected or (verb, answer) == ("put_if_absent", False):
            assert found == after
        else:
            assert answer is OSError or verb == "delete_all"
            assert all(found.get(each) in (before.get(each), after.get(each)) for each in PLACES)
            assert verb != "move" or set(found.values()) == set(before.values())
        before = found


def _done_in_trouble(
    store: ObjectStorage, faults: S3Faults, step: Step, trouble: tuple[Way, int, int, str] | None
) -> object:
    if trouble is None:
        return done(store, *step)
    way, status, times, request = trouble
    fault = once(faults, request, way, status)
    fault.times = times
    try:
        return done(store, *step)
    except OSError:
        return OSError
    finally:
        fault.times = 0


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
    scheme, authority, prefix = clients.split_location(location)
    assert (type(clients.client(scheme, authority, ())).__name__, prefix) == (kind, "t")


def test_a_conflict_of_conditions_is_neither_won_nor_lost(store: ObjectStorage, faults: S3Faults) -> None:
    # AWS: 409 ConditionalRequestConflict, where another request for the same key is under way.
    once(faults, "PUT .*/free", Way.BEFORE, 409)
    assert store.put_if_absent("free", b"ours", temporary="t")
    busy = faults.fail(409, request="PUT .*/busy", times=1000)
    with pytest.raises(OSError, match="expected it to be created or to exist, found neither"):
        store.put_if_absent("busy", b"ours", temporary="t")
    assert (names(store), len(busy.seen)) == (["free"], 10)
