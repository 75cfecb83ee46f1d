"""Packing and clustering for a format of three dataclasses: what they ask of a format is what its docstrings say."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.support.examples import examples

from nightkeep.clustering import sorting, wide_task
from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.clustering.columns import ClusterColumns
from nightkeep.clustering.cubes import cube_mark, marked_cube
from nightkeep.clustering.even_files import CountingStorage, write_packed
from nightkeep.clustering.live_rows import LiveRows
from nightkeep.clustering.packing import is_settled, packing, packing_work
from nightkeep.clustering.picking import UnitFiles, cluster_work
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask, cluster
from nightkeep.clustering.sizing import Sizes, live_bytes
from nightkeep.errors import UsageError
from nightkeep.kernels.skipping import FileBounds
from nightkeep.model import Clustering, Curve, Operation, Request, Run, UnitKey
from nightkeep.protocol import Wide
from nightkeep.storage import LocalStorage, Storage

BY_TWO = Clustering(("a", "deep.x"), Curve.HILBERT)
LONG = pa.int64()
PATHS = (("a",), ("deep", "x"))
ICEBERG_LIKE = Sizes(1000, 750, 0.3, large=1800, fewest=5)


@dataclass(frozen=True, slots=True)
class Held:
    name: str
    bytes: int
    rows: int | None = 100
    deleted_rows: int = 0
    deletes: int = 0
    cube: str | None = None


@dataclass(frozen=True, slots=True)
class New:
    name: str
    bytes: int
    rows: int


@dataclass
class HeldFile:
    """An open file, read 37 rows at a time."""

    table: pa.Table
    rows: int

    def batches(self, names: Sequence[str] | None, *, batch_rows: int) -> Iterator[pa.Table]:
        for batch in self.table.select(names).to_batches(37):
            yield pa.Table.from_batches([batch])

    def taken(self, names: Sequence[str] | None, positions: BitMap64) -> Iterator[pa.Table]:
        raise NotImplementedError

    def sampled(self, names: Sequence[str] | None, rows: int, seed: int) -> pa.Table:
        return self.table.select(names).slice(0, rows)


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Rows by file, of which those with `ids` are not live; `unsure` are counted too many."""

    tables: dict[str, pa.Table]
    ids: frozenset[int] = frozenset()
    unsure: int = 0

    def live(self) -> LiveRows[Held]:
        return LiveRows(self.opened, lambda _: self.hidden, deleted_rows=self.counted)

    def opened(self, file: Held) -> HeldFile:
        return HeldFile(self.tables[file.name], self.tables[file.name].num_rows)

    def hidden(self, file: Held) -> BitMap64:
        return BitMap64(at for at, n in enumerate(self.tables[file.name].column("id").to_pylist()) if n in self.ids)

    def counted(self, files: Sequence[Held]) -> int:
        return sum(len(self.hidden(file)) for file in files) - self.unsure


@dataclass(slots=True)
class HeldWriter:
    """Ten bytes a row."""

    columns: tuple[str, ...] = ("id", "a", "deep")
    files: list[pa.Table] = field(default_factory=list)

    def write(self, chunks: Iterable[pa.Table], *, rows_per_file: int) -> Sequence[New]:
        held = [chunk.select(self.columns) for chunk in chunks if chunk.num_rows]
        rows = pa.concat_tables(held) if held else None
        count = rows.num_rows if rows is not None else 0
        new = [rows.slice(at, rows_per_file) for at in range(0, count, rows_per_file)] if rows is not None else []
        self.files += new
        return [New(f"new{number}", 10 * table.num_rows, table.num_rows) for number, table in enumerate(new)]


