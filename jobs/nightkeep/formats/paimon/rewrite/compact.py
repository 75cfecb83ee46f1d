"""A bucket's runs -> the compaction of a table without deletion vectors. The rule of `optimize` for tables with keys.

What a dedicated compaction job of Paimon does: UniversalCompaction, or a full compaction. Readers merge all levels
before and after. A pick that leaves older rows below must not change what they are merged to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.data.write import wall_clock_ms
from nightkeep.formats.paimon.metadata.changelog import (
    FULL_COMPACTION,
    LOOKUP,
    PRODUCER,
    changelog_rules,
    lowest_level_counts,
    producer_of,
)
from nightkeep.formats.paimon.metadata.merge_engine import (
    Function,
    MergeEngine,
    MergeRules,
    merge_rules,
    sequence_fields,
)
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, has_vectors, option_bool
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, PaimonSnapshot
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.rewrite.expired_rows import expiry_clock, may_expire
from nightkeep.formats.paimon.rewrite.levels import (
    CompactionPick,
    CompactionRules,
    drops_retracts,
    max_level,
    pick,
    pick_full,
    sorted_runs,
    target_file_bytes,
)
from nightkeep.formats.paimon.rewrite.merged_size import merged_size
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask
from nightkeep.formats.paimon.rewrite.steps import Step, StepKind, sections, steps
from nightkeep.model import Estimate, Request
from nightkeep.model.counted import counted
from nightkeep.protocol import Work

_INEXACT = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
_IN_GROUPS = frozenset(
    {
        Function.LAST_VALUE,
        Function.MAX,
        Function.MIN,
        Function.BOOL_AND,
        Function.BOOL_OR,
        Function.SUM,
        Function.SEQUENCE,
        Function.OF_GROUP,
    }
)
"""Functions in a sequence group for which new rows may be merged with each other first, and with older ones later."""
_IN_PARTS = _IN_GROUPS | frozenset(
    {Function.LAST_NON_NULL_VALUE, Function.FIRST_VALUE, Function.FIRST_NON_NULL_VALUE, Function.KEY}
)
"""The same without a group."""
_LOOKED_UP = "; full rows of replaced keys are looked up (changelog-producer lookup)"
_ENGINES = (MergeEngine.DEDUPLICATE, MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION)
_PRODUCERS = ("none", "input", FULL_COMPACTION, LOOKUP)


def compact_levels(snapshot: PaimonSnapshot, bucket: Bucket, request: Request) -> Work[UpgradeTask] | None:
    """UniversalCompaction for one bucket, or the full compaction that `request.full` asks for."""
    schema = snapshot.schema
    rules = CompactionRules.of(schema, now_ms=request.now_ms, target_bytes=request.target_bytes)
    # The pick compares with creation times of files, which are in local wall time.
    now_ms = wall_clock_ms(request.now_ms)
    expiring = may_expire(bucket, request.now_ms)
    picked = pick_full(bucket, rules, expiring) if request.full else pick(bucket, rules, now_ms=now_ms)
    if picked is None:
        return None
    picked = replace(picked, expiring=expiring)
    todo = _steps(bucket, picked, rules)
    # A row that expires above older rows of its key would bring one of them back.
    why = "rows expire" if expiring else _not_in_parts(bucket, picked, todo, looks_up=rules.looks_up)
    if why:
        picked = _with_every_run(bucket, picked, rules, why=why)
        todo = _steps(bucket, picked, rules)
    if not todo:
        return None
    target = request.target_bytes or target_file_bytes(schema)
    sized = replace(bucket, task_bytes=request.task_bytes)
    ends = drops_retracts(bucket, picked, rules)
    task = UpgradeTask(
        sized,
        todo,
        picked.output_level,
        target,
        values_needed=rules.looks_up,
        looks_up=rules.looks_up,
        marks=False,
        drops_retracts=ends,
        clock_ms=expiry_clock(snapshot, request),
    )
    return Work(
        reason=_reason(picked, todo, ends=ends) + (_LOOKED_UP if rules.looks_up else ""),
        input_files=tuple(file.name for file in picked.files),
        input_bytes=sum(file.bytes for file in picked.files),
        estimate=_estimate(bucket, picked, todo, target_bytes=target),
        tasks=(task,),
    )


def _steps(bucket: Bucket, picked: CompactionPick, rules: CompactionRules) -> tuple[Step, ...]:
    return steps(picked, rules, top=max_level(bucket.files, rules), key_types=_key_types(bucket))


def _key_types(bucket: Bucket) -> list[PaimonType]:
    schema = bucket.schemas.current
    return [field.type for field in schema.select(schema.trimmed_keys)]


def _with_every_run(bucket: Bucket, picked: CompactionPick, rules: CompactionRules, *, why: str) -> CompactionPick:
    files = tuple(file for run in sorted_runs(bucket.files) for file in run.files)
    reason = f"{picked.reason}, taken with all older runs: {why}"
    return replace(picked, files=files, output_level=max_level(bucket.files, rules), reason=reason)


def _not_in_parts(bucket: Bucket, picked: CompactionPick, todo: Sequence[Step], *, looks_up: bool) -> str | None:
    """Why the picked rows cannot be merged without the rows below them; None if they can.

    Paimon merges them all the same, and readers may then see other values. A row that a merge made of several does not
    state which of them was deleted, or came before a row below it.
    """
    schema = bucket.schemas.current
    rules, names = merge_rules(schema), {file.name for file in picked.files}
    below = [file for file in bucket.files if file.name not in names]
    types = _key_types(bucket)
    if looks_up:
        # Older rows are merged as well. A delete that stays has values that later merges begin with: none is proven.
        written = [file for step in todo if step.kind is StepKind.MERGE for file in step.files]
        holds_deletes = any(file.deletes_unknown_or_some for file in written)
        return "they hold deletes" if rules is not None and below and holds_deletes else None
    merged = [file for step in todo if step.kind is StepKind.MERGE for file in _overlapping(step.files, types)]
    if rules is None or not below or not merged:
        return None
    return next(_hindrances(schema, rules, merged, below), None)


def _overlapping(files: Sequence[PaimonDataFile], types: Sequence[PaimonType]) -> Iterator[PaimonDataFile]:
    for section in sections(files, types):
        if len(section) > 1:
            yield from (file for run in section for file in run)


def _hindrances(
    schema: PaimonSchema, rules: MergeRules, merged: Sequence[PaimonDataFile], below: Sequence[PaimonDataFile]
) -> Iterator[str]:
    if sequence_fields(schema):
        yield "a newer file may have rows that are older by sequence.field"
    if min(file.min_sequence for file in merged) <= max(file.max_sequence for file in below):
        yield "their sequence numbers overlap"
    if any(file.deletes_unknown_or_some for file in merged) and not _can_take_back(rules):
        yield "they hold deletes"
    for name, rule in rules.fields.items():
        if rule.function not in (_IN_PARTS if rule.group is None else _IN_GROUPS):
            yield f"function {rule.function} of column {name} needs all rows in order"
        if rule.function is Function.SUM and schema.field(name).type.root in _INEXACT:
            yield f"the sum of column {name} depends on the order of additions"


def _can_take_back(rules: MergeRules) -> bool:
    """Whether a retract has the same effect on older rows after it was merged with newer ones."""
    if rules.removes_on_delete:
        return False
    return all(
        rule.function in (Function.SUM, Function.KEY)
        or (rule.function is Function.LAST_VALUE and not rule.ignores_retracts)
        for rule in rules.fields.values()
    )


def _reason(picked: CompactionPick, todo: Sequence[Step], *, ends: bool) -> str:
    merged = sum(len(step.files) for step in todo if step.kind is StepKind.MERGE)
    kept = len(todo) - sum(step.kind is StepKind.MERGE for step in todo)
    done = (
        f"{picked.reason}; to level {picked.output_level}: {counted(merged, 'file')} merged, {kept} upgraded in place"
    )
    return f"{done}; deletes {'end here' if ends else 'stay, as older rows may be below'}"


def _estimate(bucket: Bucket, picked: CompactionPick, todo: Sequence[Step], *, target_bytes: int) -> Estimate:
    merged = [file for step in todo if step.kind is StepKind.MERGE for file in step.files]
    names = {file.name for file in picked.files}
    before = sorted_runs(bucket.files)
    after = 1 + len(sorted_runs([file for file in bucket.files if file.name not in names]))
    read = sum(file.bytes for file in merged)
    count, written = merged_size(bucket, todo, key_types=_key_types(bucket), target_bytes=target_bytes)
    return Estimate(
        read_bytes=read,
        written_bytes=written + _changelog_bytes(bucket, picked),
        files_after=len(picked.files) - len(merged) + count,
        more_files=count - len(merged),
        more_bytes=written - read,
        benefit=f"{len(before)} sorted runs of {sum(run.bytes for run in before):,} bytes become {after}",
    )


def _changelog_bytes(bucket: Bucket, picked: CompactionPick) -> int:
    """About the size of the changelog: at most two rows for each new one."""
    rules = changelog_rules(bucket.schemas.current)
    if rules is None or picked.output_level < rules.lowest_known:
        return 0
    return 2 * sum(file.bytes for file in picked.files if file.level < rules.lowest_known)


def refuse_vectors(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable for a table with vectors, and for one that had vectors which readers no longer apply."""
    if has_vectors(snapshot.schema):
        advice = "batch readers of such a table skip level 0; use upgrade, which marks replaced rows"
        raise _refused(snapshot, "option deletion-vectors.enabled = true", advice)
    left = next((unit for unit in snapshot.units if unit.index_records), None)
    if left is not None:
        feature = f"{left.key} has deletion vectors, and option deletion-vectors.enabled is not true"
        raise _refused(snapshot, feature, "compact the table once with the engine that switched them off")


