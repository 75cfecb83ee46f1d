"""Files of a unit -> a task that clusters new files, and cubes too small to keep separate, along a curve.

Incremental: a small cube is clustered again once what has come since is about as large. A cube of many files stays,
as its rows are in the order of the curve also inside files, until it is one of so many that queries read several times
what they would read of one cube. So a byte of a large night is written once or twice, and once more when cubes have
become many; a byte of a small night is written a few times, until its cube has many files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from nightkeep.clustering.clustered_files import E, F, Inputs, W
from nightkeep.clustering.columns import Paths
from nightkeep.clustering.cube_reads import CubeReads
from nightkeep.clustering.cubes import UnitCubes, merging
from nightkeep.clustering.file_bytes import FileBytes, written_files
from nightkeep.clustering.layout import Bounds, dotted
from nightkeep.clustering.order_ranges import KeyedOrder
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.clustering.sizing import Sizes, total_live_bytes
from nightkeep.clustering.tuning import WIDE_FACTOR
from nightkeep.clustering.wide_task import as_wide
from nightkeep.kernels.skipping import FileBounds, overlap
from nightkeep.model import Clustering, Estimate, Request
from nightkeep.model.counted import counted
from nightkeep.model.file_columns import columns_of
from nightkeep.protocol import OpenWide, Work


@dataclass(frozen=True, slots=True)
class UnitFiles(Generic[F]):
    """The files of a unit, with their cubes and bounds. `clustering` has the table's own names, for columns at `paths`.

    `cube_of` returns the cube of a file; None if it was not clustered by these columns along this curve. `bounds_of`
    returns the bounds of each clustering column for some files, in their order. With `order`, rows are sorted by it.
    """

    files: Sequence[F]
    clustering: Clustering
    paths: Paths
    cube_of: Callable[[F], str | None]
    bounds_of: Callable[[Sequence[F]], Bounds]
    order: KeyedOrder | None = None

    def bounds(self, files: Sequence[F]) -> Mapping[str, FileBounds]:
        """The bounds of these files by the columns' own names."""
        return dotted(self.bounds_of(files))


@dataclass(frozen=True, slots=True)
class ClusterPick(Generic[F]):
    """The layout, and how many of its cubes to cluster again; `why` if their sizes alone are not the reason."""

    layout: UnitCubes[F]
    cubes: int
    why: str = ""

    @property
    def files(self) -> tuple[F, ...]:
        return (*self.layout.loose, *(file for cube in self.layout.cubes[: self.cubes] for file in cube))


def cluster_work(
    unit: UnitFiles[F], sizes: Sizes, request: Request, *, inputs_of: Callable[[Sequence[F]], Inputs[F, W, E]]
) -> Work[PackTask[F, W, E] | ClusterTask[F, W, E] | OpenWide] | None:
    """Work on all files in no cube of these columns and curve, and on the picked cubes; on all if `request.full`.

    None if every file is in a cube. One task has all input files by name, those without rows included. Their rows move
    within one task, or through the exchange.
    """
    pick = pick_files(unit, sizes, full=request.full)
    if not pick.files and not pick.layout.gone:
        return None
    files = pick.files
    size = total_live_bytes(files)
    columns = columns_of(files)
    after, written = written_files(columns, sizes, FileBytes.of_files(columns, sizes)) if files else (0, 0)
    inputs = tuple(sorted((*files, *pick.layout.gone), key=lambda file: file.name))
    wide_bytes = WIDE_FACTOR * request.task_bytes if request.wide_bytes is None else request.wide_bytes
    task = ClusterTask(inputs_of(inputs), unit.clustering, unit.paths, sizes.target, request.task_bytes, unit.order)
    moving = as_wide(task) if size > wide_bytes else task
    read = sum(file.bytes for file in inputs)
    return Work(
        reason=_reason(unit, pick, way=_way(size, wide_bytes)),
        input_files=tuple(file.name for file in inputs),
        input_bytes=read,
        estimate=Estimate(
            sum(file.bytes for file in files),
            written,
            after,
            _benefit(unit.clustering, len(files), after),
            more_files=after - len(inputs),
            more_bytes=written - read,
        ),
        tasks=(moving if files else PackTask(task.inputs, 0, sizes.target),),
    )


def pick_files(unit: UnitFiles[F], sizes: Sizes, *, full: bool) -> ClusterPick[F]:
    layout = UnitCubes.of(unit.files, sizes, unit.cube_of)
    if full:
        return ClusterPick(layout, len(layout.cubes), "all were asked for")
    return _incremental(unit, layout, target_bytes=sizes.target) if layout.loose else ClusterPick(layout, 0)


def _incremental(unit: UnitFiles[F], layout: UnitCubes[F], *, target_bytes: int) -> ClusterPick[F]:
    """Pick small cubes by size, then as many larger ones, from the smallest, as are worth their rewrite."""
    by_size = ClusterPick(layout, merging(layout, target_bytes))
    if by_size.cubes == len(layout.cubes):
        return by_size
    reads = CubeReads.of(layout.cubes, unit.bounds, unit.clustering.columns, target_bytes=target_bytes)
    picked, times = reads.worth_merging(by_size.cubes, new=total_live_bytes(by_size.files))
    if picked == by_size.cubes:
        return by_size
    return ClusterPick(layout, picked, f"apart, queries would read {times:.1f} times as much of them")


def _way(size: int, wide_bytes: int) -> str:
    if size > wide_bytes:
        return f"through Spark's exchange, as {size:,} live bytes are more than {wide_bytes:,}"
    return f"in one task, as {size:,} live bytes are at most {wide_bytes:,}"


def _reason(unit: UnitFiles[F], pick: ClusterPick[F], *, way: str) -> str:
    layout, gone = pick.layout, len(pick.layout.gone)
    without_rows = f"{counted(gone, 'file')} without rows, only removed"
    if not pick.files:
        return without_rows
    cubes, of = pick.cubes, len(layout.cubes)
    merged = f"and {cubes} of {of} cubes" if of else ""
    reasons = [
        f"{unit.clustering}: {counted(len(layout.loose), 'file')} not clustered so {merged}".rstrip(),
        pick.why if cubes else "",
        without_rows if gone else "",
        f"files that may hold a value, before: {_overlaps(unit)}",
        way,
    ]
    return "; ".join(sentence for sentence in reasons if sentence)


def _overlaps(unit: UnitFiles[F]) -> str:
    bounds = unit.bounds(unit.files)
    degrees = {name: overlap(bounds[name]) for name in unit.clustering.columns}
    return ", ".join(f"{name} {degree:.1f}" if degree else f"{name} any" for name, degree in degrees.items())


def _benefit(clustering: Clustering, before: int, after: int) -> str:
    if not before:
        return "files without rows go"
    return f"filters on {', '.join(clustering.columns)} skip files, {counted(before, 'file')} become {after}"