def tables(rows: int, files: int) -> dict[str, pa.Table]:
    rng = np.random.default_rng(rows)
    a = pa.array(rng.integers(0, 50, rows), mask=rng.random(rows) < 0.1)
    deep = pa.StructArray.from_arrays([pa.array(rng.random(rows))], ["x"], mask=pa.array(rng.random(rows) < 0.1))
    whole = pa.table({"id": np.arange(rows), "unread": np.zeros(rows), "a": a, "deep": deep})
    size = -(-rows // files)
    return {f"f{at}": whole.slice(at, size) for at in range(0, rows, size)}


def held(rows: dict[str, pa.Table]) -> tuple[Held, ...]:
    return tuple(Held(name, 10 * table.num_rows, table.num_rows) for name, table in rows.items())


def ids(written: Iterable[pa.Table]) -> list[Any]:
    return [n for table in written for n in table.column("id").to_pylist()]


@dataclass(frozen=True, slots=True)
class HeldInputs:
    """Its edit is the names of files that go."""

    files: tuple[Held, ...]
    source: HeldRows = field(default_factory=lambda: HeldRows({}))
    written: HeldWriter = field(default_factory=HeldWriter)
    key: UnitKey = field(default_factory=lambda: UnitKey(""))

    def rows(self, storage: Storage) -> LiveRows[Held]:
        return self.source.live()

    def writer(self, storage: Storage, run: Run, layout: FileLayout) -> HeldWriter:
        return HeldWriter() if isinstance(storage, CountingStorage) else self.written

    def edit(self, written: Sequence[New], *, removed: Sequence[Held]) -> object:
        return [file.name for file in removed]


RUN = Run("", "", "", 0)
SOME_STORAGE = LocalStorage("/nowhere")


def paths_of(clustering: Clustering) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(name.split(".")) for name in clustering.columns)


def in_one_task(source: HeldRows, clustering: Clustering, target_bytes: int) -> list[pa.Table]:
    inputs = HeldInputs(held(source.tables), source)
    done = cluster(SOME_STORAGE, ClusterTask(inputs, clustering, paths_of(clustering), target_bytes, 1), RUN)
    assert done.edit == [file.name for file in inputs.files] and len(done.outputs) == len(inputs.written.files)
    return inputs.written.files


def exchanged(source: HeldRows, clustering: Clustering, target_bytes: int) -> list[pa.Table]:
    inputs = HeldInputs(held(source.tables), source)
    task = wide_task.as_wide(ClusterTask(inputs, clustering, paths_of(clustering), target_bytes, 1))
    surveys = [wide_task.survey(SOME_STORAGE, task, source) for source in task.sources]
    ranged = wide_task.ranged(task, surveys)
    moved = [piece for source in task.sources for piece in wide_task.scatter(SOME_STORAGE, ranged, source)]
    for part in range(task.parts):
        own = sorted((piece for piece in moved if piece[0] == part), key=lambda piece: piece[1])
        done = wide_task.gather(SOME_STORAGE, ranged, part, ((place, batch) for _, place, batch in own), RUN)
        assert done.edit == ([file.name for file in inputs.files] if part == 0 else [])
    return inputs.written.files


@pytest.mark.extended
@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None)
@given(
    st.integers(1, 400), st.integers(1, 5), st.sets(st.integers(0, 399)), st.integers(0, 50), st.integers(1, 1 << 14)
)
def test_rows_that_are_live_come_out_once_on_every_way(
    rows: int, files: int, hidden: set[int], unsure: int, least: int
) -> None:
    """However many rows the format believes to have, and however little memory there is."""
    source = HeldRows(tables(rows, files), frozenset(hidden), unsure)
    expected = sorted(set(range(rows)) - hidden)
    packed = HeldWriter()
    write_packed(source.live(), held(source.tables), packed, into=3, target_bytes=1000)
    assert ids(packed.files) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "LEAST_BYTES", least)
        assert sorted(ids(in_one_task(source, BY_TWO, 1000))) == expected
        assert sorted(ids(exchanged(source, BY_TWO, 1000))) == expected


def test_one_column_is_sorted_on_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    source = HeldRows(tables(4_000, 4))
    by_one = Clustering(("deep.x",), Curve.Z)
    for least in (1 << 30, 1 << 14):
        monkeypatch.setattr(sorting, "LEAST_BYTES", least)
        for written in (in_one_task(source, by_one, 8_000), exchanged(source, by_one, 8_000)):
            assert len(written) > 3
            values = [-1.0 if deep is None else deep["x"] for t in written for deep in t.column("deep").to_pylist()]
            assert values == sorted(values) and len(values) == 4_000


