"""An upgrade that breaks at what it tells streaming readers: nothing of it is left, and a retry tells it once."""

import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.breaking import breaking, upgrade_and_die
from tests.formats.paimon.changelogs import Change, applied
from tests.formats.paimon.contents import SAMPLES, contents, files, leftovers
from tests.formats.paimon.gate.test_changes import with_options
from tests.formats.paimon.keeping import aged, orphans, swept
from tests.formats.paimon.upgrade import upgrade
from tests.support.faulty_store import Fuse, Point, fail
from tests.support.processes import child

from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.orphans.sweep_request import SweepOrder

RUN = "nightly-2026-11-21"


def _copy(folder: Path) -> Path:
    return with_options(Path(shutil.copytree(SAMPLES / "stock", folder / "stock")), {"changelog-producer": "lookup"})


def shown(engine: PaimonJava, table: Path, keys: Sequence[int]) -> dict[tuple[Any, ...], Change]:
    return {tuple(row[i] for i in keys): tuple(row) for row in engine.read(table).rows}


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[int, Point], ...]:
    """Where a changelog file, or a manifest or list after them, can break."""
    fuse = Fuse()
    with breaking(fuse):
        assert upgrade(_copy(tmp_path_factory.mktemp("clean")), run_id=RUN).outcome is Outcome.VERIFIED
    kinds = ("create changelog", "create manifest", "create manifest-list", "link snapshot-4")
    return tuple((at, p) for at, p in enumerate(fuse.passed, start=1) if str(p).endswith(kinds))


def test_changelog_files_are_written_once_before_their_manifest(points: tuple[tuple[int, Point], ...]) -> None:
    steps = [str(point) for _, point in points]
    assert steps.count("after create changelog") >= 1
    assert steps.count("after create manifest") == 2
    assert steps.count("after create manifest-list") == 3
    assert steps.index("after create changelog") < steps.index("before create manifest")


def test_what_fails_before_the_link_leaves_nothing(points: tuple[tuple[int, Point], ...], tmp_path: Path) -> None:
    for at, point in ((at, point) for at, point in points if point.step == "create"):
        table = _copy(tmp_path / str(at))
        before = files(table)
        with breaking(Fuse(at, fail)):
            assert upgrade(table, run_id=RUN).outcome is Outcome.FAILED, str(point)
        assert not [name for name in leftovers(table, before) if "nk-" in name], str(point)


@pytest.mark.slow
def test_what_a_killed_upgrade_leaves_is_swept_and_reported_once_by_the_next(
    points: tuple[tuple[int, Point], ...], paimon_java: PaimonJava, tmp_path: Path
) -> None:
    # The last file of each kind: what came before is left as well.
    last = {str(point): (at, point) for at, point in points}
    for at, point in last.values():
        table = _copy(tmp_path / str(at))
        schema = paimon_java.schema(table)
        columns = [field["name"] for field in schema["fields"]]
        keys = [columns.index(name) for name in schema["primaryKeys"]]
        held = shown(paimon_java, table, keys)
        with child(upgrade_and_die, table, RUN, at) as process:
            assert process.end() == -signal.SIGKILL
        published = (table / "snapshot/snapshot-4").exists()
        aged(table)
        left = orphans(table)
        assert not (published and [name for name in left if "changelog-nk-" in name]), str(point)
        assert swept(table, SweepOrder(SweepMode.DELETE))[0].outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
        assert orphans(table) == []
        assert upgrade(table, run_id=RUN).outcome is Outcome.VERIFIED
        assert contents(table).version == 4
        told = paimon_java.changes(table, since=4).rows
        assert applied(held, told, keys) == shown(paimon_java, table, keys), str(point)
