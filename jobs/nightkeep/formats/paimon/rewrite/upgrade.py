"""A bucket's runs -> the work that upgrades its level-0 files, with reason and cost. The rule of `upgrade`.

Batch readers of a table with deletion vectors skip level 0, so that rows there are invisible until an upgrade. It does
what Paimon's LookupMergeTreeCompactRewriter does: the picked files of level 0, and those of the levels above the output
level, become files of the output level, and each row of a deeper level with one of their keys is marked in a deletion
vector.

Invariant, before and after, for each key of the bucket: of the files above level 0, at most one shows a row of the key
when read through its vector. The merge of all files on read shows the same rows before and after; readers that skip
level 0 show these rows after, and older ones before. Sequence numbers decide between rows of one key, so upgraded rows
keep theirs. A delete stays as a row until the output level is the deepest one with rows, where nothing is left that
it could hide.

The work writes new data files and vectors and changes none: a crash before the commit leaves files that no snapshot
names. A writer that meanwhile adds level-0 files is no rival, as its rows are newer and stay at level 0. Another
compaction of the bucket is one: the commit then drops the bucket, whose files the next run plans again.
"""

from __future__ import annotations

from dataclasses import replace

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.data.write import wall_clock_ms
from nightkeep.formats.paimon.metadata.changelog import changelog_rules
from nightkeep.formats.paimon.metadata.merge_engine import merge_rules, sequence_fields
from nightkeep.formats.paimon.metadata.schema import (
    PaimonSchema,
    hides_level0,
    keeps_first_row,
    option_bool,
    skips_level0,
)
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.rewrite.expired_rows import expiry_clock, may_expire
from nightkeep.formats.paimon.rewrite.lag import lag
from nightkeep.formats.paimon.rewrite.levels import (
    CompactionPick,
    CompactionRules,
    max_level,
    pick,
    pick_full,
    target_file_bytes,
)
from nightkeep.formats.paimon.rewrite.merged_size import merged_size
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask
from nightkeep.formats.paimon.rewrite.steps import Step, StepKind, steps
from nightkeep.formats.paimon.rewrite.writer_clock import clock_shift
from nightkeep.model import Estimate, Request
from nightkeep.model.counted import counted
from nightkeep.protocol import Work


def upgrade_level0(snapshot: PaimonSnapshot, bucket: Bucket, request: Request) -> Work[UpgradeTask] | None:
    """ForceUpLevel0Compaction for one bucket, or the full compaction that `request.full` asks for."""
    schema = snapshot.schema
    rules = CompactionRules.of(schema, now_ms=request.now_ms, target_bytes=request.target_bytes)
    # The pick compares with creation times of files, which are in local wall time.
    now_ms = wall_clock_ms(request.now_ms)
    expiring = may_expire(bucket, request.now_ms)
    picked = pick_full(bucket, rules, expiring) if request.full else pick(bucket, rules, now_ms=now_ms)
    if picked is None:
        return None
    picked = replace(picked, expiring=expiring)
    top = max_level(bucket.files, rules)
    key_types = [field.type for field in schema.select(schema.trimmed_keys)]
    todo = steps(picked, rules, top=top, key_types=key_types)
    if not todo:
        return None
    target = request.target_bytes or target_file_bytes(schema)
    sized = replace(bucket, task_bytes=request.task_bytes)
    written = merged_size(bucket, todo, key_types=key_types, target_bytes=target)
    has_changelog = changelog_rules(schema) is not None
    # A lookup that gives the row before lets it compete as well (LookupChangelogMergeFunctionWrapper.getResult).
    values_needed = (rules.values_needed and not keeps_first_row(schema)) or has_changelog
    return Work(
        reason=_reason(picked, todo, schema),
        input_files=tuple(file.name for file in picked.files),
        input_bytes=sum(file.bytes for file in picked.files),
        estimate=_estimate(bucket, picked, todo, written, has_changelog=has_changelog),
        tasks=(
            UpgradeTask(
                sized, todo, picked.output_level, target, values_needed, clock_ms=expiry_clock(snapshot, request)
            ),
        ),
        measures=lag((bucket,), request.now_ms, shift_ms=clock_shift(snapshot)) if hides_level0(schema) else {},
    )


