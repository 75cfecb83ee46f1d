"""LocalStorage: a name is created once whoever else tries, nothing half-written has its final name, none leads out."""

import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import BinaryIO

import pytest
from tests.support.faulty_store import FaultyStorage, Fuse, Moment, fail
from tests.support.processes import child

from nightkeep.errors import AddressError, CorruptMetadata, MissingFile, NotCreated
from nightkeep.storage import ListedFile, LocalStorage, open_storage
from nightkeep.storage.local import store as local

PROCESSES = 50


@pytest.fixture
def store(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


@pytest.mark.slow
def test_one_of_fifty_processes_creates_a_name_and_all_others_are_reported(tmp_path: Path) -> None:
    with ExitStack() as stack:
        racers = [stack.enter_context(child(_race, str(tmp_path), number)) for number in range(PROCESSES)]
        assert [racer.hear() for racer in racers] == ["ready"] * PROCESSES
        for racer in racers:
            racer.say("go")
        (winner,) = [number for number, racer in enumerate(racers) if racer.hear()]
    assert (tmp_path / "snapshot-1").read_text() == f"written by {winner}"
    assert os.listdir(tmp_path) == ["snapshot-1"]


def _race(pipe: Connection, root: str, number: int) -> None:
    store = LocalStorage(root)
    pipe.send("ready")
    pipe.recv()
    pipe.send(store.put_if_absent("snapshot-1", f"written by {number}".encode(), temporary=f"mine-{number}"))


def test_what_exists_is_neither_replaced_nor_touched(store: LocalStorage) -> None:
    store.put("a", b"first")
    assert not store.put_if_absent("a", b"second", temporary="t")
    with pytest.raises(FileExistsError):
        store.put("a", b"third")
    assert store.read("a") == b"first"
    assert not store.exists("t")


def test_a_hint_is_replaced(store: LocalStorage) -> None:
    store.put("LATEST", b"1")
    store.replace("LATEST", b"2", temporary="t")
    assert store.read("LATEST") == b"2"
    assert not store.exists("t")


def _points(tmp_path: Path) -> Iterator[int]:
    fuse = Fuse()
    FaultyStorage(str(tmp_path), fuse).put_if_absent("name", b"whole", temporary="t")
    yield from range(1, len(fuse.passed) + 1)


def test_whatever_breaks_while_a_name_is_created_it_is_whole_or_absent(tmp_path: Path) -> None:
    (tmp_path / "clean").mkdir()
    seen: dict[bool, set[str]] = {True: set(), False: set()}
    for at in _points(tmp_path / "clean"):
        root = tmp_path / str(at)
        root.mkdir()
        fuse = Fuse(at, fail)
        with pytest.raises((OSError, NotCreated), match="injected"):
            FaultyStorage(str(root), fuse).put_if_absent("name", b"whole", temporary="t")
        present = (root / "name").exists()
        seen[present].add(str(fuse.passed[at - 1]))
        assert not present or (root / "name").read_bytes() == b"whole"
        assert set(os.listdir(root)) <= {"name", "t"}
    assert f"{Moment.BEFORE.value} link name" in seen[False]
    assert f"{Moment.AFTER.value} link name" in seen[True]


def test_a_file_whose_writer_failed_is_not_mistaken_for_a_whole_one(store: LocalStorage) -> None:
    with pytest.raises(RuntimeError), store.create("data") as sink:
        sink.write(b"half")
        raise RuntimeError("the writer failed")
    with pytest.raises(FileExistsError):
        store.put("data", b"whole")


def test_folders_are_made_on_the_way_and_listed_by_name(store: LocalStorage) -> None:
    for name in ("dt=1/bucket-0/b", "dt=1/bucket-0/a"):
        store.put(name, b"xyz")
    assert [(stored.name, stored.bytes) for stored in store.list("dt=1/bucket-0")] == [
        ("dt=1/bucket-0/a", 3),
        ("dt=1/bucket-0/b", 3),
    ]
    assert store.list("dt=1") == ()
    assert store.list("nowhere") == ()
    assert store.list("dt=1/bucket-0/a") == ()


def test_a_file_that_is_gone_is_named(store: LocalStorage) -> None:
    with pytest.raises(MissingFile, match="manifest/gone"):
        store.read("manifest/gone")
    assert not store.delete("manifest/gone")
    assert not store.exists("manifest/gone")


@pytest.mark.parametrize("name", ["../outside", "bucket-0/../../outside", "/etc/passwd"])
def test_no_name_leads_out_of_the_root(store: LocalStorage, name: str) -> None:
    Path(store.root, "..", "outside").resolve().write_text("secret")
    for act in (store.read, store.exists, store.open, store.delete, store.list):
        with pytest.raises(CorruptMetadata, match="a name below this folder"):
            act(name)
    with pytest.raises(CorruptMetadata):
        store.put(name, b"")


def test_an_address_must_be_a_local_folder(tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    folder.mkdir()
    assert open_storage(str(folder)).root == str(folder)
    assert open_storage(folder.as_uri()).root == str(folder)
    for location in ("wasbs://name/table", "s3://", str(tmp_path / "gone")):
        with pytest.raises(AddressError, match="expected"):
            open_storage(location)


def test_a_walk_reports_every_file_in_batches_and_follows_no_link(
    store: LocalStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_BATCH", 100)
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/elsewhere").symlink_to(outside)
    (tmp_path / "a/b/dangling").symlink_to(outside / "gone")
    (tmp_path / "empty").mkdir()
    for number in range(250):
        (tmp_path / "a/b" / str(number)).touch()
    batches = [[stored.name for stored in batch] for batch in store.walk("")]
    assert [len(batch) for batch in batches] == [100, 100, 52]
    expected = {"a/elsewhere", "a/b/dangling", *(f"a/b/{number}" for number in range(250))}
    assert sorted(name for batch in batches for name in batch) == sorted(expected)
    assert store.folders("a") == ("a/b",)
    assert store.delete_all(["a/elsewhere", "a/b/dangling"]) == ()
    assert (outside / "secret").exists()


def test_a_look_at_a_file_is_its_size_and_time(store: LocalStorage) -> None:
    store.put("a", b"xyz")
    os.utime(Path(store.root, "a"), ns=(0, 1_700_000_000_123_999_999))
    assert store.stat("a") == ListedFile("a", 3, 1_700_000_000_123) == store.list("")[0]
    assert store.stat("b") is None
    assert store.stat("a/b") is None


def test_a_moved_file_keeps_its_time(store: LocalStorage) -> None:
    store.put("a", b"xyz")
    os.utime(Path(store.root, "a"), ns=(0, 1_700_000_000_123_000_000))
    assert store.move("a", "far/away/b")
    assert store.stat("far/away/b") == ListedFile("far/away/b", 3, 1_700_000_000_123)
    assert store.stat("a") is None


def test_whatever_breaks_while_a_file_is_moved_it_is_whole_under_one_name_or_both(tmp_path: Path) -> None:
    found = []
    for at in range(1, 5):
        root = tmp_path / str(at)
        root.mkdir()
        (root / "from").write_bytes(b"whole")
        with pytest.raises(OSError, match="injected"):
            FaultyStorage(str(root), Fuse(at, fail)).move("from", "to")
        assert {(root / name).read_bytes() for name in os.listdir(root)} == {b"whole"}
        found.append(sorted(os.listdir(root)))
    assert found == [["from"], ["from", "to"], ["from", "to"], ["to"]]
    assert not LocalStorage(str(tmp_path / "3")).move("from", "to")


@pytest.fixture(params=[errno.EXDEV, errno.EPERM], ids=["another mount", "another's file"])
def apart(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders that share no links."""
    link = os.link

    def refuse(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int, follow_symlinks: bool) -> None:
        if not os.path.sameopenfile(src_dir_fd, dst_dir_fd):
            raise OSError(request.param, os.strerror(request.param))
        link(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("apart")
def test_a_file_that_can_have_one_name_only_is_copied(store: LocalStorage) -> None:
    store.put("a", b"xyz")
    path = Path(store.root, "a")
    path.chmod(0o640)
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    store.put("taken/b", b"theirs")
    assert not store.move("a", "taken/b")
    assert (store.read("a"), store.read("taken/b"), os.listdir(path.parent / "taken")) == (b"xyz", b"theirs", ["b"])
    assert store.move("a", "far/away/b")
    found = Path(store.root, "far/away/b").stat()
    assert (store.read("far/away/b"), found.st_mtime_ns, found.st_mode & 0o777) == (
        b"xyz",
        1_700_000_000_123_456_789,
        0o640,
    )
    assert not store.exists("a") and os.listdir(path.parent / "far/away") == ["b"]
    with pytest.raises(MissingFile):
        store.move("a", "far/away/c")
    store.put("late", b"xyz")
    with pytest.raises(OSError, match="too long"):
        store.move("late", "far/late", may_go=lambda: False)
    assert store.read("late") == store.read("far/late") == b"xyz"


@pytest.mark.usefixtures("apart")
def test_what_changes_while_it_is_copied_or_is_no_file_is_left(tmp_path: Path) -> None:
    class Meddled(LocalStorage):
        def create(self, name: str) -> AbstractContextManager[BinaryIO]:
            Path(self.root, "a").write_bytes(b"longer")
            return super().create(name)

    store = Meddled(str(tmp_path))
    (tmp_path / "a").write_bytes(b"short")
    with pytest.raises(OSError, match="the bytes that were copied"):
        store.move("a", "far/b")
    (tmp_path / "link").symlink_to("a")
    for name in ("link", "far"):
        with pytest.raises(OSError, match=r"not permitted|cross-device"):
            store.move(name, "far/c")
    assert sorted(os.listdir(tmp_path)) == ["a", "far", "link"] and os.listdir(tmp_path / "far") == []


@pytest.mark.usefixtures("apart")
def test_whatever_breaks_while_a_file_is_copied_away_one_name_has_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0/from").write_bytes(b"whole")
    clean = Fuse()
    assert FaultyStorage(str(tmp_path / "0"), clean).move("from", "far/to")
    found = []
    for at in range(1, len(clean.passed) + 1):
        root = tmp_path / str(at)
        root.mkdir()
        (root / "from").write_bytes(b"whole")
        with pytest.raises(OSError, match="injected"):
            FaultyStorage(str(root), Fuse(at, fail)).move("from", "far/to")
        names = [name for name in ("from", "far/to") if (root / name).exists()]
        assert {(root / name).read_bytes() for name in names} == {b"whole"}
        hidden = {path.name for path in (root / "far").iterdir()} - {"to"}
        assert all(name.startswith(".nightkeep-moving-") for name in hidden)
        found.append(names)
    assert [list(names) for names in dict.fromkeys(map(tuple, found))] == [["from"], ["from", "far/to"], ["far/to"]]
    assert len(found) == 10


def test_what_cannot_be_deleted_is_named_and_the_rest_goes(store: LocalStorage) -> None:
    for name in ("a", "folder/b", "c"):
        store.put(name, b"")
    ((name, why),) = store.delete_all(["a", "folder", "gone", "c"])
    assert (name, "folder" in why) == ("folder", True)
    assert [stored.name for batch in store.walk("") for stored in batch] == ["folder/b"]


def test_files_of_several_folders_are_deleted_and_what_is_kept_is_named(store: LocalStorage, tmp_path: Path) -> None:
    names = ["a", "b", "f/a", "f/b", "g/h/a", "f/c", "./f//d"]
    for name in names:
        store.put(name, b"x")
    (tmp_path / "f/folder").mkdir()
    (tmp_path / "away").mkdir()
    (tmp_path / "away/a").write_text("another's")
    (tmp_path / "link").symlink_to(tmp_path / "away")
    kept = dict(store.delete_all([*names, "missing", "f/missing", "no/such/folder", "f/folder", "link/a"]))
    assert sorted(kept) == ["f/folder", "link/a"]
    assert str(tmp_path / "f/folder") in kept["f/folder"] and "symbolic link" in kept["link/a"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "away/a"]


def test_no_file_of_another_folder_is_deleted(tmp_path: Path) -> None:
    store = LocalStorage(str(tmp_path), bounds=("mine",))
    for name in ("mine/a", "others/a"):
        LocalStorage(str(tmp_path)).put(name, b"x")
    assert [name for name, _ in store.delete_all(["mine/a", "others/a"])] == ["others/a"]
    assert [path.parent.name for path in tmp_path.rglob("a")] == ["others"]
    with pytest.raises(CorruptMetadata):
        store.delete_all(["mine/../others/a"])
