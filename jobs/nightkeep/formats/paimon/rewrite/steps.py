"""Pick -> steps: which of its files are merged, and which only change their level. Pure, metadata only.

Follows Paimon Java 2.0.0: MergeTreeCompactTask, IntervalPartition and LookupMergeTreeCompactRewriter.upgradeStrategy
(C/mergetree/compact).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from nightkeep.formats.paimon.metadata.binary_row import SortKey, sort_key
from nightkeep.formats.paimon.metadata.snapshot import PaimonDataFile
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.formats.paimon.rewrite.levels import CompactionPick, CompactionRules


class StepKind(Enum):
    """What happens to a step's files."""

    MERGE = "merge and rewrite"
    UPGRADE = "upgrade in place"
    """Only the level changes. A level-0 file is still read: its keys mark the rows they replace below. A file that
    turns out to hold retracts is rewritten, because deleteRowCount of some writers is always 0.
    """


@dataclass(frozen=True, slots=True)
class Step:
    kind: StepKind
    files: tuple[PaimonDataFile, ...]


def steps(
    pick: CompactionPick, rules: CompactionRules, *, top: int, key_types: Sequence[PaimonType]
) -> tuple[Step, ...]:
    """What MergeTreeCompactTask does with each file, in key order. Files that do not change are left out."""
    if pick.one_by_one:
        return tuple(Step(StepKind.MERGE, (file,)) for file in pick.files)
    result: list[Step] = []
    waiting: list[tuple[tuple[PaimonDataFile, ...], ...]] = []
    for section in sections(pick.files, key_types):
        if len(section) > 1:
            waiting.append(section)
            continue
        for file in section[0]:
            if file.bytes < rules.small_file_bytes:
                waiting.append(((file,),))
            else:
                result += _flush(waiting, pick, rules, top=top)
                result += _lift(file, pick, rules, top=top)
                waiting = []
    return tuple(result + _flush(waiting, pick, rules, top=top))


def _flush(
    waiting: Sequence[tuple[tuple[PaimonDataFile, ...], ...]], pick: CompactionPick, rules: CompactionRules, *, top: int
) -> list[Step]:
    if not waiting:
        return []
    if len(waiting) == 1 and len(waiting[0]) == 1:
        return [step for file in waiting[0][0] for step in _lift(file, pick, rules, top=top)]
    files = tuple(file for section in waiting for run in section for file in run)
    return [Step(StepKind.MERGE, files)]


def _lift(file: PaimonDataFile, pick: CompactionPick, rules: CompactionRules, *, top: int) -> list[Step]:
    if (pick.output_level == top and file.deletes_unknown_or_some) or file.name in pick.expiring:
        return [Step(StepKind.MERGE, (file,))]
    if file.level == pick.output_level:
        return []
    return [Step(StepKind.MERGE if _must_rewrite(file, pick, rules, top=top) else StepKind.UPGRADE, (file,))]


def _must_rewrite(file: PaimonDataFile, pick: CompactionPick, rules: CompactionRules, *, top: int) -> bool:
    # Without a lookup an upgrade is a new level and nothing else (AbstractCompactRewriter.upgrade).
    if file.level != 0 or not rules.looks_up:
        return False
    formats = rules.formats + rules.formats[-1:] * (pick.output_level + 1 - len(rules.formats))
    if formats[0] != formats[pick.output_level] or (rules.marks and file.deletes_unknown_or_some):
        return True
    # Where an older row may win or be merged, the result is written here.
    return pick.output_level != top and rules.values_needed


def sections(
    files: Sequence[PaimonDataFile], key_types: Sequence[PaimonType]
) -> tuple[tuple[tuple[PaimonDataFile, ...], ...], ...]:
    """Key-disjoint sections, each of as few sorted runs as possible (IntervalPartition.java)."""
    low = {file.name: sort_key(file.min_key, key_types) for file in files}
    high = {file.name: sort_key(file.max_key, key_types) for file in files}
    groups: list[list[PaimonDataFile]] = []
    bound = None
    for file in sorted(files, key=lambda f: (low[f.name], high[f.name])):
        if bound is None or low[file.name] > bound:
            groups.append([])
            bound = high[file.name]
        groups[-1].append(file)
        bound = max(bound, high[file.name])
    return tuple(_section_runs(section, low, high) for section in groups)


def _section_runs(
    files: Sequence[PaimonDataFile], low: dict[str, SortKey], high: dict[str, SortKey]
) -> tuple[tuple[PaimonDataFile, ...], ...]:
    runs: list[list[PaimonDataFile]] = []
    ends: list[tuple[SortKey, int]] = []
    for file in files:
        if ends and low[file.name] > ends[0][0]:
            _, number = heapq.heappop(ends)
            runs[number].append(file)
        else:
            number = len(runs)
            runs.append([file])
        heapq.heappush(ends, (high[file.name], number))
    return tuple(tuple(run) for run in runs)
