"""Files as they were listed go, all others stay; on a disk many at a time, and no name before its other one lasts."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from nightkeep.storage import (
    ListedFile,
    LocalStorage,
    MoveAnswer,
    MovedFolders,
    MoveEnd,
    Storage,
    at_once,
    delete_listed,
    move_listed,
)
from nightkeep.storage.many_requests import THREADS, TOGETHER

SECOND = 1_000_000_000
FOLDERS = ("", "a/", "a/b/", "gone/")
STATES = ("as listed", "same second", "grew", "older", "gone", "a link", "taken")


def remote(folder: Path) -> Storage:
    """A folder that is not taken for one of this machine."""
    return MovedFolders(LocalStorage(str(folder)), frozenset(), "")


def local(folder: Path) -> Storage:
    return LocalStorage(str(folder))


@pytest.fixture(params=[local, remote])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    found: Storage = request.param(tmp_path)
    return found


def made(store: Storage, name: str, state: str) -> ListedFile:
    """A file as it was listed, and what has become of it since."""
    path, listed = Path(store.root, name), ListedFile(name, 3, 1_700_000_000_123)
    if state == "gone" or name.startswith("gone/"):
        return listed
    path.parent.mkdir(parents=True, exist_ok=True)
    if state == "a link":
        path.symlink_to("elsewhere")
        return listed
    path.write_bytes(b"longer" if state == "grew" else b"abc")
    times = {"same second": 999_999_999, "older": -1}
    at = 1_700_000_000 * SECOND + times.get(state, 123_000_000)
    os.utime(path, ns=(at, at))
    return listed


def is_there(store: Storage, name: str) -> bool:
    return os.path.lexists(Path(store.root, name))


NAMES = st.dictionaries(
    st.tuples(st.sampled_from(FOLDERS), st.integers(0, 200)), st.sampled_from(STATES), min_size=1, max_size=100
)


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=NAMES)
@pytest.mark.parametrize("kind", [local, remote])
def test_only_files_that_are_as_listed_are_deleted(
    kind: object, names: dict[tuple[str, int], str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = kind(tmp_path_factory.mktemp("store"))  # type: ignore[operator]
    files = {made(store, f"{folder}{number}", state): state for (folder, number), state in names.items()}
    same = {file.name for file, state in files.items() if state in ("as listed", "same second", "taken")}
    same = {name for name in same if not name.startswith("gone/")}
    there = {file.name for file in files if is_there(store, file.name)}
    assert delete_listed(store, [*files]) == tuple((file.name, None) for file in files if file.name not in same)
    assert {file.name for file in files if is_there(store, file.name)} == there - same


@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=NAMES)
@pytest.mark.parametrize("kind", [local, remote])
def test_only_files_that_are_as_listed_are_moved_and_nothing_is_overwritten(
    kind: object, names: dict[tuple[str, int], str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = kind(tmp_path_factory.mktemp("store"))  # type: ignore[operator]
    files = {made(store, f"{folder}{number}", state): state for (folder, number), state in names.items()}
    moves = [(file, f"aside/{at}") for at, file in enumerate(files)]
    expected = []
    for (file, to), state in zip(moves, files.values(), strict=True):
        end = MoveEnd.MOVED if state in ("as listed", "same second") else MoveEnd.CHANGED
        if state == "taken":
            store.put(to, b"theirs")
            end = MoveEnd.TAKEN
        expected.append(MoveAnswer(MoveEnd.CHANGED if file.name.startswith("gone/") else end))
    there = {file.name for file in files if is_there(store, file.name)}
    assert move_listed(store, moves) == tuple(expected)
    moved = {file.name: to for (file, to), answer in zip(moves, expected, strict=True) if answer.end is MoveEnd.MOVED}
    assert {file.name for file in files if is_there(store, file.name)} == there - moved.keys()
    assert all(store.read(to) == b"abc" for to in moved.values())
    assert all(
        store.read(to) == b"theirs" for (_, to), state in zip(moves, files.values(), strict=True) if state == "taken"
    )


def test_a_bounded_number_of_requests_is_under_way_and_answers_are_in_order() -> None:
    lock, under_way, most = threading.Lock(), [0], [0]
    full = threading.Barrier(THREADS)

    def ask(number: int) -> int:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        full.wait(60)
        with lock:
            under_way[0] -= 1
        return number

    assert at_once(ask, range(3 * THREADS)) == [*range(3 * THREADS)]
    assert most == [THREADS]


@dataclass(frozen=True)
class Watched(LocalStorage):
    """A folder that notes how many folders are open at a time for files that change, and in what order names change."""

    steps: list[tuple[str, str]] = field(default_factory=list)
    opened: list[int] = field(default_factory=lambda: [0, 0])
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def changing(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        with self.lock:
            self.opened[0] += 1
            self.opened[1] = max(self.opened)
        try:
            with LocalStorage.changing(self, name, make=make) as found:
                yield found
        finally:
            with self.lock:
                self.opened[0] -= 1

    def _linked(self, source: int, target: int, name: str, other: str) -> None:
        LocalStorage._linked(self, source, target, name, other)
        self.steps.append(("link", name))

    def removed(self, folder: int, last: str, name: str) -> None:
        self.steps.append(("remove", name))
        LocalStorage.removed(self, folder, last, name)


def test_no_first_name_goes_before_the_folder_of_the_second_one_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, sync = Watched(str(tmp_path)), os.fsync
    files = [made(store, f"a/{number:03d}", "as listed") for number in range(TOGETHER)]

    def synced(descriptor: int) -> None:
        store.steps.append(("sync", os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    (tmp_path / "aside").mkdir()
    monkeypatch.setattr(os, "fsync", synced)
    answers = move_listed(store, [(file, f"aside/{file.bytes}-{at}") for at, file in enumerate(files)])
    assert {answer.end for answer in answers} == {MoveEnd.MOVED}
    names = [file.name for file in files]
    assert store.steps == [
        *(("link", name) for name in names),
        ("sync", str(tmp_path / "aside")),
        *(("remove", name) for name in names),
    ]


@pytest.mark.parametrize("act", ["delete", "move"])
def test_many_files_are_shared_out_to_a_bounded_number_of_open_folders(tmp_path: Path, act: str) -> None:
    store = Watched(str(tmp_path))
    files = [made(store, f"a/{number:04d}", "as listed") for number in range(TOGETHER * THREADS * 2)]
    if act == "delete":
        assert delete_listed(store, files) == ()
    else:
        answers = move_listed(store, [(file, f"b/{at}") for at, file in enumerate(files)])
        assert {answer.end for answer in answers} == {MoveEnd.MOVED} and len(os.listdir(tmp_path / "b")) == len(files)
    assert os.listdir(tmp_path / "a") == []
    assert 1 < store.opened[1] <= THREADS * (1 if act == "delete" else 2)


def test_a_file_that_another_one_replaces_while_it_is_moved_stays(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Replaced(LocalStorage):
        def _linked(self, source: int, target: int, name: str, other: str) -> None:
            LocalStorage._linked(self, source, target, name, other)
            Path(self.root, "new").write_bytes(b"new")
            os.utime(tmp_path / "new", ns=(0, 1_700_000_000_123_000_000))
            Path(self.root, "new").rename(Path(self.root, name))

    file = made(LocalStorage(str(tmp_path)), "a", "as listed")
    (answer,) = move_listed(Replaced(str(tmp_path)), [(file, "aside/a")])
    assert answer.end is MoveEnd.BROKEN and "somebody did" in answer.why
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "aside/a").read_bytes()) == (b"new", b"abc")


def test_a_first_name_stays_where_another_process_took_the_second_one(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Settled(LocalStorage):
        def _linked(self, source: int, target: int, name: str, other: str) -> None:
            LocalStorage._linked(self, source, target, name, other)
            if name == "c":
                os.unlink("b", dir_fd=target)

    files = [made(LocalStorage(str(tmp_path)), name, "as listed") for name in ("a", "b", "c")]
    answers = move_listed(Settled(str(tmp_path)), [(file, f"aside/{file.name}") for file in files])
    assert [answer.end for answer in answers] == [MoveEnd.MOVED, MoveEnd.BROKEN, MoveEnd.MOVED]
    assert "it is left" in answers[1].why and (tmp_path / "b").exists()


def test_what_may_not_go_any_more_keeps_its_first_name(store: Storage) -> None:
    files = [made(store, name, "as listed") for name in ("a", "b", "c")]
    remaining = [4]

    def may_go() -> bool:
        remaining[0] -= 1
        return remaining[0] >= 0

    moves = [(file, f"aside/{file.name}") for file in files]
    if isinstance(store, LocalStorage):
        ends = [MoveEnd.MOVED, MoveEnd.BROKEN, MoveEnd.BROKEN]
        answers = move_listed(store, moves, may_go=may_go)
    else:
        ends = [MoveEnd.MOVED, MoveEnd.MOVED, MoveEnd.LATE]
        answers = sum((move_listed(store, [move], may_go=may_go) for move in moves), ())
    assert [answer.end for answer in answers] == ends
    assert all(store.exists(file.name) for file, end in zip(files, ends, strict=True) if end is not MoveEnd.MOVED)


def test_a_link_on_the_way_is_named_and_nothing_behind_it_goes(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    store = LocalStorage(str(tmp_path / "t"))
    made(LocalStorage(str(outside)), "a", "as listed")
    (tmp_path / "t").mkdir()
    (tmp_path / "t/link").symlink_to(outside)
    file = ListedFile("link/a", 3, 1_700_000_000_123)
    ((name, why),) = delete_listed(store, [file])
    assert name == "link/a" and "symbolic link" in str(why)
    (answer,) = move_listed(store, [(file, "aside/a")])
    assert answer.end is MoveEnd.BROKEN and "symbolic link" in answer.why
    assert (outside / "a").exists()
