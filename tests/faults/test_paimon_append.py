"""Packing a Paimon table without keys that breaks at any one write: it reads the same, and a retry finishes the run.

Clean runs are counted; every write is then failed at every point it passes.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.appended import SMALL, VECTORS, Appended
from tests.formats.paimon.breaking import breaking
from tests.formats.paimon.contents import contents, files, leftovers
from tests.support.faulty_store import Fuse, Moment, fail

from nightkeep.model import Operation, Outcome, run_token

RUN = "nightly-2026-11-21"
TOKEN = run_token(RUN, Operation.OPTIMIZE)


@pytest.fixture(scope="module")
def made(paimon_java: PaimonJava, tmp_path_factory: pytest.TempPathFactory) -> Appended:
    """Two partitions, in both files that are packed, and vectors of them in vector files that are replaced."""
    folder = tmp_path_factory.mktemp("append") / "t"
    table = Appended.create(paimon_java, folder, {**VECTORS, **SMALL}, columns=(("text", "STRING"),))
    for _ in range(3):
        table.append(12)
    table.delete(0.2)
    return table


def test_every_write_fails_once(made: Appended, tmp_path: Path) -> None:
    truth, fuse = contents(made.folder), Fuse()
    with breaking(fuse):
        assert _copy(made, tmp_path / "clean").optimize(run_id=RUN).outcome is Outcome.VERIFIED
    steps = {str(point) for point in fuse.passed}
    for name in ("data", "manifest", "manifest-list", "index-manifest", "staged"):
        assert {f"{moment.value} create {name}" for moment in Moment} <= steps
    for at, point in enumerate(fuse.passed, start=1):
        table = _copy(made, tmp_path / str(at))
        before = files(table.folder)
        with breaking(Fuse(at, fail)):
            outcome = table.optimize(run_id=RUN).outcome
        now = contents(table.folder)
        published = now.version == truth.version + 1
        assert (now.raw, outcome) == (truth.raw, Outcome.VERIFIED if published else Outcome.FAILED), str(point)
        unfinished = leftovers(table.folder, before)
        assert not [name for name in unfinished if f"nk-{TOKEN}" not in name], str(point)
        again = table.optimize(run_id=RUN)
        assert (again.outcome, again.committed_version) == (Outcome.VERIFIED, truth.version + 1), str(point)
        assert contents(table.folder).raw == truth.raw
        shutil.rmtree(table.folder.parent)


def _copy(made: Appended, folder: Path) -> Appended:
    return replace(made, folder=Path(shutil.copytree(made.folder, folder / "t")))
