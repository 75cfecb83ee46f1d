"""Object stores when many write and requests fail: one winner per name, no bytes lost, failures named and bounded.

Asked of each kind of store that a server stands for: S3 by versitygw, Azure by Azurite, Google by fake-gcs-server, each
behind a proxy that fails requests.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.drivers.azure_faults import AzureFaults
from tests.drivers.azure_server import AzureServer
from tests.drivers.fault_proxy import Fault, Way
from tests.drivers.google_server import GoogleServer, InOtherWords
from tests.drivers.s3_faults import S3Faults
from tests.drivers.s3_server import S3Server
from tests.support.examples import examples
from tests.support.processes import child
from tests.support.store_twin import PLACES, STEP, Step, done, done_to

from nightkeep.errors import RefusedTable
from nightkeep.storage.exclusive import require_exclusive_create
from nightkeep.storage.objects import clients
from nightkeep.storage.objects.store import ObjectStorage

PROCESSES, THREADS = 5, 20
RETRIES = 3
Faults = S3Faults | AzureFaults | InOtherWords
# Google's emulator takes no uploads in parts, and gives no listings in pages.
WHOLE = pytest.mark.parametrize("place", ["s3", "azure"], indirect=True)


@dataclass(frozen=True)
class Place:
    """A new bucket: its address, its server, and a proxy before that. Patterns of requests to such a store."""

    uri: str
    server: S3Server | AzureServer | GoogleServer
    proxy: Faults
    deletes: str
    lists: str
    parts: tuple[str, ...] = ()
    """Requests of which each is needed for a large file."""


@pytest.fixture(params=["s3", "azure", "google"])
def place(
    request: pytest.FixtureRequest,
    s3_server: S3Server,
    azure_server: AzureServer,
    google_server: GoogleServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Place:
    s3 = ("POST .*delete", "GET .*list-type", ("PUT .*partNumber=2", "POST .*uploadId", "POST .*uploads"))
    azure = ("POST .*comp=batch", "GET .*comp=list", ("PUT .*comp=block&", "PUT .*comp=blocklist"))
    if request.param == "s3":
        found = Place(s3_server.bucket().uri, s3_server, S3Faults(s3_server.endpoint), *s3)
    elif request.param == "azure":
        found = Place(azure_server.container().uri, azure_server, AzureFaults(azure_server.endpoint), *azure)
    else:
        proxy = InOtherWords(google_server.own)
        found = Place(google_server.bucket().uri, google_server, proxy, "DELETE .*", "GET .*list-type")
    for name, value in found.server.environment().items():
        monkeypatch.setenv(name, value)
    return found


@pytest.fixture
def faults(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    """A proxy that the environment names as the server, asked again only thrice and soon."""
    monkeypatch.setattr(clients, "RETRIES", RETRIES)
    monkeypatch.setattr(clients, "FIRST_WAIT_MS", 1)
    with place.proxy as proxy:
        for name, value in place.server.environment(proxy.endpoint).items():
            monkeypatch.setenv(name, value)
        yield proxy


@pytest.fixture
def store(place: Place, faults: Faults) -> ObjectStorage:
    """A store behind the proxy."""
    return ObjectStorage(f"{place.uri}/t")


def names(store: ObjectStorage, folder: str = "") -> list[str]:
    return sorted(stored.name for batch in store.walk(folder) for stored in batch)


def test_one_of_a_hundred_creates_a_name_and_all_others_are_reported(place: Place) -> None:
    with ExitStack() as stack:
        racers = [
            stack.enter_context(child(_race, place.uri, place.server.environment(), number))
            for number in range(PROCESSES)
        ]
        assert [racer.hear() for racer in racers] == ["ready"] * PROCESSES
        for racer in racers:
            racer.say("go")
        answers = [answer for racer in racers for answer in racer.hear()]
    assert len(answers) == PROCESSES * THREADS
    store = ObjectStorage(place.uri)
    for name in ("log/1", "log/2", "log/3"):
        (winner,) = [who for who, won in answers if name in won]
        assert store.read(name).decode() == f"written by {winner}" * 1000
    assert names(store) == ["log/1", "log/2", "log/3"]


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


LOST = [
    pytest.param(way, status, id=f"{way.name.lower()}-{status or 'drop'}")
    for way in (Way.BEFORE, Way.AFTER)
    for status in (500, 503, 0)
]


def once(faults: Faults, request: str, way: Way, status: int) -> Fault:
    return faults.fail(status, request=request, way=way) if status else faults.drop(request=request, way=way)


@pytest.mark.parametrize(("way", "status"), LOST)
def test_a_write_whose_answer_is_lost_is_done_once(store: ObjectStorage, faults: Faults, way: Way, status: int) -> None:
    fault = once(faults, "PUT .*/new", way, status)
    store.put("new", b"whole")
    hint = once(faults, "PUT .*/LATEST", way, status)
    store.replace("LATEST", b"7", temporary="t")
    assert (store.read("new"), store.read("LATEST")) == (b"whole", b"7")
    assert len(fault.seen) == len(hint.seen) == 1


@pytest.mark.parametrize(("way", "status"), LOST)
def test_a_conditional_write_never_states_that_it_won_another_s_name(
    store: ObjectStorage, faults: Faults, way: Way, status: int
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
    store: ObjectStorage, place: Place, faults: Faults, way: Way, status: int
) -> None:
    store.put("from", b"whole")
    copied = once(faults, "PUT .*/to", way, status)
    deleted = once(faults, place.deletes, way, status)
    assert store.move("from", "to")
    assert (names(store), store.read("to")) == (["to"], b"whole")
    assert len(copied.seen) == len(deleted.seen) == 1


@pytest.mark.parametrize(("way", "status"), LOST)
def test_a_deletion_whose_answer_is_lost_is_done(
    store: ObjectStorage, place: Place, faults: Faults, way: Way, status: int
) -> None:
    for name in ("a", "b", "c"):
        store.put(name, b"")
    once(faults, place.deletes, way, status)
    assert store.delete("a")
    once(faults, place.deletes, way, status)
    assert store.delete_all(["a", "b"]) == ()
    assert names(store) == ["c"]


@pytest.mark.parametrize("status", [500, 503])
def test_a_move_that_stays_without_an_answer_leaves_the_bytes(
    store: ObjectStorage, place: Place, faults: Faults, status: int
) -> None:
    store.put("from", b"whole")
    copy = faults.fail(status, request="PUT .*/to", way=Way.AFTER, times=RETRIES + 1)
    with pytest.raises(OSError, match=r"/from: .*injected"):
        store.move("from", "to")
    assert (len(copy.seen), names(store)) == (RETRIES + 1, ["from", "to"])
    assert not store.move("from", "to")
    store.delete("to")
    faults.fail(status, request=place.deletes, times=RETRIES + 1)
    with pytest.raises(OSError, match="injected"):
        store.move("from", "to")
    assert {store.read(name) for name in names(store)} == {b"whole"}


ASKED: Sequence[object] = [
    pytest.param(lambda store: store.read("f"), "GET .*/f", id="read"),
    pytest.param(lambda store: store.open("f"), "(GET|HEAD) .*/f", id="open"),
    pytest.param(lambda store: store.stat("f"), "HEAD .*/f", id="stat"),
    pytest.param(lambda store: store.list(""), "lists", id="list"),
    pytest.param(lambda store: store.folders(""), "lists", id="folders"),
    pytest.param(lambda store: list(store.walk("")), "lists", id="walk"),
    pytest.param(lambda store: store.put("g", b""), "PUT .*/g", id="put"),
    pytest.param(lambda store: store.put_if_absent("g", b"", temporary="t"), "PUT .*/g", id="put_if_absent"),
    pytest.param(lambda store: store.replace("g", b"", temporary="t"), "PUT .*/g", id="replace"),
    pytest.param(lambda store: store.delete("f"), "deletes", id="delete"),
]


@pytest.mark.parametrize(("act", "request_"), ASKED)
def test_throttling_is_waited_for_and_its_end_is_not_for_ever(
    store: ObjectStorage, place: Place, faults: Faults, act: Callable[[ObjectStorage], object], request_: str
) -> None:
    request = getattr(place, request_, request_)
    store.put("f", b"1")
    patience = faults.fail(503, request=request, times=RETRIES)
    act(store)
    assert len(patience.seen) == RETRIES
    store.replace("f", b"1", temporary="t")
    outage = faults.fail(503, request=request, times=1000)
    with pytest.raises(OSError, match="503"):
        act(store)
    assert len(outage.seen) <= 2 * (RETRIES + 1)


def test_an_answer_that_breaks_off_is_never_taken_for_the_whole(
    store: ObjectStorage, place: Place, faults: Faults
) -> None:
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
    faults.cut(request=place.lists, times=1000)
    for act in (store.list, store.folders, lambda folder: list(store.walk(folder))):
        with pytest.raises(OSError, match="/t"):
            act("")


@WHOLE
def test_a_walk_that_breaks_in_the_middle_does_not_end_early(
    store: ObjectStorage, faults: S3Faults | AzureFaults
) -> None:
    for number in range(30):
        store.put(f"{number}", b"")
    faults.pages(10)
    faults.fail(500, request="GET .*(continuation-token|marker)", times=1000)
    with pytest.raises(OSError, match="injected"):
        list(store.walk(""))


@WHOLE
@pytest.mark.parametrize("size", [10, 20_000_000])
def test_a_file_whose_writer_failed_is_never_there(store: ObjectStorage, faults: Faults, size: int) -> None:
    with pytest.raises(RuntimeError, match="the writer failed"), store.create("data") as sink:
        sink.write(b"x" * size)
        raise RuntimeError("the writer failed")
    assert names(store) == []
    # Azure forgets parts that nothing names.
    assert bool(faults.asked("DELETE .*uploadId")) == (size > 10 and store.root.startswith("s3:"))
    with store.create("data") as sink:
        sink.write(b"whole")
    assert store.read("data") == b"whole"


@WHOLE
def test_a_file_whose_writer_was_killed_is_never_there(place: Place) -> None:
    with child(_die_writing, place.uri, place.server.environment()) as writer:
        assert writer.end() == -signal.SIGKILL
    store = ObjectStorage(place.uri)
    assert names(store) == []
    store.put("data", b"whole")
    assert names(store) == ["data"]


def _die_writing(pipe: Connection, root: str, environment: Mapping[str, str]) -> None:
    os.environ.update(environment)
    with ObjectStorage(root).create("data") as sink:
        sink.write(b"x" * 20_000_000)
        os.kill(os.getpid(), signal.SIGKILL)


@WHOLE
@pytest.mark.parametrize("part", [0, 1, -1])
def test_a_file_of_which_a_part_failed_is_never_there(
    store: ObjectStorage, place: Place, faults: Faults, part: int
) -> None:
    def write() -> None:
        with store.create("data") as sink:
            for _ in range(20):
                sink.write(b"x" * 1_000_000)

    faults.fail(500, request=place.parts[part], times=RETRIES)
    write()
    assert store.stat("data") is not None
    store.delete("data")
    faults.fail(500, request=place.parts[part], times=1000)
    with pytest.raises(OSError, match="injected"):
        write()
    assert names(store) == []


def test_a_store_that_creates_again_is_refused_by_name(store: ObjectStorage, faults: Faults) -> None:
    require_exclusive_create(store)
    asked = len(faults.requests)
    require_exclusive_create(store)
    assert len(faults.requests) == asked
    faults.forget_conditions()
    forgetful = ObjectStorage(f"{store.root}/other")
    with pytest.raises(RefusedTable, match=f"{forgetful.root}.*If-None-Match.*conditional writes"):
        require_exclusive_create(forgetful)
    assert names(store) == []


def test_a_store_that_gives_no_answer_is_not_refused(store: ObjectStorage, faults: Faults) -> None:
    faults.fail(500, request="PUT", times=1000)
    with pytest.raises(OSError, match="injected"):
        require_exclusive_create(store)


def test_a_lost_answer_to_the_probe_refuses_nothing(store: ObjectStorage, faults: Faults) -> None:
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
    store: ObjectStorage, faults: Faults, steps: list[tuple[Step, tuple[Way, int, int, str] | None]]
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
    store: ObjectStorage, faults: Faults, step: Step, trouble: tuple[Way, int, int, str] | None
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
