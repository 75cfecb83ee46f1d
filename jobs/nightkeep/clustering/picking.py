"""A unit's files -> the task that lays new ones, and cubes not worth keeping apart, along a curve.

Incremental: what was clustered stays until about as much has come since, or until it skips too little beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from nightkeep.clustering.clustered_files import E, F, Inputs, W
from nightkeep.clustering.columns import Paths
from nightkeep.clustering.cubes import UnitCubes, merging
from nightkeep.clustering.layout import Bounds, dotted
from nightkeep.clustering.packing import counted
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.clustering.sizing import Sizes, file_count, total_live_bytes
from nightkeep.clustering.tuning import SKIPPING_KEPT, WIDE_FACTOR, Z_TOUCHED
from nightkeep.clustering.wide_task import as_wide
from nightkeep.kernels.skipping import FileBounds, overlap, queries_of, skipped_share
from nightkeep.model import Clustering, Estimate, Request
from nightkeep.protocol import Wide, Work


@dataclass(frozen=True, slots=True)
class UnitFiles(Generic[F]):
    """The files of a unit, and what a format knows of them. `clustering` has the table's own names, its columns
    are at `paths`.

    `cube_of` names the cube that a file is of, None unless it was clustered by these columns along this curve;
    `bounds_of` has what statistics of some files say of each clustering column, in the files' order.
    """

    files: tuple[F, ...]
    clustering: Clustering
    paths: Paths
    cube_of: Callable[[F], str | None]
    bounds_of: Callable[[Sequence[F]], Bounds]

    def bounds(self, files: Sequence[F]) -> Mapping[str, FileBounds]:
        """By the columns' own names."""
        return dotted(self.bounds_of(files))


@dataclass(frozen=True, slots=True)
class ClusterPick(Generic[F]):
    """The layout, and how many of its cubes are clustered again; `why` where their sizes alone would keep them."""

    layout: UnitCubes[F]
    cubes: int
    why: str = ""

    @property
    def files(self) -> tuple[F, ...]:
        return (*self.layout.loose, *(file for cube in self.layout.cubes[: self.cubes] for file in cube))


def cluster_work(
    unit: UnitFiles[F], sizes: Sizes, request: Request, *, inputs_of: Callable[[tuple[F, ...]], Inputs[F, W, E]]
) -> Work[PackTask[F, W, E] | ClusterTask[F, W, E] | Wide] | None:
    """All files that no cube of the same columns and curve has, with cubes; everything where `request.full`.

    None where every file is of a cube. One task has all input files by name, those without rows among them; their
    rows move in one task, or through the exchange.
    """
    pick = pick_files(unit, sizes, full=request.full)
    if not pick.files and not pick.layout.gone:
        return None
    files = pick.files
    size, after = total_live_bytes(files), file_count(total_live_bytes(files), sizes.target) if files else 0
    inputs = tuple(sorted((*files, *pick.layout.gone), key=lambda file: file.name))
    wide_bytes = WIDE_FACTOR * request.task_bytes if request.wide_bytes is None else request.wide_bytes
    task = ClusterTask(inputs_of(inputs), unit.clustering, unit.paths, sizes.target, request.task_bytes)
    moving = as_wide(task) if size > wide_bytes else task
    return Work(
        reason=_reason(unit, pick, way=_way(size, wide_bytes)),
        input_files=tuple(file.name for file in inputs),
        input_bytes=sum(file.bytes for file in inputs),
        estimate=Estimate(sum(file.bytes for file in files), size, after, _benefit(unit.clustering, len(files), after)),
        tasks=(moving if files else PackTask(task.inputs, 0, sizes.target),),
    )


def pick_files(unit: UnitFiles[F], sizes: Sizes, *, full: bool) -> ClusterPick[F]:
    layout = UnitCubes.of(unit.files, sizes, unit.cube_of)
    if full:
        return ClusterPick(layout, len(layout.cubes), "all were asked for")
    return _incremental(unit, layout, target_bytes=sizes.target) if layout.loose else ClusterPick(layout, 0)


def _incremental(unit: UnitFiles[F], layout: UnitCubes[F], *, target_bytes: int) -> ClusterPick[F]:
    """Cubes by size, then one after the other until what is left beside the new one skips enough."""
    number = merging(layout)
    skipped = [_skipped(unit, cube) for cube in layout.cubes]
    by_size = number
    while number < len(layout.cubes) and not _skips_enough(layout, number, skipped, target_bytes=target_bytes):
        number += 1
    return ClusterPick(layout, number, "" if number == by_size else "apart they would skip too little")


def _skipped(unit: UnitFiles[F], files: Sequence[F]) -> Sequence[float]:
    """For each column, the share of the files that a narrow range of it does not touch."""
    bounds = unit.bounds(files)
    return [skipped_share(bounds[name], queries_of(bounds[name])) for name in unit.clustering.columns]


def _skips_enough(layout: UnitCubes[F], merged: int, skipped: Sequence[Sequence[float]], *, target_bytes: int) -> bool:
    """Whether the cubes from `merged` on and a new one of the rest together skip near what the largest does."""
    new = file_count(total_live_bytes(ClusterPick(layout, merged).files), target_bytes)
    expected = max(0.0, 1.0 - Z_TOUCHED * new ** (-1 / len(skipped[-1])))
    kept = layout.cubes[merged:]
    files = new + sum(len(cube) for cube in kept)
    for column, largest in enumerate(skipped[-1]):
        shares = [each[column] for each in skipped[merged:]]
        together = new * expected + sum(len(cube) * share for cube, share in zip(kept, shares, strict=True))
        if together < SKIPPING_KEPT * largest * files:
            return False
    return True


def _way(size: int, wide_bytes: int) -> str:
    if size > wide_bytes:
        return f"through Spark's exchange, as {size:,} live bytes are more than {wide_bytes:,}"
    return f"in one task, as {size:,} live bytes are at most {wide_bytes:,}"


def _reason(unit: UnitFiles[F], pick: ClusterPick[F], *, way: str) -> str:
    layout, gone = pick.layout, len(pick.layout.gone)
    without_rows = f"{counted(gone)} without rows, only removed"
    if not pick.files:
        return without_rows
    cubes, of = pick.cubes, len(layout.cubes)
    merged = f"and {cubes} of {of} cubes" if of else ""
    said = [
        f"{unit.clustering}: {counted(len(layout.loose))} not clustered so {merged}".rstrip(),
        pick.why if cubes else "",
        without_rows if gone else "",
        f"files that may hold a value, before: {_overlaps(unit)}",
        way,
    ]
    return "; ".join(sentence for sentence in said if sentence)


def _overlaps(unit: UnitFiles[F]) -> str:
    bounds = unit.bounds(unit.files)
    degrees = {name: overlap(bounds[name]) for name in unit.clustering.columns}
    return ", ".join(f"{name} {degree:.1f}" if degree else f"{name} any" for name, degree in degrees.items())


def _benefit(clustering: Clustering, before: int, after: int) -> str:
    if not before:
        return "files without rows go"
    return f"filters on {', '.join(clustering.columns)} skip files, {counted(before)} become {after}"
