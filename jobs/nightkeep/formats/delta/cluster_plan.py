"""A partition's files -> the task that lays new ones, and cubes not worth keeping apart, along a curve.

Incremental: what was clustered stays until about as much has come since, or until it skips too little beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nightkeep.formats.delta.cluster import ClusterTask
from nightkeep.formats.delta.cluster_columns import leaf_of, resolved
from nightkeep.formats.delta.cubes import Layout, merging
from nightkeep.formats.delta.edits import Intent
from nightkeep.formats.delta.figures import file_bounds
from nightkeep.formats.delta.metadata import DataFile, DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.optimize import PackTask, count
from nightkeep.formats.delta.sizing import Sizes, file_count, total_live_bytes
from nightkeep.formats.delta.tuning import SKIPPING_KEPT, WIDE_FACTOR, Z_TOUCHED
from nightkeep.formats.delta.wide import as_wide
from nightkeep.kernels.skipping import overlap, queries_of, skipped_share
from nightkeep.model import Clustering, Estimate, Request
from nightkeep.protocol import Snapshot, Work

Files = tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class _Pick:
    """The layout, and how many of its cubes are clustered again; `why` where their sizes alone would keep them."""

    layout: Layout
    cubes: int
    why: str = ""

    @property
    def files(self) -> Files:
        return (*self.layout.loose, *(file for cube in self.layout.cubes[: self.cubes] for file in cube))


def cluster_files(snapshot: Snapshot[DeltaUnit], unit: DeltaUnit, request: Request) -> Work | None:
    """All files that no cube of the same columns and curve has, with cubes; everything where `request.full`.

    Nothing where every file is of a cube. Raises UsageError for columns that cannot be clustered by.
    """
    assert isinstance(snapshot, DeltaSnapshot)
    if request.clustering is None:
        return None
    clustering = resolved(snapshot.schema, request.clustering)
    sizes = Sizes.of(snapshot, request)
    layout = Layout.of(unit.files, clustering, sizes)
    if request.full:
        pick = _Pick(layout, len(layout.cubes), "all were asked for")
    elif layout.loose:
        pick = _incremental(unit, layout, clustering, target_bytes=sizes.target)
    else:
        pick = _Pick(layout, 0)
    if not pick.files and not layout.gone:
        return None
    return _work(unit, pick, clustering, sizes=sizes, request=request)


def _incremental(unit: DeltaUnit, layout: Layout, clustering: Clustering, *, target_bytes: int) -> _Pick:
    """Cubes by size, then one after the other until what is left beside the new one skips enough."""
    number = merging(layout)
    skipped = [_skipped(unit, cube, clustering) for cube in layout.cubes]
    by_size = number
    while number < len(layout.cubes) and not _skips_enough(
        layout, number, skipped, columns=len(clustering.columns), target_bytes=target_bytes
    ):
        number += 1
    return _Pick(layout, number, "" if number == by_size else "apart they would skip too little")


def _skipped(unit: DeltaUnit, files: Files, clustering: Clustering) -> Sequence[float]:
    """For each column, the share of the files that a narrow range of it does not touch."""
    paths = [leaf_of(unit.schema, name).path for name in clustering.columns]
    found = file_bounds(unit.schema, files, paths)
    return [skipped_share(found[path], queries_of(found[path])) for path in paths]


def _skips_enough(
    layout: Layout, merged: int, skipped: Sequence[Sequence[float]], *, columns: int, target_bytes: int
) -> bool:
    """Whether the cubes from `merged` on and a new one of the rest together skip near what the largest does."""
    new = file_count(total_live_bytes(_Pick(layout, merged).files), target_bytes)
    expected = max(0.0, 1.0 - Z_TOUCHED * new ** (-1 / columns))
    kept = layout.cubes[merged:]
    files = new + sum(len(cube) for cube in kept)
    for column, largest in enumerate(skipped[-1]):
        shares = [each[column] for each in skipped[merged:]]
        together = new * expected + sum(len(cube) * share for cube, share in zip(kept, shares, strict=True))
        if together < SKIPPING_KEPT * largest * files:
            return False
    return True


def _work(unit: DeltaUnit, pick: _Pick, clustering: Clustering, *, sizes: Sizes, request: Request) -> Work:
    files, gone, intent = pick.files, pick.layout.gone, Intent.of(replace(request, clustering=clustering))
    size, after = total_live_bytes(files), file_count(total_live_bytes(files), sizes.target) if files else 0
    inputs = tuple(sorted((*files, *gone), key=lambda file: file.path))
    chosen = replace(unit, files=inputs)
    task = ClusterTask(chosen, clustering, sizes.target, request.task_bytes, intent)
    wide_bytes = WIDE_FACTOR * request.task_bytes if request.wide_bytes is None else request.wide_bytes
    exchanged = size > wide_bytes
    read = sum(file.bytes for file in files)
    return Work(
        reason=_reason(unit, pick, clustering, path=_path(size, wide_bytes)),
        input_files=tuple(file.name for file in inputs),
        input_bytes=sum(file.bytes for file in inputs),
        estimate=Estimate(read, size, after, _benefit(clustering, len(files), after)),
        tasks=(_task(task, files, exchanged=exchanged),),
    )


def _task(task: ClusterTask, files: Files, *, exchanged: bool) -> object:
    if not files:
        return PackTask(task.unit, 0, task.target_bytes, task.intent)
    return as_wide(task) if exchanged else task


def _path(size: int, wide_bytes: int) -> str:
    if size > wide_bytes:
        return f"through Spark's exchange, as {size:,} live bytes are more than {wide_bytes:,}"
    return f"in one task, as {size:,} live bytes are at most {wide_bytes:,}"


def _reason(unit: DeltaUnit, pick: _Pick, clustering: Clustering, *, path: str) -> str:
    layout, gone = pick.layout, len(pick.layout.gone)
    without_rows = f"{count(gone)} without rows, only removed"
    if not pick.files:
        return without_rows
    cubes, of = pick.cubes, len(layout.cubes)
    merged = f"and {cubes} of {of} cubes" if of else ""
    said = [
        f"{clustering}: {count(len(layout.loose))} not clustered so {merged}".rstrip(),
        pick.why if cubes else "",
        without_rows if gone else "",
        f"files that may hold a value, before: {_overlaps(unit, clustering)}",
        path,
    ]
    return "; ".join(sentence for sentence in said if sentence)


def _overlaps(unit: DeltaUnit, clustering: Clustering) -> str:
    paths: Mapping[str, tuple[str, ...]] = {name: leaf_of(unit.schema, name).path for name in clustering.columns}
    found = file_bounds(unit.schema, unit.files, paths.values())
    degrees = {name: overlap(found[path]) for name, path in paths.items()}
    return ", ".join(f"{name} {degree:.1f}" if degree else f"{name} any" for name, degree in degrees.items())


def _benefit(clustering: Clustering, before: int, after: int) -> str:
    if not before:
        return "files without rows go"
    return f"filters on {', '.join(clustering.columns)} skip files, {count(before)} become {after}"
