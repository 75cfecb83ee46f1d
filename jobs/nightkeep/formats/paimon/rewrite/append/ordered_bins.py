"""Files of a bucket that keeps the order of its rows -> bins of neighbours, which new files can take the place of.

As BucketedAppendCompactManager.java picks files next to each other by their lowest sequence number. Java's compaction
begins each of its files with one number, and readers take such files in the order of manifests, where new ones are
last: a bin ends where the next file has another number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from nightkeep.clustering.sizing import is_gone, live_bytes
from nightkeep.formats.paimon.rewrite.append.append_files import AppendFile


def ordered_bins(
    files: Sequence[AppendFile], chosen: Sequence[AppendFile], target_bytes: int
) -> list[tuple[AppendFile, ...]]:
    """Bins of `chosen` files, of all `files` of the bucket in order. A bin is closed when the next file would exceed
    the target, unless both begin with one number. Then it also has files that were not chosen."""
    wanted = {file.name for file in chosen}
    bins: list[list[AppendFile]] = []
    is_open = False
    for file, is_tied in _with_ties([file for file in files if not is_gone(file)]):
        if not (is_open and is_tied):
            is_open = is_open and file.name in wanted and _total(bins[-1]) + live_bytes(file) <= target_bytes
        if is_open:
            bins[-1].append(file)
        elif file.name in wanted:
            bins.append([file])
            is_open = True
    return [tuple(some) for some in bins]


def _with_ties(files: Sequence[AppendFile]) -> Iterator[tuple[AppendFile, bool]]:
    """Each file, and whether it begins with the number that the file before begins with."""
    yield from ((file, False) for file in files[:1])
    yield from ((file, before.file.min_sequence == file.file.min_sequence) for before, file in pairwise(files))


def _total(files: Sequence[AppendFile]) -> int:
    return sum(map(live_bytes, files))
