"""Small, large and worn files of a unit -> bins of about one file each. A second run picks nothing more.

Bins follow OptimizeTableCommand.scala of delta-spark 4.4 (next-fit by ascending size), with differences: single files
are purged too, only live bytes count, and files without rows are removed, which delta-spark does not do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic

import numpy as np

from nightkeep.clustering.clustered_files import E, F, Inputs, W
from nightkeep.clustering.file_bytes import FileBytes, written_files
from nightkeep.clustering.rewrite_tasks import PackTask
from nightkeep.clustering.sizing import Sizes, are_gone, file_count, live_sizes
from nightkeep.clustering.tuning import SPLIT_SHARE
from nightkeep.model import Estimate
from nightkeep.model.counted import counted
from nightkeep.model.file_columns import FileColumns, columns_of, name_ranks, names_of, taken, total
from nightkeep.protocol import Work

_ENDLESS = 1 << 62
"""A target that no file reaches."""


@dataclass(frozen=True, slots=True)
class Packing(Generic[F]):
    """The files to pack: `bins`, and `gone` files without live rows, which are only removed."""

    bins: tuple[Sequence[F], ...]
    gone: Sequence[F]
    sizes: Sizes

    @property
    def read(self) -> FileColumns:
        return FileColumns.of([columns_of(some) for some in self.bins])


def packing(
    files: Sequence[F],
    sizes: Sizes,
    *,
    full: bool,
    is_settled: Callable[[Sequence[F]], bool],
    bins_of: Callable[[Sequence[F]], Sequence[Sequence[F]]] | None = None,
) -> Packing[F] | None:
    """The packing of small files, large files, worn files and files without rows; of all files if `full`; None if none.

    `bins_of` makes bins of files, by default `next_fit`.

    Left alone are: a bin of one file without deletes to purge that is not split, too few small files, and bins for
    which, by `is_settled`, an earlier run left apart.
    """
    columns = columns_of(files)
    without_rows = are_gone(columns)
    candidates = full | sizes.are_small(columns) | sizes.are_large(columns) | sizes.are_worn(columns)
    gone = taken(files, np.flatnonzero(without_rows))
    chosen = taken(files, np.flatnonzero(~without_rows & candidates))
    bins = next_fit(chosen, sizes.target) if bins_of is None else bins_of(chosen)
    if full:
        worth = [some for some in bins if len(some) > 1 or some[0].deletes or _is_split(columns_of(some), sizes)]
    else:
        enough = np.count_nonzero(sizes.are_small(columns_of(chosen))) >= sizes.fewest
        worth = [some for some in bins if _is_worth(some, sizes) or (enough and len(some) > 1 and not is_settled(some))]
    return Packing(tuple(worth), gone, sizes) if worth or gone else None


def next_fit(files: Sequence[F], target_bytes: int) -> list[Sequence[F]]:
    """Bins of files by ascending live bytes, each closed when the next file would exceed the target.

    Any two bins together exceed the target, so their files need no further merge.
    """
    live = live_sizes(columns_of(files))
    order = np.lexsort((name_ranks(files), live))
    # A file above the target is alone in its bin, however large it is.
    ends = np.cumsum(np.minimum(live[order], target_bytes + 1))
    bins: list[Sequence[F]] = []
    start = 0
    while start < len(order):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + target_bytes, side="right")))
        bins.append(taken(files, order[start:stop]))
        start = stop
    return bins


def is_settled(files: Sequence[F], packed: Callable[[F], str | None], written: Callable[[F], int]) -> bool:
    """Whether one run packed some of these files to the current target, and could have packed the rest.

    Files that it left apart stay apart, as the size of a merged file is not known in advance: also those of an earlier
    run. `packed` returns the run that packed a file to the current target, else None. `written` orders files by age.
    """
    runs = {packed(file): written(file) for file in sorted(files, key=written) if packed(file) is not None}
    if not runs:
        return False
    newest = max(runs, key=lambda run: runs[run])
    then = min(written(file) for file in files if packed(file) == newest)
    others = [file for file in files if packed(file) != newest]
    # Of two runs of one time it is not known which could have packed the files of the other one.
    return all(written(file) < then or (packed(file) is None and written(file) == then) for file in others)


def packing_work(
    picked: Packing[F], inputs_of: Callable[[Sequence[F]], Inputs[F, W, E]], *, deletes: str = "deletion vector"
) -> Work[PackTask[F, W, E]]:
    """A task for each bin. The first task, or one of its own, removes files without rows.

    `deletes` is the word for the format's deletes in messages.
    """
    counts = [_outputs(columns_of(some), picked.sizes.target) for some in picked.bins]
    first, *others = picked.bins or (picked.gone[:0],)
    parts = ((*first, *picked.gone) if picked.gone else first, *others)
    files, read = FileColumns.of([columns_of(part) for part in parts]), picked.read
    target = picked.sizes.target
    after, written = _written(picked, counts)
    size = total(files.bytes)
    return Work(
        reason=_reason(picked),
        input_files=tuple(name for part in parts for name in names_of(part)),
        input_bytes=size,
        estimate=Estimate(
            total(read.bytes),
            written,
            after,
            _benefit(files, after, deletes),
            more_files=after - len(files),
            more_bytes=written - size,
        ),
        tasks=tuple(PackTask(inputs_of(part), count, target) for part, count in zip(parts, counts or [0], strict=True)),
    )


def _is_worth(files: Sequence[F], sizes: Sizes) -> bool:
    """Whether a bin is worth rewriting, regardless of other files."""
    columns = columns_of(files)
    return bool(sizes.are_worn(columns).any()) or (bool(sizes.are_large(columns)[0]) and _is_split(columns, sizes))


def _is_split(files: FileColumns, sizes: Sizes) -> bool:
    return total(live_sizes(files)) > SPLIT_SHARE * sizes.target


def _outputs(files: FileColumns, target_bytes: int) -> int:
    size = total(live_sizes(files))
    return file_count(size, target_bytes) if size > SPLIT_SHARE * target_bytes else 1


def _written(picked: Packing[F], counts: Sequence[int]) -> tuple[int, int]:
    """How many files the bins become, and their bytes. A bin of one file stays one, however large that gets."""
    found, files, size = FileBytes.of_files(picked.read, picked.sizes), 0, 0
    for some, into in zip(picked.bins, counts, strict=True):
        sizes = replace(picked.sizes, target=_ENDLESS) if into == 1 else picked.sizes
        number, held = written_files(columns_of(some), sizes, found)
        files, size = files + number, size + held
    return files, size


def _reason(picked: Packing[F]) -> str:
    sizes, read = picked.sizes, picked.read
    are_worn = sizes.are_worn(read)
    worn = int(np.count_nonzero(are_worn))
    small = int(np.count_nonzero(sizes.are_small(read) & ~are_worn))
    large = int(np.count_nonzero(sizes.are_large(read) & ~are_worn))
    others = len(read) - worn - small - large
    reasons = [
        (small, f"{counted(small, 'file')} below {sizes.small:,} bytes"),
        (large, f"{counted(large, 'file')} above {sizes.large or 0:,} bytes"),
        (worn, f"{counted(worn, 'file')} with more than {sizes.max_deleted_ratio:.0%} of rows deleted"),
        (others, f"{counted(others, 'file')} more as all were asked for"),
        (len(picked.gone), f"{counted(len(picked.gone), 'file')} without rows, only removed"),
        (len(picked.bins), f"{counted(len(picked.bins), 'bin')} of up to {sizes.target:,} bytes"),
    ]
    return "; ".join(sentence for held, sentence in reasons if held)


def _benefit(files: FileColumns, after: int, noun: str) -> str:
    deleted, deletes = total(files.deleted_rows), total(files.deletes)
    fewer = len(files) - after
    benefits = [
        (fewer > 0, f"{counted(fewer, 'file')} fewer"),
        (fewer < 0, f"{counted(-fewer, 'file')} more, each near the target"),
        (deletes > 0, f"{deleted:,} deleted rows and {counted(deletes, noun)} purged"),
    ]
    return ", ".join(sentence for holds, sentence in benefits if holds)
