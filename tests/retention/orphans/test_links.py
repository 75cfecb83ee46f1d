"""Files of a table that are behind symbolic links: not missing, and not to be swept either."""

import shutil
from pathlib import Path

import pytest
from tests.retention.toy_table import NOW, Toy

from nightkeep.errors import EvidenceError
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import Retention
from nightkeep.retention.file_check import check_files
from nightkeep.retention.orphans.memory_sets import MemorySets


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    toy = Toy.at(tmp_path / "toy")
    toy.write("data/p=1/live.dat", "data/p=2/a/live.dat", "data/p=2/a/other.dat", "data/p=1/old.dat")
    toy.commit(1, "data/p=1/live.dat", "data/p=2/a/live.dat", "data/p=2/a/other.dat")
    return toy


def linked(toy: Toy, name: str) -> None:
    """Move what has the name to another disk, as people do when one is full."""
    elsewhere = toy.folder.parent / "disk2"
    elsewhere.mkdir()
    there = elsewhere / Path(name).name
    shutil.move(toy.folder / name, there)
    (toy.folder / name).symlink_to(there)


@pytest.mark.parametrize("name", ["data", "data/p=2", "data/p=2/a"])
@pytest.mark.parametrize("mode", SweepMode)
def test_a_sweep_names_the_folder_that_is_a_link(toy: Toy, name: str, mode: SweepMode) -> None:
    linked(toy, name)
    with pytest.raises(EvidenceError, match=rf"/toy/{name}: expected .*, found a symbolic link, which is not followed"):
        toy.swept(mode)
    assert (toy.folder / "data/p=1/old.dat").exists()


def test_a_sweep_names_the_file_that_is_a_link(toy: Toy) -> None:
    linked(toy, "data/p=1/live.dat")
    with pytest.raises(EvidenceError, match=r"/toy/data/p=1/live.dat: expected .*, found a symbolic link"):
        toy.swept()


def test_a_link_that_leads_nowhere_is_named_as_well(toy: Toy) -> None:
    linked(toy, "data/p=2")
    shutil.rmtree(toy.folder.parent / "disk2")
    with pytest.raises(EvidenceError, match=r"/toy/data/p=2: expected .*, found a symbolic link"):
        toy.swept()


def test_a_file_that_is_missing_is_missing_whatever_is_a_link(toy: Toy) -> None:
    linked(toy, "data/p=2")
    (toy.folder / "data/p=1/live.dat").unlink()
    with pytest.raises(EvidenceError, match=r"3 missing, .* data/p=1/live.dat is not there"):
        toy.swept()


def test_a_table_whose_own_folder_is_a_link_is_swept(toy: Toy) -> None:
    (toy.folder.parent / "link").symlink_to(toy.folder)
    assert Toy.at(toy.folder.parent / "link").looked()[1] == ["data/p=1/old.dat"]


def test_a_look_at_what_is_left_counts_no_linked_file_as_missing(toy: Toy) -> None:
    linked(toy, "data/p=2")
    with pytest.raises(EvidenceError, match=r"/toy/data/p=2: expected .*, found a symbolic link"):
        check_files(toy.retention, Retention(NOW, 7 * DAY_MS), sets=MemorySets, salt="x")