def names(task: ClusterTask[Held, New, object] | PackTask[Held, New, object]) -> list[str]:
    return [file.name for file in task.inputs.files]


def packed(files: list[Held], **asked: Any) -> str:
    picked = packing(files, ICEBERG_LIKE, is_settled=lambda some: False, **{"full": False, **asked})
    if picked is None:
        return "nothing"
    work = packing_work(picked, HeldInputs, deletes="delete")
    told = [f"{' '.join(names(task))} -> {task.into}" for task in work.tasks if isinstance(task, PackTask)]
    return f"{' | '.join(told)}: {work.reason}; {work.estimate.benefit}"


@pytest.mark.parametrize(
    ("files", "asked", "expected"),
    [
        ([Held(n, 100) for n in "abcd"], {}, "nothing"),
        (
            [Held(n, 100) for n in "abcde"],
            {},
            "a b c d e -> 1: 5 files below 750 bytes; 1 bin of up to 1,000 bytes; 4 files fewer",
        ),
        ([Held("a", 1700), Held("b", 800)], {}, "nothing"),
        (
            [Held("a", 2900), *(Held(n, 100) for n in "bcde")],
            {},
            "a -> 3: 1 file above 1,800 bytes; 1 bin of up to 1,000 bytes; 2 files more, each near the target",
        ),
        (
            [Held("a", 900, deleted_rows=31, deletes=2), Held("b", 900, deleted_rows=30, deletes=1)],
            {},
            "a -> 1: 1 file with more than 30% of rows deleted; 1 bin of up to 1,000 bytes; "
            "31 deleted rows and 2 deletes purged",
        ),
        (
            [Held("a", 900, deletes=1), Held("b", 900), Held("c", 10, deleted_rows=100, deletes=1)],
            {"full": True},
            "a c -> 1: 1 file more as all were asked for; 1 file without rows, only removed; 1 bin of up to 1,000 "
            "bytes; 1 file fewer, 100 deleted rows and 2 deletes purged",
        ),
    ],
)
def test_sizes_of_any_format_decide(files: list[Held], asked: dict[str, Any], expected: str) -> None:
    assert packed(files, **asked) == expected


@given(
    st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 100)), max_size=12).map(
        lambda found: [Held(f"f{n:02}", size, 100, gone, int(gone > 0)) for n, (size, gone) in enumerate(found)]
    )
)
def test_a_file_is_packed_for_a_reason_and_no_reason_is_left(files: list[Held]) -> None:
    picked = packing(files, ICEBERG_LIKE, full=False, is_settled=lambda some: False)
    read = tuple(file for some in picked.bins for file in some) if picked else ()
    gone = picked.gone if picked else ()
    assert len({*read, *gone}) == len(read) + len(gone)
    assert set(gone) == {file for file in files if file.deleted_rows == 100}
    worn = {file for file in files if 30 < file.deleted_rows < 100}
    assert worn <= set(read)
    odd = {file for file in files if file not in gone and (file.bytes < 750 or file.bytes > 1800)}
    assert set(read) <= worn | odd
    left = sorted(live_bytes(file) for file in odd - set(read) if file.bytes < 750)
    few = sum(file.bytes < 750 for file in worn | odd) < 5
    assert few or sum(left[:2]) > 1000 or len(left) < 2


@pytest.mark.parametrize(
    ("runs", "settled"),
    [
        ("x1 x1 x2", True),
        ("x1 y1", False),
        ("- -", False),
        ("x3 -1", True),
        ("x3 -3", True),
        ("x1 -3", False),
        ("x1 x3 -2", False),
        ("x1 y2", True),
        ("x1 y2 -1", True),
        ("x1 y2 -3", False),
        ("x1 y2 x3", False),
    ],
)
def test_what_one_run_left_apart_stays_until_something_younger_comes(runs: str, settled: bool) -> None:
    files = [Held(run, 1) for run in runs.split()]
    run_of = {file: None if file.name[0] == "-" else file.name[0] for file in files}
    assert is_settled(files, lambda file: run_of[file], lambda file: int(file.name[1:] or 0)) is settled


