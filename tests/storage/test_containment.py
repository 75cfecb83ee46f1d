"""Nothing outside of a table's folder is created, moved or deleted, whatever links somebody put into it."""

import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.drivers.s3_server import Bucket

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.storage import LocalStorage, Storage
from nightkeep.storage.objects.store import ObjectStorage

CHANGES: dict[str, Callable[[Storage, str], object]] = {
    "create": lambda store, name: store.create(name).__enter__(),
    "put": lambda store, name: store.put(name, b"ours"),
    "put_if_absent": lambda store, name: store.put_if_absent(name, b"ours", temporary="t"),
    "put_if_absent by a temporary": lambda store, name: store.put_if_absent("new", b"ours", temporary=name),
    "replace": lambda store, name: store.replace(name, b"ours", temporary="t"),
    "move away": lambda store, name: store.move(name, "moved"),
    "move there": lambda store, name: store.move("a", name),
    "delete": lambda store, name: store.delete(name),
}


@pytest.fixture
def store(tmp_path: Path) -> LocalStorage:
    root = tmp_path / "table"
    root.mkdir()
    (root / "a").write_bytes(b"a")
    return LocalStorage(str(root))


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    (folder / "deep").mkdir(parents=True)
    for name in ("secret", "deep/secret"):
        (folder / name).write_text(f"content of {name}")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("link", ["link", "in/link", "in/link/deep"])
@pytest.mark.parametrize("change", CHANGES)
def test_no_change_follows_a_link(change: str, link: str, store: LocalStorage, victim: Path) -> None:
    folder = Path(store.root, link.removesuffix("/deep"))
    folder.parent.mkdir(exist_ok=True)
    folder.symlink_to(victim)
    before = files(victim)
    for name in ("secret", "new", "new/one"):
        with pytest.raises(
            RefusedTable, match=rf"table/{folder.name if link == 'link' else 'in/link'}: a symbolic link"
        ):
            CHANGES[change](store, f"{link}/{name}")
    assert files(victim) == before and Path(store.root, "a").read_bytes() == b"a"


def test_a_relative_link_and_one_to_the_table_itself_are_links_too(store: LocalStorage) -> None:
    Path(store.root, "data").mkdir()
    Path(store.root, "up").symlink_to("..")
    Path(store.root, "same").symlink_to("data")
    for name in ("up/x", "same/x"):
        with pytest.raises(RefusedTable, match="a symbolic link"):
            store.put(name, b"")


def test_of_several_files_those_behind_a_link_are_named_and_stay(store: LocalStorage, victim: Path) -> None:
    Path(store.root, "link").symlink_to(victim)
    store.put("b", b"")
    ((name, why),) = store.delete_all(["link/secret", "a", "b"])
    assert (name, "a symbolic link" in why) == ("link/secret", True)
    assert len(files(victim)) == 2 and not store.exists("a") and not store.exists("b")


def test_a_file_that_is_a_link_goes_itself(store: LocalStorage, victim: Path) -> None:
    before = files(victim)
    for name in ("x", "y", "z"):
        Path(store.root, name).symlink_to(victim / "secret")
    assert store.delete("x")
    assert store.move("y", "in/y") and Path(store.root, "in/y").is_symlink()
    store.replace("z", b"hint", temporary="t")
    assert store.read("z") == b"hint" and not Path(store.root, "z").is_symlink()
    with pytest.raises(FileExistsError, match="table/in/y"):
        store.put("in/y", b"ours")
    assert files(victim) == before


