"""An upgrade that breaks at any one of its writes: the table reads the same, leftovers tell whose they are, a retry
finishes the run.

Clean runs are counted; every write is then failed, and the process killed, at every point it passes.
"""

import shutil
import signal
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Scan
from tests.formats.paimon.breaking import breaking, upgrade_and_die
from tests.formats.paimon.contents import SAMPLES, Contents, commits_of, contents, files, leftovers, token
from tests.formats.paimon.upgrade import upgrade
from tests.support.faulty_store import TURNS, Fuse, Moment, Point, fail, places
from tests.support.processes import child

from nightkeep.model import Outcome

RUN = "nightly-2026-11-21"
SAMPLE = "stock"


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Point, ...]:
    """The points that an upgrade passes when nothing breaks."""
    fuse = Fuse()
    table = _copy(tmp_path_factory.mktemp("clean"))
    with breaking(fuse):
        assert upgrade(table, run_id=RUN).outcome is Outcome.VERIFIED
    return tuple(fuse.passed)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    return contents(_copy(tmp_path_factory.mktemp("base")))


def test_a_clean_run_passes_every_kind_of_write(clean: tuple[Point, ...]) -> None:
    steps = {str(point) for point in clean}
    for name in ("data", "index", "manifest", "manifest-list", "index-manifest", "staged"):
        assert {f"{moment.value} create {name}" for moment in Moment} <= steps
    for step in ("link snapshot-4", "rename LATEST", "delete staged"):
        assert {f"before {step}", f"after {step}"} <= steps


@pytest.mark.extended
@pytest.mark.slow
def test_every_write_fails_once(clean: tuple[Point, ...], base: Contents, tmp_path: Path) -> None:
    burnt = []
    for at, point in enumerate(clean, start=1):
        table = _copy(tmp_path / str(at))
        before, fuse = files(table), Fuse(at, fail)
        with breaking(fuse):
            document = upgrade(table, run_id=RUN)
        outcome = document.outcome
        assert str(fuse.passed[at - 1]) == str(point)
        burnt.append(point)
        # What never got as far as its link is certainly unpublished: nothing of it is left, and it is told so.
        if point.step == "create" and outcome is Outcome.FAILED:
            assert "UnknownOutcome" not in str(document.reason), str(point)
            assert not [name for name in leftovers(table, before) if "nk-" in name], str(point)
        visible = _survived(table, before, base)
        assert outcome is (Outcome.VERIFIED if visible else Outcome.FAILED), str(point)
        _retried(table, base)
        shutil.rmtree(tmp_path / str(at))
    assert len(burnt) == len(clean)


@pytest.mark.few(1)
@pytest.mark.parametrize("turn", range(TURNS))
@pytest.mark.slow
def test_the_process_dies_at_every_write(clean: tuple[Point, ...], base: Contents, tmp_path: Path, turn: int) -> None:
    killed = 0
    for at in places(len(clean), turn):
        table = _copy(tmp_path / str(at))
        before = files(table)
        _die(table, at)
        killed += 1
        _survived(table, before, base)
        _retried(table, base)
        shutil.rmtree(tmp_path / str(at))
    assert killed >= len(clean) // TURNS


@pytest.mark.parametrize(
    "where",
    [
        "halfway through create data",
        "after create index",
        "after create staged",
        "before link snapshot-4",
        "after link snapshot-4",
        "before rename LATEST",
        "after rename LATEST",
    ],
)
def test_paimon_reads_what_a_killed_upgrade_left(
    where: str, clean: tuple[Point, ...], paimon_java: PaimonJava, tmp_path: Path
) -> None:
    table = _copy(tmp_path)
    truth = sorted(paimon_java.read(table, Scan(options=MERGE_ON_READ)).rows, key=repr)
    shown = sorted(paimon_java.read(table).rows, key=repr)
    (*_, at) = (number for number, point in enumerate(clean, start=1) if str(point) == where)
    _die(table, at)
    published = (table / "snapshot/snapshot-4").exists()
    assert published == any(str(point).startswith("after link") for point in clean[:at])
    assert sorted(paimon_java.read(table, Scan(options=MERGE_ON_READ)).rows, key=repr) == truth
    assert sorted(paimon_java.read(table).rows, key=repr) == (truth if published else shown)
    # Listing every snapshot is what a reader does whose hint lags.
    assert len(paimon_java.snapshots(table)) == 3 + published


def _copy(folder: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / SAMPLE, folder / SAMPLE))


def _survived(table: Path, before: dict[str, bytes], base: Contents) -> bool:
    """Whether the commit is visible, after checking that nothing of anybody else was touched or hidden."""
    now = contents(table)
    published = now.version == base.version + 1
    assert now.merged == base.merged
    assert now.raw == (base.merged if published else base.raw)
    assert published or now.version == base.version
    after = files(table)
    changed = [name for name, data in before.items() if after.get(name) != data]
    assert changed in ([], ["snapshot/LATEST"])
    assert not [name for name in leftovers(table, before) if f"nk-{token(RUN)}" not in name]
    return published


def _retried(table: Path, base: Contents) -> None:
    document = upgrade(table, run_id=RUN)
    assert (document.outcome, document.committed_version) == (Outcome.VERIFIED, base.version + 1)
    assert commits_of(table, RUN) == [base.version + 1]
    now = contents(table)
    assert now.merged == now.raw == base.merged


def _die(table: Path, at: int) -> None:
    with child(upgrade_and_die, table, RUN, at) as process:
        assert process.end() == -signal.SIGKILL
