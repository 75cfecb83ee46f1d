"""Sets in Spark's tasks say what sets of one process say."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from tests.retention import toy_table
from tests.retention.toy_table import NOW, Toy
from tests.support.extended import some_extended

from nightkeep.errors import CorruptMetadata
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import Retention, Root
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sets import SetCounts, Sets
from nightkeep.retention.orphans.spark_sets import SparkSets
from nightkeep.storage import ListedFile, LocalStorage

# Workers cannot import tests: the table travels with its code.
cloudpickle.register_pickle_by_value(toy_table)
cloudpickle.register_pickle_by_value(sys.modules[__name__])

RETENTION = Retention(NOW, 7 * DAY_MS)


@pytest.fixture
def sets(spark: SparkSession) -> Iterator[SparkSets]:
    """So many parts that most names are apart from each other."""
    with closing(SparkSets(spark, names_per_part=3)) as found:
        yield found


def toy_with_leftovers(folder: Path, *, by_bare_name: bool = False) -> Toy:
    toy = Toy.at(folder, by_bare_name=by_bare_name)
    live = [f"data/day={day}/live-{number}.dat" for day in range(5) for number in range(4)]
    toy.write(*live)
    toy.commit(1, *live[:12])
    toy.commit(2, *live[4:])
    toy.write(*(f"data/day={day}/old {day}%.dat" for day in range(7)), "meta/l-lost.json", "data/deep/er/st/old.dat")
    toy.write("data/day=1/young.dat", days=1)
    toy.write("notes.txt", "data/other/live-1.dat", "_nightkeep/quarantine/run/0.file")
    toy.write(
        "nested/meta/s-1.json", "nested/data/theirs.dat", "data/nested/data/theirs.dat", "data/nested/meta/s-9.json"
    )
    return toy


def looked(
    sets: Sets, toy: Toy, *, cutoff_ms: int | None = NOW - 7 * DAY_MS, named: tuple[str, ...] = ()
) -> tuple[SetCounts, list[tuple[object, ...]]]:
    roots = toy.roots(RETENTION)
    sets.list(toy.table_files())
    sets.live(toy.retention, roots[:1], expected=True)
    sets.live(toy.retention, roots[1:], expected=False)
    return settled(sets, cutoff_ms, named)


def settled(
    sets: Sets, cutoff_ms: int | None, named: tuple[str, ...] = ()
) -> tuple[SetCounts, list[tuple[object, ...]]]:
    counted = sets.settle(cutoff_ms=cutoff_ms, named=named)
    return counted, [tuple(row.values()) for batch in sets.orphans() for row in batch.to_pylist()]


@pytest.mark.parametrize("by_bare_name", some_extended([False, True], keep=1))
def test_both_find_the_same(tmp_path: Path, sets: SparkSets, by_bare_name: bool) -> None:
    toy = toy_with_leftovers(tmp_path / "toy", by_bare_name=by_bare_name)
    found, expected = looked(sets, toy), looked(MemorySets(), toy)
    assert found == expected
    assert len(found[1]) == (9 if by_bare_name else 10)
    assert settled(sets, None, ("old",)) == looked(MemorySets(), toy, cutoff_ms=None, named=("old",))


def test_what_is_missing_or_has_another_size_is_reported(tmp_path: Path, sets: SparkSets) -> None:
    toy = toy_with_leftovers(tmp_path / "toy")
    (toy.folder / "data/day=0/live-0.dat").unlink()
    (toy.folder / "data/day=0/live-1.dat").write_text("x")
    found, expected = looked(sets, toy), looked(MemorySets(), toy)
    assert found == expected
    assert (found[0].missing, found[0].resized) == (1, 1)


def test_a_live_file_by_another_name_is_reported(tmp_path: Path, sets: SparkSets) -> None:
    toy = toy_with_leftovers(tmp_path / "toy")
    for path in (toy.folder / "meta/l-1.json", toy.folder / "meta/l-2.json"):
        path.write_text(path.read_text().replace('"data/day=2', '"s3://alias/toy/data/day=2'))
    found, expected = looked(sets, toy), looked(MemorySets(), toy)
    assert found == expected
    assert found[0].doubled == len(found[0].doubles) > 1
    assert "data/day=2/live-0.dat and s3://alias/toy/data/day=2/live-0.dat, of " in found[0].doubles[0]


def test_both_find_the_same_of_what_was_reached(tmp_path: Path, sets: SparkSets) -> None:
    toy = toy_with_leftovers(tmp_path / "toy")
    (toy.folder / "data/day=0/live-0.dat").unlink()
    answers = []
    for each in (sets, MemorySets()):
        first, second = toy.roots(RETENTION)
        each.reached(toy.retention, (first,))
        each.live(toy.retention, (second,), expected=True)
        answers.append(settled(each, None))
    assert answers[0] == answers[1]
    names = [row[0] for row in answers[0][1]]
    assert names == [f"data/day=0/live-{n}.dat" for n in (1, 2, 3)] + ["meta/l-1.json"]


def test_names_that_are_no_text_are_of_no_kind(tmp_path: Path, sets: SparkSets) -> None:
    toy = toy_with_leftovers(tmp_path / "toy")
    for name in (b"data/\xff.dat", b"meta/l-\xfe.json"):
        Path(os.fsdecode(os.fsencode(toy.folder) + b"/" + name)).write_text("x")
    found = looked(sets, toy)
    assert found == looked(MemorySets(), toy)
    assert found[0].unknown.files == 3


def test_what_a_task_cannot_read_is_raised_here(tmp_path: Path, sets: SparkSets) -> None:
    toy = toy_with_leftovers(tmp_path / "toy")
    (toy.folder / "meta/l-2.json").write_text("{")
    sets.list(toy.table_files())
    with pytest.raises(CorruptMetadata, match=r"meta/l-2\.json"):
        sets.live(toy.retention, toy.roots(RETENTION), expected=True)


def test_sources_are_read_once(tmp_path: Path, sets: SparkSets, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = toy_with_leftovers(tmp_path / "toy")
    looked(sets, toy)
    # A second read would fail.
    (toy.folder / "meta/l-2.json").unlink()
    sets.live(toy.retention, toy.roots(RETENTION), expected=False)


@dataclass(frozen=True, slots=True)
class Denied:
    """A store that says no to every question about one file, with words that only the tasks that ask can have."""

    store: LocalStorage

    def __getattr__(self, verb: str) -> object:
        return getattr(self.store, verb)

    def stat(self, name: str) -> ListedFile | None:
        raise PermissionError(f"{name}: access denied")


def test_what_a_store_states_to_a_task_is_raised_here(tmp_path: Path, sets: SparkSets) -> None:
    def deny(root: Root) -> None:
        raise PermissionError(f"{root.id}: access denied")

    toy = toy_with_leftovers(tmp_path / "toy")
    toy.before_reach = deny
    sets.list(toy.table_files())
    with pytest.raises(PermissionError, match=r"meta/s-[12]\.json: access denied") as raised:
        sets.live(toy.retention, toy.roots(RETENTION), expected=True)
    assert any("in a Spark task" in note for note in raised.value.__notes__)


def test_what_a_store_states_while_parts_are_compared_is_raised_here(tmp_path: Path, sets: SparkSets) -> None:
    toy = toy_with_leftovers(tmp_path / "toy")
    first, second = toy.roots(RETENTION)
    denied = replace(toy, storage=Denied(LocalStorage(str(toy.folder))))
    sets.reached(denied.retention, (first,))
    sets.live(toy.retention, (second,), expected=True)
    with pytest.raises(PermissionError, match=r"\.(dat|json): access denied"):
        sets.settle(cutoff_ms=None)
