"""One bucket's task: afterwards a reader through vectors sees what a merge of the old files showed."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from pyroaring import BitMap64
from tests.formats.paimon.made_bucket import INT, RUN, MadeBucket, Row, buckets
from tests.support.examples import examples

from nightkeep.formats.paimon.data import file_output
from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.deletes.bucket_vectors import read_vectors
from nightkeep.formats.paimon.gate.file_audit import file_faults
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.snapshot import Bucket, data_file
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.formats.paimon.rewrite.levels import CompactionRules, max_level, pick_full
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask, rewrite
from nightkeep.formats.paimon.rewrite.steps import Step, StepKind, steps
from nightkeep.model import Rewrite

BY_VALUE = {"sequence.field": "v"}


def full_task(made: MadeBucket) -> UpgradeTask | None:
    """Everything to the top, as the planner would ask for it."""
    bucket, rules = made.bucket(), CompactionRules.of(made.schema, now_ms=0)
    found = pick_full(bucket, rules)
    if found is None:
        return None
    todo = steps(found, rules, top=max_level(bucket.files, rules), key_types=[INT])
    return UpgradeTask(bucket, todo, found.output_level, 1 << 20, values_needed=bool(made.options))


def lifting(made: MadeBucket, level: int) -> UpgradeTask:
    """Level 0 alone to `level`: what deeper levels hold of its keys is marked."""
    bucket = made.bucket()
    lifted = tuple(file for file in bucket.files if file.level == 0)
    return UpgradeTask(bucket, (Step(StepKind.MERGE, lifted),), level, 1 << 20, values_needed=bool(made.options))


def after(task: UpgradeTask, done: Rewrite) -> Bucket:
    """The bucket that a commit of `done` makes."""
    edit = done.edit
    assert isinstance(edit, BucketEdit)
    gone = {record["_FILE_NAME"] for record in edit.removed}
    kept = [file for file in task.bucket.files if file.name not in gone]
    files = [*kept, *(data_file(record, [INT]) for record in edit.added)]
    if edit.index_record is None:
        return replace(task.bucket, files=tuple(files))
    index = edit.index_record
    return replace(task.bucket, files=tuple(files), vectors=vector_ranges(index), index_records=(index,))


def shown(made: MadeBucket, bucket: Bucket) -> Counter[tuple[int, str | None]]:
    """What a reader shows that skips level 0 and applies vectors."""
    vectors, rows = read_vectors(made.storage, bucket), Counter[tuple[int, str | None]]()
    for file in bucket.files:
        held = PaimonFileReader(made.storage, bucket, file).read(["k", "v"])
        pairs = zip(held.column("k").to_pylist(), held.column("v").to_pylist(), strict=True)
        gone = vectors.get(file.name, ())
        rows.update(pair for at, pair in enumerate(pairs) if file.level > 0 and at not in gone)
    return rows


def merged(made: MadeBucket) -> Counter[tuple[int, str | None]]:
    newest = made.merged(by_value=bool(made.options))
    return Counter((key, made.rows[name][at].value) for key, (name, at) in newest.items())


def require_same(made: MadeBucket, task: UpgradeTask) -> Rewrite:
    done = rewrite(made.storage, task, RUN)
    bucket = after(task, done)
    assert shown(made, bucket) == merged(made)
    assert not [file for file in bucket.files if file.level == 0]
    old = {file.name for file in task.bucket.files}
    assert not [fault for f in bucket.files if f.name not in old for fault in file_faults(made.storage, bucket, f)]
    # A vector of a file that is gone would stay for ever.
    assert read_vectors(made.storage, bucket).keys() <= {file.name for file in bucket.files}
    return done


@settings(max_examples=examples(25))
@given(buckets())
def test_a_full_compaction_shows_what_a_merge_did(made: MadeBucket) -> None:
    task = full_task(made)
    assert task is not None
    require_same(made, task)


@settings(max_examples=examples(25))
@given(buckets())
def test_upgraded_rows_hide_what_they_replace(made: MadeBucket) -> None:
    done = require_same(made, lifting(made, 3))
    fresh = {row.key for file in made.files if file.level == 0 for row in made.rows[file.name]}
    upper = [made.live(file.name) for file in made.files if file.level > 0]
    assert done.rows_marked == sum(row.key in fresh for rows in upper for _, row in rows)


@settings(max_examples=examples(25))
@given(buckets(options=BY_VALUE))
def test_with_a_sequence_field_an_older_row_may_stay(made: MadeBucket) -> None:
    require_same(made, lifting(made, 3))


def test_a_file_without_retracts_changes_its_level_only() -> None:
    made = MadeBucket()
    lower = made.add(5, [Row(1, "old"), Row(2, "old")])
    lifted = made.add(0, [Row(2, "new", 9), Row(3, "new", 9)])
    bucket = made.bucket()
    task = UpgradeTask(bucket, (Step(StepKind.UPGRADE, (bucket.files[0],)),), 4, 1 << 20, values_needed=False)
    done = require_same(made, task)
    assert isinstance(done.edit, BucketEdit)
    assert [(r["_FILE_NAME"], r["_LEVEL"]) for r in done.edit.added] == [(lifted, 4)]
    assert (done.rows_written, done.rows_marked) == (0, 1)
    assert read_vectors(made.storage, after(task, done)) == {lower: BitMap64([1])}


def test_a_file_whose_writer_reported_no_retracts_is_rewritten_for_them() -> None:
    made = MadeBucket()
    made.add(5, [Row(1, "old")])
    made.add(0, [Row(1, None, 5, kind=3), Row(2, "new", 6)])
    bucket = made.bucket()
    task = UpgradeTask(bucket, (Step(StepKind.UPGRADE, (bucket.files[0],)),), 4, 1 << 20, values_needed=False)
    done = require_same(made, task)
    assert done.rows_written == 1


def test_of_two_upper_levels_the_lower_number_competes() -> None:
    """A key that a lower level still shows as well is older there, whatever its sequence number says."""
    made = MadeBucket()
    made.add(5, [Row(1, "five", 50)])
    made.add(4, [Row(1, "four", 40)])
    made.add(0, [Row(2, "new", 60)])
    task = full_task(made)
    assert task is not None
    done = rewrite(made.storage, task, RUN)
    assert shown(made, after(task, done)) == Counter({(1, "four"): 1, (2, "new"): 1})


def test_of_equal_sequence_numbers_the_newest_file_wins() -> None:
    made = MadeBucket()
    made.add(5, [Row(1, "old", 7)])
    made.add(0, [Row(1, "newer", 7), Row(2, "newer", 6)])
    made.add(0, [Row(1, "newest", 7), Row(3, "newest", 8)])
    task = full_task(made)
    assert task is not None
    done = rewrite(made.storage, task, RUN)
    assert shown(made, after(task, done)) == Counter({(1, "newest"): 1, (2, "newer"): 1, (3, "newest"): 1})


def test_a_new_file_is_not_older_than_all_that_were_there() -> None:
    """The clock of their writer is ahead of ours."""
    made, ahead_ms = MadeBucket(), RUN.now_ms + 10**9
    made.add(5, [Row(1)])
    made.add(0, [Row(2, sequence=3)])
    made.files = [replace(file, created_ms=ahead_ms + at) for at, file in enumerate(made.files)]
    task = full_task(made)
    assert task is not None
    edit = rewrite(made.storage, task, RUN).edit
    assert isinstance(edit, BucketEdit)
    assert {record["_CREATION_TIME"] for record in edit.added} == {ahead_ms}


def test_nothing_to_mark_writes_no_vector_file() -> None:
    made = MadeBucket()
    made.add(5, [Row(1)])
    made.add(0, [Row(2, sequence=3)])
    done = require_same(made, lifting(made, 4))
    assert isinstance(done.edit, BucketEdit) and done.edit.index_record is None
    assert all(name.startswith("bucket-0/data-") for name in done.outputs)


def test_expired_rows_go_from_files_that_stay_and_from_those_that_are_upgraded_or_merged() -> None:
    """The key is the time as well: what is below 5 has expired. A vector hides row 3 already."""
    made = MadeBucket({"record-level.expire-time": "10 s", "record-level.time-field": "k"})
    low = made.add(5, [Row(1), Row(7)])
    middle = made.add(3, [Row(2), Row(3), Row(8)], hidden=[1])
    upper = made.add(1, [Row(4), Row(9)])
    lifted = made.add(0, [Row(5, sequence=9)])
    merged_name = made.add(0, [Row(0, sequence=10), Row(6, sequence=10)])
    files = {file.name: file for file in made.bucket().files}
    todo = (Step(StepKind.UPGRADE, (files[lifted],)), Step(StepKind.MERGE, (files[merged_name],)))
    task = UpgradeTask(made.bucket(), todo, 1, 1 << 20, values_needed=False, clock_ms=15_999)
    done = rewrite(made.storage, task, RUN)
    assert shown(made, after(task, done)) == Counter({(key, None): 1 for key in (5, 6, 7, 8, 9)})
    vectors = read_vectors(made.storage, after(task, done))
    assert vectors == {low: BitMap64([0]), middle: BitMap64([0, 1]), upper: BitMap64([0])}
    assert done.rows_expired == 4


def test_an_expired_row_goes_from_a_file_that_only_changes_its_level() -> None:
    made = MadeBucket({"record-level.expire-time": "10 s", "record-level.time-field": "k"})
    lifted = made.add(0, [Row(4), Row(5)])
    task = UpgradeTask(
        made.bucket(), (Step(StepKind.UPGRADE, made.bucket().files),), 4, 1 << 20, values_needed=False, clock_ms=15_000
    )
    assert read_vectors(made.storage, after(task, rewrite(made.storage, task, RUN))) == {lifted: BitMap64([0])}


@pytest.mark.parametrize("group_rows", [1, 3])
def test_small_row_groups_and_targets_change_nothing_but_files(
    group_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_output, "ROW_GROUP_ROWS", group_rows)
    made = MadeBucket()
    made.add(5, [Row(key, f"old {key}") for key in range(0, 20, 2)])
    made.add(0, [Row(key, f"new {key}", 20 + key) for key in range(0, 20, 3)])
    task = full_task(made)
    assert task is not None
    done = require_same(made, replace(task, target_bytes=1))
    assert len(done.outputs) > 1