def test_the_cube_of_a_file_is_what_its_format_states() -> None:
    """A format without tags: the files of a cube are told by whatever it knows."""
    kept = [Held(f"old{n}", 1000, cube="one") for n in range(40)]
    new = [Held(f"new{n}", 1000) for n in range(3)]

    def bounds_of(files: Sequence[Held]) -> dict[tuple[str, ...], FileBounds]:
        lows = np.arange(len(files))
        return {("a",): FileBounds(pa.array(lows), pa.array(lows), np.full(len(files), 100))}

    unit = UnitFiles((*kept, *new), Clustering(("a",), Curve.Z), PATHS[:1], lambda file: file.cube, bounds_of)

    def task(unit: UnitFiles[Held], **asked: Any) -> object:
        work = cluster_work(unit, ICEBERG_LIKE, Request(Operation.OPTIMIZE, 0, **asked), inputs_of=HeldInputs)
        assert work is not None
        (found,) = work.tasks
        return found

    few = task(unit)
    assert isinstance(few, ClusterTask) and names(few) == ["new0", "new1", "new2"]
    every = task(unit, full=True, wide_bytes=0)
    assert isinstance(every, Wide) and isinstance(every.task, ClusterTask) and len(names(every.task)) == 43
    gone = UnitFiles((Held("gone", 1, 5, 5, 1), *kept), unit.clustering, unit.paths, unit.cube_of, bounds_of)
    removed = task(gone)
    assert isinstance(removed, PackTask) and names(removed) == ["gone"] and removed.into == 0


def test_a_mark_names_its_cube_to_its_own_clustering_only() -> None:
    mark = partial(cube_mark, token="f" * 16, key=UnitKey("day=1"))
    assert marked_cube(mark(BY_TWO), BY_TWO) is not None
    assert marked_cube(mark(BY_TWO), Clustering(BY_TWO.columns, Curve.Z)) is None
    assert mark(BY_TWO) != cube_mark(BY_TWO, "f" * 16, UnitKey("day=2"))


@dataclass(frozen=True, slots=True)
class Column:
    path: tuple[str, ...]
    type: pa.DataType = LONG
    ordered: bool = True


def test_a_column_of_that_very_name_goes_before_one_of_another_case() -> None:
    """Iceberg's names may differ in case alone."""
    both = (Column(("A",)), Column(("a",)))
    columns = ClusterColumns(both, both, (), "")
    assert columns.resolved(Clustering(("a",), Curve.Z)).columns == ("a",)
    assert columns.resolved(Clustering(("A",), Curve.Z)).columns == ("A",)
    assert columns.paths(Clustering(("a", "A"), Curve.Z)) == (("a",), ("A",))


def test_a_column_of_another_case_than_a_partition_column_is_another_column() -> None:
    leaves = tuple(Column((name,)) for name in ("p", "P", "n"))
    columns = ClusterColumns(leaves, leaves, ("p",), "")
    assert columns.paths(Clustering(("P",), Curve.HILBERT)) == (("P",),)
    with pytest.raises(UsageError, match=r"cluster by p: it is a partition column, .*; P, n would work"):
        columns.paths(Clustering(("p",), Curve.HILBERT))


def test_a_name_in_another_case_is_the_one_column_that_it_may_mean() -> None:
    leaves = tuple(Column((name,)) for name in ("Id", "aB", "Ab"))
    columns = ClusterColumns(leaves, leaves, ("Day",), "")
    assert columns.paths(Clustering(("ID",), Curve.HILBERT)) == (("Id",),)
    with pytest.raises(UsageError, match=r"cluster by ab: expected one column of that name, found aB, Ab"):
        columns.paths(Clustering(("ab",), Curve.HILBERT))
    with pytest.raises(UsageError, match=r"cluster by DAY: it is a partition column"):
        columns.paths(Clustering(("DAY",), Curve.HILBERT))


def test_advice_of_the_format_is_reported() -> None:
    columns = ClusterColumns((Column(("a",)), Column(("b",))), (Column(("b",)),), (), "set this and that")
    with pytest.raises(UsageError, match=r"cluster by a: it has no statistics, .*; set this and that; b would work"):
        columns.paths(Clustering(("a",), Curve.Z))
