"""Packing a Paimon table without keys that breaks at any one write: it reads the same, and a retry finishes the run.

Clean runs are counted; every write is then failed at every point it passes.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.appended import SMALL, VECTORS, Appended
from tests.formats.paimon.breaking import breaking
from tests.formats.paimon.contents import contents, files, leftovers
from tests.support.faulty_store import TURNS, Fuse, Moment, fail, places

from nightkeep.model import Operation, Outcome, run_token
from nightkeep.records import RunDocument

RUN = "nightly-2026-11-21"


@pytest.fixture(scope="module")
def made(paimon_java: PaimonJava, tmp_path_factory: pytest.TempPathFactory) -> Appended:
    """Two partitions, in both files that are packed, and vectors of them in vector files that are replaced."""
    folder = tmp_path_factory.mktemp("append") / "t"
    table = Appended.create(paimon_java, folder, {**VECTORS, **SMALL}, columns=(("text", "STRING"),))
    for _ in range(3):
        table.append(12)
    table.delete(0.2)
    return table


def optimize(table: Appended) -> RunDocument:
    return table.optimize(run_id=RUN)


def update(table: Appended) -> RunDocument:
    return table.update_where("id > 5", ["text = concat('n', CAST(id AS STRING))"], run_id=RUN)


@pytest.mark.few(1)
@pytest.mark.parametrize("turn", range(TURNS))
@pytest.mark.parametrize("act", [optimize, update])
@pytest.mark.in_turn("act")
def test_every_write_fails_once(
    made: Appended, tmp_path: Path, act: Callable[[Appended], RunDocument], turn: int
) -> None:
    """Until the commit is visible it reads as before, then as after: never without rows, never with rows twice."""
    truth, fuse = contents(made.folder), Fuse()
    with breaking(fuse):
        clean = _copy(made, tmp_path / "clean")
        assert act(clean).outcome is Outcome.VERIFIED
    done, token = contents(clean.folder), run_token(RUN, Operation(act.__name__))
    steps = {str(point) for point in fuse.passed}
    for name in ("data", "manifest", "manifest-list", "index-manifest", "staged"):
        assert {f"{moment.value} create {name}" for moment in Moment} <= steps
    for at in places(len(fuse.passed), turn):
        point = fuse.passed[at - 1]
        table = _copy(made, tmp_path / str(at))
        before = files(table.folder)
        with breaking(Fuse(at, fail)):
            outcome = act(table).outcome
        now = contents(table.folder)
        published = now.version == truth.version + 1
        assert now.raw == (done.raw if published else truth.raw), str(point)
        assert outcome is (Outcome.VERIFIED if published else Outcome.FAILED), str(point)
        unfinished = leftovers(table.folder, before)
        assert not [name for name in unfinished if f"nk-{token}" not in name], str(point)
        again = act(table)
        assert (again.outcome, again.committed_version) == (Outcome.VERIFIED, truth.version + 1), str(point)
        assert contents(table.folder).raw == done.raw
        shutil.rmtree(table.folder.parent)


def _copy(made: Appended, folder: Path) -> Appended:
    return replace(made, folder=Path(shutil.copytree(made.folder, folder / "t")))
