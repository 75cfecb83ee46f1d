"""Sweeps, restores and purges that break at any one of their writes: a rerun leaves each file in one place, whole.

Clean runs are counted; every write is then failed, and the process killed, at every point it passes.
"""

import shutil
import signal
from pathlib import Path

import pytest
from tests.retention.killed_sweep import act, die, die_between_mounts, hold, unlinked
from tests.retention.toy_table import NOW, Toy
from tests.support.faulty_store import FaultyStorage, Fuse, Moment, Point, fail
from tests.support.processes import child

from nightkeep.errors import NotCreated, RefusedTable, UsageError
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.orphans.quarantine import restore
from nightkeep.retention.orphans.quarantine_manifest import quarantines
from nightkeep.storage import LocalStorage

OLD = ("data/day=1/old one.dat", "data/old.dat")
LIVE = ("data/a.dat",)
Files = dict[str, tuple[bytes, int]]
ACTS = ["quarantine", "delete", "restore", "purge"]
each_act = pytest.mark.parametrize("what", ACTS)


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables that each act has something to do in; where files are to be restored or purged they are aside."""
    made = {}
    for what in ACTS:
        toy = Toy.at(tmp_path_factory.mktemp("templates") / what)
        toy.write(*LIVE, *OLD)
        toy.commit(1, *LIVE)
        if what in ("restore", "purge"):
            assert toy.swept(SweepMode.QUARANTINE, "run-1").acted.files == len(OLD)
        made[what] = toy.folder
    return made


@pytest.fixture(scope="module")
def all_files(templates: dict[str, Path]) -> Files:
    return Toy(LocalStorage(str(templates["quarantine"]))).files()


def _clean(templates: dict[str, Path], what: str, folder: Path) -> tuple[Point, ...]:
    """The points that the act passes when nothing breaks."""
    fuse = Fuse()
    act(_copy(templates[what], folder, fuse), what, "run-1", "clean")
    return tuple(fuse.passed)


@each_act
def test_a_clean_act_passes_every_kind_of_write(what: str, templates: dict[str, Path], tmp_path: Path) -> None:
    steps = {(point.moment, point.step) for point in _clean(templates, what, tmp_path)}
    assert {(moment, "delete") for moment in (Moment.BEFORE, Moment.AFTER)} <= steps
    if what in ("quarantine", "restore"):
        assert {(moment, "link") for moment in (Moment.BEFORE, Moment.AFTER)} <= steps
        assert {(moment, "create") for moment in Moment} <= steps


@pytest.mark.few(2)
@each_act
def test_every_write_fails_once(what: str, templates: dict[str, Path], all_files: Files, tmp_path: Path) -> None:
    burnt = _clean(templates, what, tmp_path / "clean")
    for at, point in enumerate(burnt, start=1):
        fuse = Fuse(at, fail)
        broken = _copy(templates[what], tmp_path / str(at), fuse)
        try:
            act(broken, what, "run-1", "broken")
        except (OSError, NotCreated) as failure:
            assert "injected" in str(failure), str(point)
        assert len(fuse.passed) >= at
        _goes_on(broken.folder, what, all_files, str(point))
        shutil.rmtree(tmp_path / str(at))
    assert len(burnt) > 4


@pytest.mark.few(1)
@pytest.mark.slow
@each_act
def test_the_process_dies_at_every_write(
    what: str, templates: dict[str, Path], all_files: Files, tmp_path: Path
) -> None:
    burnt = _clean(templates, what, tmp_path / "clean")
    for at, point in enumerate(burnt, start=1):
        table = _copy(templates[what], tmp_path / str(at), Fuse()).folder
        with child(die, str(table), what, "run-1", at) as process:
            assert process.end() == -signal.SIGKILL, str(point)
        _goes_on(table, what, all_files, str(point))
        shutil.rmtree(tmp_path / str(at))
    assert len(burnt) > 4


def _goes_on(table: Path, what: str, all_files: Files, point: str) -> None:
    """What is at home and aside after a rerun of the same act, and of another run; all of it can be restored."""
    toy = Toy(LocalStorage(str(table)))
    _nothing_lost(toy, what, all_files, point)
    if what == "restore":
        assert restore(toy.table_files(), "run-1", now_ms=NOW).outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), point
        _one_place_each(toy, all_files, point)
        assert toy.files() == all_files, point
    else:
        act(toy, what, "run-2", "second")
        if what == "quarantine":
            _one_place_each(toy, all_files, point)
            assert len(toy.aside()) == len(OLD), point
            _all_back(toy)
            assert toy.files() == all_files, point
        if what == "delete":
            assert toy.files().keys() == all_files.keys() - set(OLD), point
    if what == "purge":
        assert toy.aside() == [], point
        assert not [path for path in (table / "_nightkeep").rglob("*") if path.is_file()], point
    assert {name: file for name, file in toy.files().items() if name not in OLD} == {
        name: file for name, file in all_files.items() if name not in OLD
    }, point


def _nothing_lost(toy: Toy, what: str, all_files: Files, point: str) -> None:
    """Right after the break, before anything is mended: under one name or two, every file is there."""
    if what in ("quarantine", "restore"):
        assert {*toy.files().values(), *toy.aside()} == {*all_files.values()}, point


def _one_place_each(toy: Toy, all_files: Files, point: str) -> None:
    assert sorted([*toy.files().values(), *toy.aside()]) == sorted(all_files.values()), point


def _all_back(toy: Toy) -> None:
    for run_id in ("run-1", "run-2"):
        try:
            restore(toy.table_files(), run_id, now_ms=NOW)
        except UsageError:
            # The run broke before its first list was written.
            assert len(quarantines(toy.table_files())) <= 2


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("what", ["quarantine", "restore"])
def test_the_process_dies_at_every_write_of_a_copy_to_another_mount(
    what: str, templates: dict[str, Path], all_files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.link", unlinked)
    burnt = _clean(templates, what, tmp_path / "clean")
    copies = [at for at, point in enumerate(burnt, start=1) if _is_of_a_move(point)]
    assert len(copies) == 10 * len(OLD)
    for at in copies:
        table = _copy(templates[what], tmp_path / str(at), Fuse()).folder
        with child(die_between_mounts, str(table), what, "run-1", at) as process:
            assert process.end() == -signal.SIGKILL
        toy = Toy(LocalStorage(str(table)))
        assert all_files.items() <= {**dict(zip(OLD, _originals(toy), strict=True)), **toy.files()}.items(), at
        assert restore(toy.table_files(), "run-1", now_ms=NOW).conflicts == ()
        left = {name: file for name, file in toy.files().items() if ".nightkeep-moving-" not in name}
        assert left == all_files, at
        shutil.rmtree(tmp_path / str(at))


def _is_of_a_move(point: Point) -> bool:
    return point.name.endswith(".file") or point.name in OLD or ".nightkeep-moving-" in point.name


def _originals(toy: Toy) -> list[tuple[bytes, int]]:
    """What is aside, by the number of its file; nothing where it is at home only."""
    found = {path.name: path for path in (toy.folder / "_nightkeep").rglob("*.file")}
    paths = [found.get(f"{number:05d}.file") for number in range(len(OLD))]
    return [(b"", 0) if path is None else (path.read_bytes(), path.stat().st_mtime_ns) for path in paths]


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("what", ["same", "another"])
def test_a_restore_finishes_what_a_killed_quarantine_began(
    what: str, templates: dict[str, Path], all_files: Files, tmp_path: Path
) -> None:
    """Without a sweep in between: each moment of the moves themselves."""
    points = _clean(templates, "quarantine", tmp_path / "clean")
    moves = [at for at, point in enumerate(points, start=1) if point.name.endswith(".file") or point.name in OLD]
    assert len(moves) == 4 * len(OLD)
    for at in moves:
        table = _copy(templates["quarantine"], tmp_path / str(at), Fuse()).folder
        with child(die, str(table), "quarantine", "run-1", at) as process:
            assert process.end() == -signal.SIGKILL
        toy = Toy(LocalStorage(str(table)))
        if what == "another":
            assert toy.swept(SweepMode.QUARANTINE, "run-2").closed == ("run-1",)
            _all_back(toy)
        else:
            assert restore(toy.table_files(), "run-1", now_ms=NOW).conflicts == ()
        assert toy.files() == all_files and toy.aside() == []


@pytest.mark.slow
def test_a_sweep_at_work_is_not_meddled_with(templates: dict[str, Path], all_files: Files, tmp_path: Path) -> None:
    """At each moment of its moves another sweep, and a restore, wait their turn; then nothing is lost or doubled."""
    points = _clean(templates, "quarantine", tmp_path / "clean")
    moves = [at for at, point in enumerate(points, start=1) if point.name.endswith(".file") or point.name in OLD]
    for at in moves:
        table = _copy(templates["quarantine"], tmp_path / str(at), Fuse()).folder
        toy = Toy(LocalStorage(str(table)))
        with child(hold, str(table), "run-1", at) as process:
            assert process.hear() == "waiting"
            with pytest.raises(RefusedTable, match="run run-1 moving files to quarantine"):
                toy.swept(SweepMode.DELETE, "run-2")
            with pytest.raises(RefusedTable, match="run run-1 moving files to quarantine"):
                restore(toy.table_files(), "run-1", now_ms=NOW)
            process.say("go")
            assert process.hear() == len(OLD)
        _one_place_each(toy, all_files, str(at))
        assert restore(toy.table_files(), "run-1", now_ms=NOW).files == len(OLD)
    assert len(moves) == 4 * len(OLD)


def _copy(template: Path, folder: Path, fuse: Fuse) -> Toy:
    shutil.copytree(template, folder / "toy")
    return Toy(FaultyStorage(str(folder / "toy"), fuse))