def file_indexes_go(snapshot: PaimonSnapshot) -> str | None:
    """The warning that new files have no file index. Readers accept that. An index is inside or beside a data file."""
    if not any(key.startswith("file-index.") for key in snapshot.schema.options):
        return None
    return "new files carry no file index (file-index.*): readers skip less until the engine rewrites them"


def _reason(pick: CompactionPick, todo: tuple[Step, ...], schema: PaimonSchema) -> str:
    merged = sum(len(step.files) for step in todo if step.kind is StepKind.MERGE)
    kept = len(todo) - sum(step.kind is StepKind.MERGE for step in todo)
    done = f"{pick.reason}; to level {pick.output_level}: {counted(merged, 'file')} merged, {kept} upgraded in place"
    return f"{done}; {_looked_up(schema)}"


def _looked_up(schema: PaimonSchema) -> str:
    """What is read of the rows that level-0 rows meet below, and why."""
    rules = merge_rules(schema)
    if rules is not None:
        return f"full rows of keys that are met again (merge-engine {rules.engine})"
    if sequence_fields(schema):
        return "full rows of replaced keys (sequence.field)"
    if changelog_rules(schema) is not None:
        return "full rows of replaced keys (changelog-producer lookup)"
    return (
        "keys only, as the first row stays (merge-engine first-row)" if keeps_first_row(schema) else "key-only lookup"
    )


def _estimate(
    bucket: Bucket, pick: CompactionPick, todo: tuple[Step, ...], written: tuple[int, int], *, has_changelog: bool
) -> Estimate:
    """`written`: new files and their bytes. `has_changelog`: a changelog is written, at most two rows for each of level
    0."""
    merged = [file for step in todo if step.kind is StepKind.MERGE for file in step.files]
    upgraded = sum(len(step.files) for step in todo if step.kind is StepKind.UPGRADE)
    deeper = sum(file.bytes for file in bucket.files if file.level > pick.output_level)
    level0 = sum(file.level == 0 for file in pick.files)
    hidden = sum(file.rows for file in pick.files if file.level == 0)
    changelog_bytes = 2 * sum(file.bytes for file in pick.files if file.level == 0) if has_changelog else 0
    hides = hides_level0(bucket.schemas.current)
    gain = "become visible to batch readers" if hides else "need no merge on read any more"
    count, size = written
    return Estimate(
        read_bytes=sum(file.bytes for file in pick.files) + deeper,
        written_bytes=size + changelog_bytes,
        files_after=len(pick.files) - len(merged) + count,
        more_files=count - len(merged),
        more_bytes=size - sum(file.bytes for file in merged),
        benefit=f"{counted(hidden, 'row')} of {counted(level0, 'level-0 file')} {gain}"
        if level0
        else f"{counted(upgraded + len(merged), 'file')} compacted",
    )


def refuse_append_table(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable for a table without primary key: only primary-key tables have sorted runs to upgrade."""
    schema = snapshot.schema
    if not schema.primary_keys:
        raise RefusedTable(snapshot.table.name, "a table without primary key has no levels", "use optimize")


def refuse_without_vectors(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable for a table whose readers merge level 0: an upgrade would keep deletes."""
    if not skips_level0(snapshot.schema):
        raise RefusedTable(
            snapshot.table.name,
            "option deletion-vectors.enabled is not true",
            "upgrade marks replaced rows in vectors; use optimize, or set deletion-vectors.enabled = true first",
        )


def refuse_modified_vectors(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable if vectors came later: a key may be on two levels until a full compaction."""
    if option_bool(snapshot.schema, "deletion-vectors.modifiable") and not request.full:
        raise RefusedTable(
            snapshot.table.name,
            "option deletion-vectors.modifiable = true: levels may still repeat keys",
            "run a full upgrade (--full)",
        )
