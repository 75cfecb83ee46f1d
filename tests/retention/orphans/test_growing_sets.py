"""Sets that outgrow the process begin anew elsewhere, in the order that keeps live files safe."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.retention.toy_table import NOW, Toy

from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import OpenFiles, Retention, Root, TableFiles
from nightkeep.retention.orphans.growing_sets import SpillingSets
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sets import SetCounts, Sets

RETENTION = Retention(NOW, 7 * DAY_MS)


class Watched(MemorySets):
    """Sets without a limit that note what they were asked, and when."""

    def __init__(self, asked: list[str]) -> None:
        super().__init__()
        self.asked = asked

    def list(self, table_files: TableFiles) -> None:
        self.asked.append("list")
        super().list(table_files)

    def live(self, table: OpenFiles, roots: Sequence[Root], *, expected: bool) -> None:
        self.asked += [f"{root.id} {expected}" for root in roots]
        super().live(table, roots, expected=expected)


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    toy = Toy.at(tmp_path / "toy")
    toy.write(*(f"data/{number}.dat" for number in range(10)), "data/old.dat")
    toy.commit(1, *(f"data/{number}.dat" for number in range(5)))
    toy.commit(2, *(f"data/{number}.dat" for number in range(10)))
    return toy


def looked(sets: Sets, toy: Toy) -> tuple[SetCounts, list[object]]:
    first, second = toy.roots(RETENTION)
    sets.list(toy.table_files())
    sets.live(toy.retention, (first,), expected=True)
    sets.live(toy.retention, (second,), expected=False)
    counted = sets.settle(cutoff_ms=NOW - 7 * DAY_MS)
    return counted, [name for batch in sets.orphans() for name in batch["name"].to_pylist()]


@pytest.mark.parametrize("limit", [5, 16, 25])
def test_what_is_found_is_the_same(toy: Toy, limit: int) -> None:
    """Too many to list, too many at the first root, too many at the second."""
    asked: list[str] = []
    assert looked(SpillingSets(lambda: Watched(asked), limit=limit), toy) == looked(MemorySets(), toy)
    assert asked == ["list", "meta/s-1.json True", "meta/s-2.json False"]


def test_what_one_process_holds_stays_in_it(toy: Toy) -> None:
    def never() -> Sets:
        raise AssertionError("not needed")

    assert looked(SpillingSets(never, limit=1000), toy)[1] == ["data/old.dat"]
