"""Optimizing that breaks at any one of its writes: the table reads the same, leftovers tell whose they are, a retry
finishes the run.

Clean runs are counted; every write is then failed, and the process killed, at every point it passes.
"""

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.breaking import breaking, optimize_and_die
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.runs import commits_of, files, optimize, token
from tests.formats.delta.vacuum import vacuum
from tests.support.extended import some_extended
from tests.support.faulty_store import TURNS, Fuse, Moment, Point, fail, places
from tests.support.processes import child

from nightkeep.model import Operation, Outcome

RUN = "nightly-2026-11-21"
Rows = list[tuple[Any, ...]]
COMMIT = "00000000000000000005.json"


@pytest.fixture(scope="module", params=["packed", "clustered"])
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One day in small files, with row ids and vectors; version 4. The table may have clustering columns of its own."""
    made = HandMade(tmp_path_factory.mktemp("template") / "events", row_ids=True)
    for start in (0, 40, 80):
        made.append("2026-11-01", range(start, start + 40))
    made.delete("2026-11-01", range(10, 70))
    if request.param == "clustered":
        made.cluster_by("id", "price")
    return made.folder


@pytest.fixture(scope="module")
def rows(template: Path) -> Rows:
    return HandMade.at(template).rows()


@pytest.fixture(scope="module")
def clean(template: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Point, ...]:
    """The points that a run passes when nothing breaks."""
    fuse = Fuse()
    table = _copy(template, tmp_path_factory.mktemp("clean"))
    with breaking(fuse):
        assert optimize(table, run_id=RUN).outcome is Outcome.VERIFIED
    return tuple(fuse.passed)


def test_a_clean_run_passes_every_kind_of_write(clean: tuple[Point, ...]) -> None:
    steps = {str(point) for point in clean}
    for name in ("part-00000", ".staged"):
        assert {f"{moment.value} create {name}" for moment in Moment} <= steps
    for step in (f"link {COMMIT}", "delete .staged"):
        assert {f"before {step}", f"after {step}"} <= steps


@pytest.mark.few(1)
@pytest.mark.parametrize("turn", range(TURNS))
def test_every_write_fails_once(
    clean: tuple[Point, ...], template: Path, rows: Rows, tmp_path: Path, turn: int
) -> None:
    burnt = []
    for at in places(len(clean), turn):
        point = clean[at - 1]
        table = _copy(template, tmp_path / str(at))
        before, fuse = files(table), Fuse(at, fail)
        with breaking(fuse):
            outcome = optimize(table, run_id=RUN).outcome
        assert str(fuse.passed[at - 1]) == str(point)
        burnt.append(point)
        visible = _survived(table, before, rows)
        assert outcome is (Outcome.VERIFIED if visible else Outcome.FAILED), str(point)
        _retried(table, rows)
        shutil.rmtree(tmp_path / str(at))
    assert len(burnt) >= len(clean) // TURNS


@pytest.mark.few(1)
@pytest.mark.parametrize("turn", range(TURNS))
@pytest.mark.slow
def test_the_process_dies_at_every_write(
    clean: tuple[Point, ...], template: Path, rows: Rows, tmp_path: Path, turn: int
) -> None:
    killed = 0
    for at in places(len(clean), turn):
        table = _copy(template, tmp_path / str(at))
        before = files(table)
        _die(table, at)
        killed += 1
        _survived(table, before, rows)
        _retried(table, rows)
        shutil.rmtree(tmp_path / str(at))
    assert killed >= len(clean) // TURNS


@pytest.mark.extended
@pytest.mark.parametrize(
    "where",
    some_extended(["halfway through create part-00000", f"before link {COMMIT}", f"after link {COMMIT}"], keep=1),
)
def test_engines_go_on_over_what_a_killed_run_left(
    where: str,
    clean: tuple[Point, ...],
    template: Path,
    rows: Rows,
    delta_spark: DeltaSpark,
    lakes: Lakes,
    tmp_path: Path,
) -> None:
    table = _copy(template, tmp_path)
    (*_, at) = (number for number, point in enumerate(clean, start=1) if str(point) == where)
    _die(table, at)
    published = (table / "_delta_log" / COMMIT).exists()
    assert published == any(str(point).startswith("after link") for point in clean[:at])
    assert len(delta_spark.read(table).rows) == len(lakes.duckdb_read(table).rows) == len(rows)
    day = "" if "delta.clustering" in _domains(HandMade.at(table)) else ", DATE '2026-11-01'"
    delta_spark.sql(f"INSERT INTO {named(table)} VALUES (1000, 0.5, 'new'{day})")
    delta_spark.checkpoint(table)
    vacuum(delta_spark, table)
    assert len(delta_spark.read(table).rows) == len(lakes.delta_rs_read(table).rows) == len(rows) + 1


@pytest.mark.parametrize("moment", ["before", "after"])
def test_vectors_that_a_killed_run_left_are_reported_by_name(moment: str, tmp_path: Path) -> None:
    """Rebuilding vectors writes a file with a name of its own, in a folder that carries the run's token."""
    made = HandMade(tmp_path / "events")
    table = made.folder
    settings: dict[str, Any] = {"operation": Operation.PERSIST_DELETES, "full": True, "run_id": RUN}
    for start in (0, 40):
        made.append("2026-11-01", range(start, start + 40))
        made.delete("2026-11-01", [start + 5])
    truth, fuse = made.rows(), Fuse()
    with breaking(fuse):
        assert optimize(_copy(table, tmp_path / "clean"), **settings).outcome is Outcome.VERIFIED
    points = [n for n, p in enumerate(fuse.passed, start=1) if (p.moment.value, p.step) == (moment, "create")]
    before = files(table)
    with breaking(Fuse(points[0], fail)):
        assert optimize(table, **settings).outcome is Outcome.FAILED
    assert files(table).keys() >= before.keys()
    told = token(RUN, Operation.PERSIST_DELETES)
    assert all(f"nk-{told}" in name for name in files(table).keys() - before.keys())
    assert made.rows() == truth
    assert optimize(table, **settings).outcome is Outcome.VERIFIED


def _copy(template: Path, folder: Path) -> Path:
    return Path(shutil.copytree(template, folder / "events"))


def _survived(table: Path, before: dict[str, bytes], rows: Rows) -> bool:
    """Whether the commit is visible, after checking that nothing of anybody else was touched or hidden."""
    made = HandMade.at(table)
    assert made.version in (4, 5)
    if made.version == 5 and "delta.clustering" in _domains(made):
        assert {add.get("clusteringProvider") for add in made.live().values()} == {"nightkeep"}
    assert made.rows() == rows
    after = files(table)
    assert not [name for name, data in before.items() if after.get(name) != data]
    strangers = after.keys() - before.keys() - {f"_delta_log/{COMMIT}"}
    assert all(f"nk-{token(RUN)}" in name for name in strangers)
    return made.version == 5


def _domains(made: HandMade) -> set[str]:
    return {action["domainMetadata"]["domain"] for action in made.all("domainMetadata")}


def _retried(table: Path, rows: Rows) -> None:
    document = optimize(table, run_id=RUN)
    assert (document.outcome, document.committed_version) == (Outcome.VERIFIED, 5), document.reason
    assert commits_of(table, RUN) == [5]
    assert HandMade.at(table).rows() == rows


def _die(table: Path, at: int) -> None:
    with child(optimize_and_die, table, RUN, at) as process:
        assert process.end() == -signal.SIGKILL
