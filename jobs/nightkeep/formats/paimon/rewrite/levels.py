"""Bucket -> pick: the sorted runs that a compaction takes, and its output level. Pure, metadata only.

Follows Paimon Java 2.0.0: ForceUpLevel0Compaction, UniversalCompaction, EarlyFullCompaction (C/mergetree/compact), and
MergeTreeCompactManagerFactory, which chooses between the first two.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from nightkeep.formats.paimon.metadata.changelog import looks_up
from nightkeep.formats.paimon.metadata.merge_engine import merge_rules, sequence_fields
from nightkeep.formats.paimon.metadata.schema import (
    PaimonSchema,
    has_vectors,
    keeps_first_row,
    level_formats,
    option_bool,
    option_bytes,
    option_int,
    option_millis,
)
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile

DEFAULT_TARGET_BYTES = 128 << 20
"""Default target-file-size of a primary-key table (CoreOptions.targetFileSize)."""


@dataclass(frozen=True, slots=True)
class SortedRun:
    """A sorted run: one level-0 file, or all files of one level >= 1."""

    level: int
    files: tuple[PaimonDataFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class CompactionPick:
    """The files to compact and their output level. `one_by_one`: each is rewritten alone (FileRewriteCompactTask).

    `expiring` are names of files that may hold expired rows: they are rewritten, not upgraded.
    """

    files: tuple[PaimonDataFile, ...]
    output_level: int
    reason: str
    one_by_one: bool = False
    expiring: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """A table's compaction options with their defaults applied. Sizes in bytes, times in milliseconds.

    `looks_up`: rows of level 0 are looked up below the output level. `marks`: what they replace there is marked in
    vectors. `upgrades_level0`: level 0 is compacted even if no
    run is due.
    """

    looks_up: bool
    marks: bool
    upgrades_level0: bool
    trigger: int
    num_levels: int
    max_amplification_percent: int
    size_ratio_percent: int
    gentle_interval: int | None
    small_file_bytes: int
    full_interval_ms: int | None
    total_size_threshold: int | None
    incremental_size_threshold: int | None
    values_needed: bool
    """Whether an old row may win or be merged, so that an upgraded level-0 file is written anew."""
    formats: tuple[str, ...]

    @staticmethod
    def of(schema: PaimonSchema, *, now_ms: int, target_bytes: int | None = None) -> CompactionRules:
        option = schema.options.get
        trigger = option_int(schema, "num-sorted-run.compaction-trigger", 5)
        num_levels = option_int(schema, "num-levels", trigger + 1)
        target = target_bytes or target_file_bytes(schema)
        lookup = looks_up(schema)
        return CompactionRules(
            looks_up=lookup,
            marks=has_vectors(schema),
            upgrades_level0=lookup or option_bool(schema, "compaction.force-up-level-0"),
            trigger=trigger,
            num_levels=num_levels,
            max_amplification_percent=option_int(schema, "compaction.max-size-amplification-percent", 200),
            size_ratio_percent=option_int(schema, "compaction.size-ratio", 1) + _offpeak_percent(schema, now_ms),
            gentle_interval=_gentle_interval(schema, trigger) if lookup else None,
            small_file_bytes=int(target * float(option("compaction.small-file-ratio", "0.7"))),
            full_interval_ms=option_millis(schema, "compaction.optimization-interval"),
            total_size_threshold=option_bytes(schema, "compaction.total-size-threshold"),
            incremental_size_threshold=option_bytes(schema, "compaction.incremental-size-threshold"),
            values_needed=bool(sequence_fields(schema)) or merge_rules(schema) is not None or keeps_first_row(schema),
            formats=level_formats(schema, num_levels),
        )


def target_file_bytes(schema: PaimonSchema) -> int:
    return option_bytes(schema, "target-file-size", DEFAULT_TARGET_BYTES) or DEFAULT_TARGET_BYTES


def _gentle_interval(schema: PaimonSchema, trigger: int) -> int | None:
    if schema.options.get("lookup-compact", "radical").lower() != "gentle":
        return None
    return max(trigger, option_int(schema, "lookup-compact.max-interval", 2 * trigger))


def _offpeak_percent(schema: PaimonSchema, now_ms: int) -> int:
    start, end = (option_int(schema, f"compaction.offpeak.{side}.hour", -1) for side in ("start", "end"))
    if -1 in (start, end) or start == end:
        return 0
    hour = datetime.fromtimestamp(now_ms / 1000).hour
    inside = start <= hour < end if start <= end else hour < end or start <= hour
    return option_int(schema, "compaction.offpeak-ratio", 0) if inside else 0


def sorted_runs(files: Sequence[PaimonDataFile]) -> tuple[SortedRun, ...]:
    """Level-0 files newest first, then levels 1.. in order (Levels.java)."""
    newest_first = sorted(
        (file for file in files if file.level == 0),
        key=lambda f: (-f.max_sequence, f.min_sequence, f.created_ms, f.name),
    )
    levels = sorted({file.level for file in files} - {0})
    upper = (SortedRun(level, tuple(f for f in files if f.level == level)) for level in levels)
    return (*(SortedRun(0, (file,)) for file in newest_first), *upper)


def max_level(files: Sequence[PaimonDataFile], rules: CompactionRules) -> int:
    return max(rules.num_levels, 1 + max((file.level for file in files), default=-1)) - 1


def pick(bucket: Bucket, rules: CompactionRules, *, now_ms: int) -> CompactionPick | None:
    """The strategy's pick, then the filter of MergeTreeCompactManager.triggerCompaction."""
    runs, top = sorted_runs(bucket.files), max_level(bucket.files, rules)
    picked = _universal(runs, top, rules, now_ms=now_ms)
    if picked is None and rules.upgrades_level0:
        picked = _force_level0(runs, top, rules)
    if picked is None or (len(picked.files) == 1 and picked.files[0].level == picked.output_level):
        return None
    return picked


