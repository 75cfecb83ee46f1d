"""HDFS when many write, calls fail and the cluster is not well: one winner per name, failures named and bounded."""

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Barrier

import pytest
from tests.drivers.hdfs_cluster import HdfsCluster
from tests.support.faulty_hdfs import FaultyHdfs, Trouble
from tests.support.processes import child
from tests.support.store_twin import done, done_to

from nightkeep.errors import AddressError, CorruptMetadata, NotCreated, RefusedTable
from nightkeep.storage import open_storage, within
from nightkeep.storage.hdfs import client as hdfs_client
from nightkeep.storage.hdfs import store as hdfs
from nightkeep.storage.hdfs.failures import failure_of
from nightkeep.storage.hdfs.files import open_ranges
from nightkeep.storage.hdfs.names import split_hdfs
from nightkeep.storage.hdfs.store import HdfsStorage

PROCESSES, THREADS = 5, 20
VERBS = ("put", "put_if_absent", "replace", "create", "move", "delete", "delete_all")


@pytest.fixture
def store(hdfs_folder: str, monkeypatch: pytest.MonkeyPatch) -> HdfsStorage:
    """A store whose client asks again only once and soon."""
    monkeypatch.setattr(hdfs_client, "ATTEMPTS", 1)
    monkeypatch.setattr(hdfs_client, "FIRST_WAIT_MS", 1)
    hdfs_client._client.cache_clear()
    return HdfsStorage(hdfs_folder)


def names(store: HdfsStorage, folder: str = "") -> list[str]:
    return sorted(stored.name for batch in store.walk(folder) for stored in batch)


def test_one_of_a_hundred_creates_a_name_and_all_others_are_reported(hdfs_folder: str) -> None:
    with ExitStack() as stack:
        racers = [stack.enter_context(child(_race, hdfs_folder, number)) for number in range(PROCESSES)]
        assert [racer.hear() for racer in racers] == ["ready"] * PROCESSES
        for racer in racers:
            racer.say("go")
        answers = [answer for racer in racers for answer in racer.hear()]
    assert len(answers) == PROCESSES * THREADS
    store = HdfsStorage(hdfs_folder)
    for name in ("log/1", "log/2", "log/3"):
        (winner,) = [who for who, won in answers if name in won]
        assert store.read(name) == f"written by {winner}".encode() * 1000
    assert names(store) == ["log/1", "log/2", "log/3"]


def _race(pipe: Connection, root: str, number: int) -> None:
    store = HdfsStorage(root)
    store.exists("warm")
    start = Barrier(THREADS)

    def create(thread: int) -> tuple[str, list[str]]:
        who = f"{number}/{thread}"
        data = f"written by {who}".encode() * 1000
        start.wait()
        log = ("log/1", "log/2", "log/3")
        return who, [name for name in log if store.put_if_absent(name, data, temporary=f"log/.{thread}.{number}")]

    pipe.send("ready")
    pipe.recv()
    with ThreadPoolExecutor(THREADS) as pool:
        pipe.send(list(pool.map(create, range(THREADS))))