@pytest.mark.parametrize("act", ["unlink", "link", "open", "replace"])
def test_a_link_that_takes_a_folders_place_meanwhile_leads_nowhere(
    act: str, store: LocalStorage, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last moment there is: right before the system call that changes a name."""
    store.put("data/secret", b"ours")
    store.put("other/x", b"ours")
    before, call = files(victim), getattr(os, act)

    def swap(*given: object, **keys: object) -> object:
        writes = act != "open" or bool(int(str(given[1])) & os.O_CREAT)
        if writes and not Path(store.root, "data").is_symlink():
            Path(store.root, "data").rename(f"{store.root}/data-was")
            Path(store.root, "data").symlink_to(victim)
        return call(*given, **keys)

    monkeypatch.setattr(os, act, swap)
    change = {
        "unlink": lambda: store.delete("data/secret"),
        "link": lambda: store.move("other/x", "data/x"),
        "open": lambda: store.put("data/new", b""),
        "replace": lambda: store._rename("other/x", "data/secret"),
    }[act]
    if act == "link":
        # The new name is looked at once more before the old one goes: it is not where it should be.
        with pytest.raises(OSError, match="it is left"):
            change()
        assert store.read("other/x") == b"ours"
    else:
        change()
    assert files(victim) == before


READS: dict[str, Callable[[Storage, str], object]] = {
    "read": lambda store, name: store.read(f"{name}/secret"),
    "open": lambda store, name: store.open(f"{name}/secret"),
    "list": lambda store, name: store.list(name),
    "folders": lambda store, name: store.folders(name),
    "walk": lambda store, name: list(store.walk(name)),
}


@pytest.mark.parametrize("verb", READS)
def test_what_a_link_hides_outside_is_not_read(verb: str, store: LocalStorage, victim: Path) -> None:
    Path(store.root, "link").symlink_to(victim)
    for name in ("link", "link/deep"):
        with pytest.raises(RefusedTable, match=r"table/link.*: a symbolic link that leads out") as refusal:
            READS[verb](store, name)
        assert "content of" not in str(refusal.value)
    Path(store.root, "inner").mkdir()
    Path(store.root, "inner/secret").write_bytes(b"own")
    Path(store.root, "same").symlink_to("inner")
    READS[verb](store, "same")


def test_a_file_that_is_a_link_out_is_not_read(store: LocalStorage, victim: Path) -> None:
    Path(store.root, "x").symlink_to(victim / "secret")
    for verb in (store.read, store.open):
        with pytest.raises(RefusedTable, match="table/x: a symbolic link that leads out"):
            verb("x")


def test_only_regular_files_are_read(store: LocalStorage) -> None:
    os.mkfifo(Path(store.root, "pipe"))
    Path(store.root, "folder").mkdir()
    for verb in (store.read, store.open):
        with pytest.raises(CorruptMetadata, match="a regular file"):
            verb("pipe")
        with pytest.raises(MissingFile, match="a folder"):
            verb("folder")


def test_the_way_to_the_table_may_have_links(store: LocalStorage, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(store.root)
    aliased = LocalStorage(str(tmp_path / "alias"))
    aliased.put("in/x", b"1")
    assert (aliased.read("in/x"), store.read("in/x")) == (b"1", b"1")
    assert [stored.name for batch in aliased.walk("") for stored in batch] == ["a", "in/x"]


@pytest.fixture(params=["folder", "bucket"])
def bounded(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """A store of many tables, of which one has two folders."""
    whole: LocalStorage | ObjectStorage = LocalStorage(str(tmp_path))
    if request.param == "bucket":
        bucket: Bucket = request.getfixturevalue("s3_bucket")
        whole = ObjectStorage(bucket.uri)
    for name in ("db/t/a", "db/u/secret", "db/tt", "a"):
        whole.put(name, b"theirs")
    return replace(whole, bounds=("db/t", "fast/t"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["db/u/secret", "db/tt", "db/t2/x", "fast", "db/t", "new"])
@pytest.mark.parametrize("change", CHANGES)
def test_of_a_store_of_many_tables_only_the_tables_own_folders_change(change: str, name: str, bounded: Storage) -> None:
    store: Storage = pickle.loads(pickle.dumps(bounded))
    if change == "move there":
        with pytest.raises(RefusedTable, match="outside of its table's folders"):
            store.move("db/t/a", name)
    elif change != "delete" or store.exists(name):
        with pytest.raises(RefusedTable, match="outside of its table's folders"):
            CHANGES[change](store, name)
    assert {store.read(each) for each in ("db/t/a", "db/u/secret", "db/tt", "a")} == {b"theirs"}
    assert [each for each, _ in store.delete_all([name, "db/t/a"])] == [name]


@pytest.mark.slow
def test_what_is_within_the_folders_changes(bounded: Storage) -> None:
    bounded.put("db/t/x/y", b"1")
    bounded.put("fast/t/x", b"2")
    assert bounded.move("db/t/x/y", "fast/t/y")
    assert bounded.delete("fast/t/y") and bounded.delete("fast/t/x")
    assert bounded.read("db/u/secret") == b"theirs"