def pick_full(bucket: Bucket, rules: CompactionRules, expiring: Set[str] = frozenset()) -> CompactionPick | None:
    """CompactStrategy.pickFullCompaction: all files to the top level; if all are there, only files with a vector and
    those of `expiring`."""
    runs, top = sorted_runs(bucket.files), max_level(bucket.files, rules)
    if not runs:
        return None
    if len(runs) == 1 and runs[0].level == top:
        marked = {vector.data_file for vector in bucket.vectors}
        files = tuple(file for file in runs[0].files if file.name in marked | expiring)
        old = " or expired rows" if expiring else ""
        reason = f"full compaction of {len(files)} top-level files with deletion vectors{old}"
        return CompactionPick(files, top, reason, one_by_one=True) if files else None
    return _unit(runs, len(runs), top, reason="full compaction asked for")


def drops_retracts(bucket: Bucket, picked: CompactionPick, rules: CompactionRules) -> bool:
    """Whether retracts may go: there is no older row for them to delete (MergeTreeCompactManager, dropDelete)."""
    deepest = max((file.level for file in bucket.files), default=0)
    return picked.output_level != 0 and (rules.marks or picked.output_level >= deepest)


def _universal(runs: Sequence[SortedRun], top: int, rules: CompactionRules, *, now_ms: int) -> CompactionPick | None:
    early = _early_full(runs, top, rules, now_ms=now_ms)
    if early:
        return _unit(runs, len(runs), top, reason=early)
    if len(runs) < rules.trigger:
        return None
    newer, oldest = sum(run.bytes for run in runs[:-1]), runs[-1].bytes
    if newer * 100 > rules.max_amplification_percent * oldest:
        reason = f"size amplification: {newer:,} bytes above a last run of {oldest:,}"
        return _unit(runs, len(runs), top, reason=reason)
    count = _extended(runs, 1, rules)
    if count > 1:
        return _unit(runs, count, top, reason=f"size ratio: {count} of {len(runs)} runs of like size")
    if len(runs) > rules.trigger:
        count = _extended(runs, len(runs) - rules.trigger + 1, rules)
        return _unit(runs, count, top, reason=f"{len(runs)} sorted runs, more than {rules.trigger}")
    return None


def _early_full(runs: Sequence[SortedRun], top: int, rules: CompactionRules, *, now_ms: int) -> str | None:
    if len(runs) == 1:
        return None
    if rules.full_interval_ms is not None:
        last = max((f.created_ms for run in runs if run.level == top for f in run.files), default=None)
        if last is None or now_ms - last > rules.full_interval_ms:
            return "full compaction is due (compaction.optimization-interval)"
    total = sum(run.bytes for run in runs)
    if rules.total_size_threshold is not None and total < rules.total_size_threshold:
        return f"bucket of {total:,} bytes is below compaction.total-size-threshold"
    above = sum(run.bytes for run in runs if run.level != top)
    if rules.incremental_size_threshold is not None and above > rules.incremental_size_threshold:
        return f"{above:,} bytes above the top level exceed compaction.incremental-size-threshold"
    return None


def _force_level0(runs: Sequence[SortedRun], top: int, rules: CompactionRules) -> CompactionPick | None:
    level0 = sum(run.level == 0 for run in runs)
    # A writer counts its flushes since the last forced pick. Each leaves a level-0 file, so a job counts those.
    if level0 == 0 or (rules.gentle_interval is not None and level0 < rules.gentle_interval):
        return None
    count = level0
    # Level 1 is included, because the output level would be 0 otherwise. Its size counts in the ratio below.
    if count < len(runs) and runs[count].level == 1:
        count += 1
    return _unit(runs, _extended(runs, count, rules), top, reason=f"{level0} level-0 files to upgrade")


def _extended(runs: Sequence[SortedRun], count: int, rules: CompactionRules) -> int:
    """The number of first runs to take: `count`, and more while their total is about as large as the next run."""
    size = sum(run.bytes for run in runs[:count])
    while count < len(runs) and size * (100.0 + rules.size_ratio_percent) / 100.0 >= runs[count].bytes:
        size += runs[count].bytes
        count += 1
    return count


def _unit(runs: Sequence[SortedRun], count: int, top: int, *, reason: str) -> CompactionPick:
    """UniversalCompaction.createUnit: the output is the level below the next run, but never level 0."""
    output = top if count == len(runs) else max(0, runs[count].level - 1)
    while output == 0 and count < len(runs):
        output = runs[count].level
        count += 1
    if count == len(runs):
        output = top
    return CompactionPick(tuple(f for run in runs[:count] for f in run.files), output, reason)