@pytest.mark.parametrize("verb", VERBS)
def test_whatever_fails_a_name_has_its_old_bytes_or_its_new_ones(
    store: HdfsStorage, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = FaultyHdfs(hdfs_client.client)
    monkeypatch.setattr(hdfs, "client", faulty)
    name, other = ("old", "new") if verb in ("move", "delete", "delete_all", "replace") else ("new", "old")
    before = {"old": b"before"}
    after = dict(before)
    expected = done_to(after, verb, name, other, b"after")
    points = 1
    for trouble in Trouble:
        at = 0
        while at < points:
            at += 1
            store.delete_all(names(store))
            store.put("old", b"before")
            faulty.passed, faulty.at, faulty.trouble = [], at, trouble
            try:
                answer = done(store, verb, name, other, b"after")
            except (OSError, NotCreated) as failure:
                answer = failure
            points, faulty.at = len(faulty.passed), 0
            found = {each: store.read(each) for each in names(store)}
            # What a lost request leaves behind has a name that nobody reads, and no bytes.
            leftover = {each: data for each, data in found.items() if each in ("old", "new") and data}
            place = f"{trouble} {at} of {faulty.passed}"
            if answer == expected and answer != ():
                assert leftover == after, place
            else:
                assert leftover in (before, after), place


def test_a_rename_that_is_made_twice_is_not_taken_for_anothers(
    store: HdfsStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = FaultyHdfs(hdfs_client.client, Trouble.TWICE)
    monkeypatch.setattr(hdfs, "client", faulty)
    store.put("a", b"1")
    faulty.passed, faulty.at = [], 2
    assert store.move("a", "b")
    assert faulty.passed == ["mkdirs", "rename"]
    faulty.passed, faulty.at = [], 5
    store.replace("hint", b"2", temporary="t")
    assert faulty.passed == ["create", "write", "close", "mkdirs", "rename"]
    assert (names(store), store.read("hint")) == (["b", "hint"], b"2")


@pytest.mark.parametrize("size", [10, 6_000_000])
def test_a_file_whose_writer_failed_is_not_there(store: HdfsStorage, size: int) -> None:
    with pytest.raises(RuntimeError, match="the writer failed"), store.create("data") as sink:
        sink.write(b"x" * size)
        raise RuntimeError("the writer failed")
    assert names(store) == []
    store.put("data", b"whole")
    assert store.read("data") == b"whole"


def test_what_a_killed_writer_leaves_is_no_commit_and_can_be_moved_and_deleted(store: HdfsStorage) -> None:
    for _ in range(2):
        with child(_die_writing, store.root) as writer:
            assert writer.end() == -signal.SIGKILL
        assert names(store) == ["log/.t"]
        assert store.put_if_absent("log/1", b"1", temporary="log/.u")
        with pytest.raises(FileExistsError):
            store.put("log/.t", b"")
        assert store.move("log/.t", "aside/t")
        assert store.delete("aside/t")
        assert store.delete("log/1")


def _die_writing(pipe: Connection, root: str) -> None:
    with HdfsStorage(root).create("log/.t") as sink:
        sink.write(b"x" * 6_000_000)
        os.kill(os.getpid(), signal.SIGKILL)


def test_new_files_and_folders_have_the_permissions_of_the_tables_folder(store: HdfsStorage) -> None:
    client = hdfs_client.client(store.root.split("/")[2])
    path = "/" + store.root.split("/", 3)[3]
    for folder, mode in (("shared", 0o775), ("own", 0o700)):
        client.mkdirs(f"{path}/{folder}", 0o755, create_parent=True)
        client.set_permission(f"{path}/{folder}", mode)
        bounded = within(store, folder)
        bounded.put(f"{folder}/a/f", b"1")
        bounded.move(f"{folder}/a/f", f"{folder}/b/f")
        found = {each: client.get_file_info(f"{path}/{folder}/{each}").permission for each in ("b", "b/f")}
        assert found == {"b": mode, "b/f": mode & 0o666}


def test_a_walk_goes_on_where_a_folder_is_gone(store: HdfsStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/f", "b/f", "c/f"):
        store.put(name, b"")
    monkeypatch.setattr(hdfs, "_BATCH", 1)
    found = [next(walk := store.walk(""))[0].name]
    authority, path = split_hdfs(store.root)
    hdfs_client.client(authority).delete(f"/{path}/b", recursive=True)
    assert sorted([*found, *(stored.name for batch in walk for stored in batch)]) == ["a/f", "c/f"]


def test_a_folder_is_not_deleted_as_a_file(store: HdfsStorage) -> None:
    store.put("d/f", b"")
    with pytest.raises(IsADirectoryError, match="d: expected a file to be deleted, found a folder"):
        store.delete("d")
    store.delete("d/f")
    with pytest.raises(IsADirectoryError):
        store.delete("d")


def test_nothing_is_changed_outside_of_the_bounds_and_no_name_has_a_colon(store: HdfsStorage) -> None:
    bounded = within(store, "t")
    store.put("f", b"1")
    bounded.put("t/f", b"2")
    for act in (lambda: bounded.put("g", b""), lambda: bounded.delete("f"), lambda: bounded.move("t/f", "g")):
        with pytest.raises(RefusedTable, match="outside of its table's folders"):
            act()
    with pytest.raises(CorruptMetadata, match="a name below this folder"):
        store.read("a:b")
    assert names(store) == ["f", "t/f"]


def test_an_address_must_be_a_folder(store: HdfsStorage) -> None:
    store.put("a b/t/x", b"1")
    assert open_storage(f"{store.root}/a b/t/").root == f"{store.root}/a b/t"
    for location in ("/a b/u", "/a%20b/t", "/a b/t/x"):
        with pytest.raises(AddressError, match="expected the folder of a table, found none"):
            open_storage(store.root + location)


@pytest.mark.parametrize(
    "location",
    ["hdfs://", "hdfs:///t", "hdfs:/t", "hdfs://h:1/a//b", "hdfs://h:1/../b", "hdfs://h:1/a:b", "hdfs://user@h:1/b"],
)
def test_an_address_that_is_none_is_named(location: str) -> None:
    with pytest.raises(AddressError, match=f"{location}: expected "):
        open_storage(location)


def test_a_nameservice_is_found_by_the_folder_of_its_settings(
    store: HdfsStorage, hdfs_cluster: HdfsCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("f", b"1")
    path = store.root.split("/", 3)[3]
    with pytest.raises(AddressError) as raised:
        open_storage(f"hdfs://lake/{path}")
    assert str(raised.value) == (
        "hdfs://lake: expected lake to be a nameservice, found no such setting; set HADOOP_CONF_DIR to the folder of "
        "its hdfs-site.xml, or name a host and a port"
    )
    for name, value in hdfs_cluster.nameservice(tmp_path, "lake").items():
        monkeypatch.setenv(name, value)
    found = open_storage(f"hdfs://lake/{path}")
    assert (found.root, found.read("f")) == (f"hdfs://lake/{path}", b"1")
    assert found.put_if_absent("g", b"2", temporary="t")


def test_a_namenode_that_is_down_is_one_sentence(store: HdfsStorage) -> None:
    begun = time.monotonic()
    with pytest.raises(OSError) as raised:
        open_storage("hdfs://127.0.0.1:1/t")
    assert str(raised.value) == (
        "hdfs://127.0.0.1:1/t: no answer from the namenode at 127.0.0.1:1 (Connection refused (os error 111)); see "
        "that it runs, name its host and port, or set HADOOP_CONF_DIR to the folder of its hdfs-site.xml"
    )
    assert store.delete_all([]) == ()
    names = [str(number) for number in range(500)]
    assert [name for name, _ in HdfsStorage("hdfs://127.0.0.1:1/t").delete_all(names)] == names
    assert time.monotonic() - begun < 60


def test_a_namenode_that_stays_silent_is_waited_for_in_vain_but_not_for_ever(
    store: HdfsStorage, hdfs_cluster: HdfsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("f", b"1")
    monkeypatch.setattr(hdfs_client, "CALL_SECONDS", 0.5)
    with hdfs_cluster.silent(), pytest.raises(OSError, match=r"no answer from the namenode .* \(within 0.5 seconds\)"):
        store.read("f")


def test_safe_mode_is_named_and_changes_nothing(store: HdfsStorage, hdfs_cluster: HdfsCluster) -> None:
    store.put("f", b"1")
    acts: tuple[Callable[[], object], ...] = (
        lambda: store.put("g", b""),
        lambda: store.put_if_absent("g", b"", temporary="t"),
        lambda: store.replace("f", b"", temporary="t"),
        lambda: store.move("f", "g"),
        lambda: store.delete("f"),
    )
    with hdfs_cluster.safe_mode():
        for act in acts:
            with pytest.raises((OSError, NotCreated), match="is in safe mode and changes nothing; wait until"):
                act()
        assert [(name, "safe mode" in why) for name, why in store.delete_all(["f"])] == [("f", True)]
        assert (names(store), store.read("f")) == (["f"], b"1")


def test_no_permission_names_the_user_and_is_not_absence(store: HdfsStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("f", b"1")
    authority, path = split_hdfs(store.root)
    hdfs_client.client(authority).set_permission(f"/{path}", 0o700)
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    told = r"access denied \(Permission denied: user=stranger, access=.*\); set HADOOP_USER_NAME to a user who has"
    for act in (store.read, store.stat, store.exists, store.open, store.delete, lambda name: store.put(name, b"")):
        with pytest.raises(PermissionError, match=told):
            act("f")
    for act in (store.list, store.folders, lambda folder: list(store.walk(folder))):
        with pytest.raises(PermissionError, match=told):
            act("")
    assert [name for name, _ in store.delete_all(["f", "g"])] == ["f", "g"]


@pytest.mark.extended
def test_a_cluster_without_datanodes_loses_no_name(store: HdfsStorage, hdfs_cluster: HdfsCluster) -> None:
    store.put("f", b"1")
    with hdfs_cluster.no_datanode():
        for act in (lambda: store.read("f"), lambda: store.put("g", b"2")):
            with pytest.raises(OSError, match="no datanode takes or gives its bytes"):
                act()
        with pytest.raises(NotCreated, match="no datanode"):
            store.put_if_absent("h", b"2", temporary="t")
        assert names(store) == ["f"]
    assert store.read("f") == b"1"


@pytest.mark.parametrize(
    ("answered", "kind", "told"),
    [
        (
            'FatalRPCError("org.apache.hadoop.security.AccessControlException", '
            '"SIMPLE authentication is not enabled.")',
            PermissionError,
            "asks for Kerberos .*set HADOOP_CONF_DIR .*, and run kinit",
        ),
        ("NoSASLMechanism", PermissionError, "asks for Kerberos"),
        (
            'RPCError("org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported\\n\\tat")',
            OSError,
            "the namenode at h:1 is on standby; name the nameservice instead",
        ),
        (
            'RPCError("java.io.IOException", "File /t could only be written to 0 of the 1 minReplication nodes.")',
            OSError,
            "no datanode takes or gives its bytes",
        ),
        (
            'RPCError("a.b.QuotaExceededException", "The quota is exceeded\\n\\tat x")',
            OSError,
            "hdfs://h:1/f: QuotaExceededException The quota is exceeded$",
        ),
        (f"ChecksumError {'x' * 1000}", OSError, "hdfs://h:1/f: ChecksumError x{186}[.]{3}$"),
    ],
)
def test_an_answer_becomes_one_sentence(answered: str, kind: type[OSError], told: str) -> None:
    failure = failure_of("hdfs://h:1/f", "h:1", RuntimeError(answered))
    assert type(failure) is kind
    with pytest.raises(kind, match=told):
        raise failure


def test_an_encryption_zone_without_a_server_of_its_keys_is_refused(
    store: HdfsStorage, hdfs_cluster: HdfsCluster
) -> None:
    _, path = split_hdfs(store.root)
    hdfs_cluster.encrypt(f"/{path}")
    with pytest.raises(RefusedTable, match=r"an encryption zone of HDFS.*hadoop\.security\.key\.provider\.path"):
        store.put("f", b"1")
    assert names(store) == []


def test_what_the_client_does_not_have_is_refused() -> None:
    with pytest.raises(RefusedTable, match="XOR of HDFS"):
        raise failure_of("hdfs://h:1/f", "h:1", NotImplementedError("XOR"))


def test_a_small_file_is_read_with_its_opening(store: HdfsStorage) -> None:
    store.put("small", b"0123456789")
    asked: list[Callable[[], bytes]] = []

    def ask(call: Callable[[], bytes]) -> bytes:
        asked.append(call)
        return call()

    authority, path = split_hdfs(store.root)
    with open_ranges(hdfs_client.client(authority).read(f"/{path}/small"), ask, subject="small") as source:
        assert (source.size(), source.read(3), source.read_at(2, 8)) == (10, b"012", b"89")
    assert len(asked) == 1


def test_a_folder_that_is_not_there_is_answered_with_the_one_beside_it_that_is_near(hdfs_folder: str) -> None:
    HdfsStorage(hdfs_folder).put("clicks/a", b"1")
    for asked, meant in (("clickz", "; did you mean clicks?"), ("zzz", ""), ("nowhere/t", "")):
        with pytest.raises(AddressError, match="expected the folder of a table, found none") as failure:
            open_storage(f"{hdfs_folder}/{asked}")
        assert str(failure.value).endswith(f"found none{meant}")