def refuse_other_compactions(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable for tables whose compaction does more than merge files, and for a clustering."""
    schema = snapshot.schema
    engine = schema.options.get("merge-engine", str(MergeEngine.DEDUPLICATE)).lower()
    producer = producer_of(schema)
    if engine not in _ENGINES:
        advice = f"{', '.join(_ENGINES)} are, and upgrade is for first-row"
        raise _refused(snapshot, f"option merge-engine = {engine} is not handled", advice)
    if producer not in _PRODUCERS:
        advice = "compacting without writing that changelog would lose changes for streaming readers"
        raise _refused(snapshot, f"option changelog-producer = {producer} is not handled", advice)
    _refuse_higher_levels(snapshot)
    _refuse_lone_retracts(snapshot)
    if option_bool(schema, "force-lookup"):
        raise _refused(snapshot, "option force-lookup = true is not handled", "files are merged without lookups")
    if request.clustering is not None:
        advice = "leave out --zorder and --hilbert"
        raise _refused(snapshot, "files of a table with a primary key are sorted by key", advice)


def _refuse_higher_levels(snapshot: PaimonSnapshot) -> None:
    """Raises RefusedTable for levels that num-levels leaves out now. Java's full compactions, which write the highest
    level, report nothing then, and its streaming readers begin with no row of that level."""
    rules = changelog_rules(snapshot.schema) if producer_of(snapshot.schema) == FULL_COMPACTION else None
    levels = [file.level for unit in snapshot.units for file in unit.files]
    if rules is not None and max(levels, default=0) > rules.lowest_known:
        feature = f"files on level {max(levels)}, above the top level {rules.lowest_known}, are not handled"
        raise _refused(snapshot, feature, f"with {PRODUCER} = {FULL_COMPACTION} readers know the top level only")


def _refuse_lone_retracts(snapshot: PaimonSnapshot) -> None:
    """Raises RefusedTable for retracts of an aggregation that looks up. Of one that meets no row, readers see nothing;
    Java's compaction makes a row of it, which they see from then on."""
    rules = merge_rules(snapshot.schema)
    if rules is None or rules.engine is not MergeEngine.AGGREGATION or rules.removes_on_delete:
        return
    if not lowest_level_counts(snapshot.schema):
        return
    fresh = ((unit, file) for unit in snapshot.units for file in unit.files if file.level == 0)
    for unit, file in fresh:
        if file.deletes_unknown_or_some:
            feature = f"{unit.path(file)} holds retracts of an aggregation that looks up, which is not handled"
            raise _refused(snapshot, feature, "set aggregation.remove-record-on-delete, or compact it with its engine")


def _refused(snapshot: PaimonSnapshot, feature: str, advice: str) -> RefusedTable:
    return RefusedTable(snapshot.table.name, feature, advice)
