"""A partition's small and worn files -> bins -> tasks that write a file each. A second run finds its fixed point.

Follows OptimizeTableCommand.scala of delta-spark 4.4 (next-fit by ascending size), but purges lone files, too, counts
only live bytes, and removes files without rows for which delta-spark commits nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nightkeep.formats.delta.edits import Intent
from nightkeep.formats.delta.features import refuse_features
from nightkeep.formats.delta.metadata import DataFile, DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.sizing import Sizes, file_count, is_gone, live_bytes, total_live_bytes
from nightkeep.formats.delta.tuning import SPLIT_SHARE
from nightkeep.model import Estimate, Request
from nightkeep.protocol import Snapshot, Work

PACKED = "nightkeep.packed"
"""Tag of a file that packing wrote: the run and the target. What a run left apart stays apart until the target changes,
as nobody knows before what files shrink to when they are merged."""

Bin = tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class PackTask:
    """The unit's files, of which those without rows are only removed, become about `files` new ones."""

    unit: DeltaUnit
    files: int
    target_bytes: int
    intent: Intent


def refuse_unhandled(snapshot: Snapshot[DeltaUnit], request: Request) -> None:
    """Raises RefusedTable for a feature of the table with which the operation cannot be done."""
    assert isinstance(snapshot, DeltaSnapshot)
    refuse_features(snapshot.table.name, snapshot.raw_protocol, snapshot.raw_metadata, request.operation)


def pack_files(snapshot: Snapshot[DeltaUnit], unit: DeltaUnit, request: Request) -> Work | None:
    """Small files, files with many deleted rows and files without rows; every file where `request.full`.

    Left alone: a bin of one file that has nothing to purge and need not be split, and tables that are clustered.
    """
    assert isinstance(snapshot, DeltaSnapshot)
    if request.clustering is not None:
        return None
    sizes = Sizes.of(snapshot, request)
    gone = tuple(file for file in unit.files if is_gone(file))
    chosen = [file for file in unit.files if not is_gone(file) and _is_candidate(file, sizes, request)]
    bins = [some for some in next_fit(chosen, sizes.target) if _is_worth(some, sizes, request)]
    if not bins and not gone:
        return None
    return _work(unit, bins, gone, sizes=sizes, intent=Intent.of(request))


def next_fit(files: Sequence[DataFile], target_bytes: int) -> list[Bin]:
    """Bins of files by ascending live bytes, each closed when the next file would exceed the target.

    Any two bins together exceed it: what they become is not worth merging again.
    """
    bins: list[list[DataFile]] = []
    size = 0
    for file in sorted(files, key=lambda file: (live_bytes(file), file.path)):
        if not bins or size + live_bytes(file) > target_bytes:
            bins.append([])
            size = 0
        bins[-1].append(file)
        size += live_bytes(file)
    return [tuple(some) for some in bins]


def packed_tag(token: str, target_bytes: int) -> dict[str, str]:
    return {PACKED: f"{token}/{target_bytes}"}


def _is_candidate(file: DataFile, sizes: Sizes, request: Request) -> bool:
    return request.full or file.bytes < sizes.small or sizes.is_worn(file)


def _is_worth(files: Bin, sizes: Sizes, request: Request) -> bool:
    if any(sizes.is_worn(file) for file in files):
        return True
    if request.full:
        large = total_live_bytes(files) > SPLIT_SHARE * sizes.target
        return len(files) > 1 or files[0].vector is not None or large
    return len(files) > 1 and not _is_settled(files, sizes.target)


def _is_settled(files: Bin, target_bytes: int) -> bool:
    """Whether one run packed some of the files, to this target, and had the choice of the rest."""
    packed = [file for file in files if file.tags.get(PACKED, "").endswith(f"/{target_bytes}")]
    then = min((_modified(file) for file in packed), default=-1)
    others = [file for file in files if file not in packed]
    return len({file.tags[PACKED] for file in packed}) == 1 and all(_modified(file) <= then for file in others)


def _modified(file: DataFile) -> int:
    told = file.raw.get("modificationTime")
    return told if isinstance(told, int) else 0


def _outputs(files: Bin, target_bytes: int) -> int:
    size = total_live_bytes(files)
    return file_count(size, target_bytes) if size > SPLIT_SHARE * target_bytes else 1


def _work(unit: DeltaUnit, bins: Sequence[Bin], gone: Bin, *, sizes: Sizes, intent: Intent) -> Work:
    counts = [_outputs(some, sizes.target) for some in bins]
    # Files without rows go along with the first bin, or alone.
    parts = [(*some, *(gone if number == 0 else ())) for number, some in enumerate(bins or [()])]
    tasks = [
        PackTask(replace(unit, files=part), count, sizes.target, intent)
        for part, count in zip(parts, counts or [0], strict=True)
    ]
    inputs = tuple(file for part in parts for file in part)
    read = tuple(file for some in bins for file in some)
    return Work(
        reason=_reason(read, gone, len(bins), sizes=sizes),
        input_files=tuple(file.name for file in inputs),
        input_bytes=sum(file.bytes for file in inputs),
        estimate=Estimate(
            sum(file.bytes for file in read), total_live_bytes(read), sum(counts), _benefit(inputs, sum(counts))
        ),
        tasks=tuple(tasks),
    )


def _reason(read: Bin, gone: Bin, bins: int, *, sizes: Sizes) -> str:
    worn = [file for file in read if sizes.is_worn(file)]
    small = [file for file in read if file.bytes < sizes.small and not sizes.is_worn(file)]
    others = len(read) - len(worn) - len(small)
    said = [
        (len(small), f"{count(len(small))} below {sizes.small:,} bytes"),
        (len(worn), f"{count(len(worn))} with more than {sizes.max_deleted_ratio:.0%} of rows deleted"),
        (others, f"{count(others)} more as all were asked for"),
        (len(gone), f"{count(len(gone))} without rows, only removed"),
        (bins, f"{bins} bin{'s' if bins != 1 else ''} of up to {sizes.target:,} bytes"),
    ]
    return "; ".join(sentence for held, sentence in said if held)


def count(files: int) -> str:
    return f"{files} file{'s' if files != 1 else ''}"


def _benefit(inputs: Bin, after: int) -> str:
    deleted, vectors = sum(file.deleted_rows for file in inputs), sum(file.vector is not None for file in inputs)
    fewer = len(inputs) - after
    said = [
        (fewer > 0, f"{count(fewer)} fewer"),
        (fewer < 0, f"{count(-fewer)} more, each near the target"),
        (vectors > 0, f"{deleted:,} deleted rows and {vectors} deletion vector{'s' if vectors != 1 else ''} purged"),
    ]
    return ", ".join(sentence for holds, sentence in said if holds)
