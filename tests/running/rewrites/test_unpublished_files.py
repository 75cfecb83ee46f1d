"""An attempt that breaks before its commit was asked for leaves nothing; one whose fate is open leaves all."""

import errno
import shutil
from pathlib import Path

import pytest
from tests.formats.paimon.breaking import breaking
from tests.formats.paimon.contents import SAMPLES, contents, files, leftovers
from tests.formats.paimon.upgrade import upgrade
from tests.support.faulty_store import Fuse, Moment, Point

from nightkeep.errors import NotCreated
from nightkeep.model import Outcome
from nightkeep.storage import LocalStorage


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "stock", tmp_path / "stock"))


def full(point: Point) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", point.name)


def places(table: Path) -> dict[str, int]:
    """Where a clean run on a copy passes the last point of each kind, before the commit is visible."""
    fuse, copy = Fuse(), Path(shutil.copytree(table, table.parent / "clean"))
    with breaking(fuse):
        assert upgrade(copy, run_id="ours").outcome is Outcome.VERIFIED
    (linked,) = (at for at, point in enumerate(fuse.passed, 1) if str(point) == "after link snapshot-4")
    return {str(point): at for at, point in enumerate(fuse.passed[: linked - 1], 1)}


@pytest.mark.in_turn("moment")
@pytest.mark.parametrize("moment", [Moment.BEFORE, Moment.HALFWAY])
@pytest.mark.parametrize("kind", ["data", "index", "manifest", "manifest-list", "staged"])
def test_a_full_disk_leaves_nothing_behind(table: Path, kind: str, moment: Moment) -> None:
    # The last file called `staged` is the one that is linked: its name was never there.
    at, before, held = places(table)[f"{moment.value} create {kind}"], files(table), contents(table)
    with breaking(Fuse(at, full)):
        document = upgrade(table, run_id="ours")
    assert document.outcome is Outcome.FAILED
    assert "No space left on device" in str(document.reason) and "UnknownOutcome" not in str(document.reason)
    assert not leftovers(table, before)
    assert contents(table) == held
    assert upgrade(table, run_id="ours").outcome is Outcome.VERIFIED


def test_a_link_without_an_answer_leaves_everything(table: Path) -> None:
    at, before = places(table)["before link snapshot-4"], files(table)
    with breaking(Fuse(at, full)):
        document = upgrade(table, run_id="ours")
    assert document.outcome is Outcome.FAILED and "UnknownOutcome" in str(document.reason)
    assert {name.split("-nk-")[0].rpartition("/")[2] for name in leftovers(table, before)} >= {"data", "manifest"}


def test_a_name_whose_bytes_cannot_be_written_is_not_created(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "busy").mkdir()
    with pytest.raises(NotCreated, match="new: expected to be created"):
        storage.put_if_absent("new", b"data", temporary="busy")
    assert not storage.exists("new")
