"""What an upgrade tells streaming readers: the twin follows a dict of rows from before to after, key by key."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from tests.formats.paimon.made_bucket import INT, RUN, MadeBucket, Row, buckets
from tests.formats.paimon.rewrite.test_rewrite import after, full_task, lifting
from tests.support.examples import examples

from nightkeep.formats.paimon.data import columns, file_output
from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.deletes.bucket_vectors import read_vectors
from nightkeep.formats.paimon.gate.changelog_audit import changelog_file_faults
from nightkeep.formats.paimon.gate.changes import expected, reported
from nightkeep.formats.paimon.metadata.changelog import changelog_rules
from nightkeep.formats.paimon.metadata.snapshot import Bucket, data_file
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask, rewrite
from nightkeep.formats.paimon.rewrite.steps import Step, StepKind
from nightkeep.kernels.fingerprint import fingerprint
from nightkeep.model import Rewrite

LOOKUP = {"changelog-producer": "lookup", "deletion-vectors.enabled": "true"}
SILENT = {**LOOKUP, "changelog-producer.row-deduplicate": "true"}
BY_VALUE = {**LOOKUP, "sequence.field": "v"}
INSERT, BEFORE, AFTER, DELETE = range(4)
Change = tuple[int, int, str | None, int]
"""Kind, key, value, sequence number."""


def shown(made: MadeBucket, bucket: Bucket) -> dict[int, tuple[str | None, int]]:
    """Key -> value and sequence number, as readers see it who skip level 0."""
    vectors, rows = read_vectors(made.storage, bucket), dict[int, tuple[str | None, int]]()
    for file in (file for file in bucket.files if file.level > 0):
        held = PaimonFileReader(made.storage, bucket, file).read(["k", "v", "_SEQUENCE_NUMBER"]).to_pylist()
        gone = vectors.get(file.name, BitMap64())
        for row in (row for at, row in enumerate(held) if at not in gone):
            assert row["k"] not in rows
            rows[row["k"]] = (row["v"], row["_SEQUENCE_NUMBER"])
    return rows


def twin(made: MadeBucket, task: UpgradeTask, done: Rewrite[Any]) -> list[Change]:
    """Changes of every key with a row on level 0, in key order."""
    old, new = shown(made, task.bucket), shown(made, after(task, done))
    silent = "changelog-producer.row-deduplicate" in made.options
    changes: list[Change] = []
    for key in sorted({row.key for file in made.files if file.level == 0 for row in made.rows[file.name]}):
        was, now = old.get(key), new.get(key)
        if was is not None and now is not None:
            pair: list[Change] = [(BEFORE, key, *was), (AFTER, key, *now)]
            changes += [] if silent and was[0] == now[0] else pair
        elif was is not None:
            changes.append((DELETE, key, *was))
        elif now is not None:
            changes.append((INSERT, key, *now))
    return changes


def written(made: MadeBucket, task: UpgradeTask, done: Rewrite[Any]) -> list[Change]:
    bucket = with_changelog(task, done)
    files = (PaimonFileReader(made.storage, bucket, file) for file in bucket.changelog)
    rows = [row for f in files for row in f.read(["_VALUE_KIND", "k", "v", "_SEQUENCE_NUMBER"]).to_pylist()]
    return [(row["_VALUE_KIND"], row["k"], row["v"], row["_SEQUENCE_NUMBER"]) for row in rows]


def with_changelog(task: UpgradeTask, done: Rewrite[Any]) -> Bucket:
    files = tuple(data_file(record, [INT]) for record in done.edit.changelog)
    return replace(after(task, done), changelog=files)


def require_told(made: MadeBucket, task: UpgradeTask) -> Rewrite[Any]:
    """The rewrite tells what the twin does, and the gate agrees by its own means."""
    task = replace(task, values_needed=True)
    done = rewrite(made.storage, task, RUN)
    assert written(made, task, done) == twin(made, task, done)
    bucket = with_changelog(task, done)
    assert not [fault for file in bucket.changelog for fault in changelog_file_faults(made.storage, bucket, file)]
    sides = (expected(made.storage, task.bucket, bucket), reported(made.storage, bucket))
    assert len({str(sum(map(fingerprint, side), start=fingerprint(pa.table({})))) for side in sides}) == 1
    assert {f"bucket-0/{file.name}" for file in bucket.changelog} <= set(done.outputs)
    return done


@settings(max_examples=examples(40))
@given(st.sampled_from([LOOKUP, SILENT, BY_VALUE]).flatmap(lambda options: buckets(options=options)))
def test_a_full_compaction_reports_what_it_changes(made: MadeBucket) -> None:
    task = full_task(made)
    assert task is not None
    require_told(made, task)


@settings(max_examples=examples(40))
@given(
    st.sampled_from([LOOKUP, SILENT, BY_VALUE]).flatmap(lambda options: buckets(options=options)),
    st.sampled_from([1, 3, 1 << 18]),
)
def test_an_upgrade_reports_what_it_changes(made: MadeBucket, chunk_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_output, "ROW_GROUP_ROWS", chunk_rows)
        patch.setattr(columns, "BATCH_ROWS", 2)
        require_told(made, lifting(made, 3))


def test_a_file_that_only_changes_its_level_reports_too() -> None:
    made = MadeBucket(dict(LOOKUP))
    made.add(5, [Row(1, "old", 1), Row(2, "old", 2), Row(4, "old", 3)], hidden=[2])
    made.add(0, [Row(2, "new", 9), Row(3, "new", 10), Row(4, "new", 11)])
    bucket = made.bucket()
    task = UpgradeTask(bucket, (Step(StepKind.UPGRADE, (bucket.files[0],)),), 4, 1 << 20, values_needed=True)
    done = require_told(made, task)
    assert written(made, task, done) == [
        (BEFORE, 2, "old", 2),
        (AFTER, 2, "new", 9),
        (INSERT, 3, "new", 10),
        (INSERT, 4, "new", 11),
    ]
    assert done.rows_written == 0


def test_a_table_without_that_producer_shows_nothing() -> None:
    made = MadeBucket()
    made.add(5, [Row(1, "old", 1)])
    made.add(0, [Row(1, "new", 2)])
    done = rewrite(made.storage, lifting(made, 4), RUN)
    assert done.edit.changelog == ()
    assert not [name for name in made.held.files if "changelog" in name]


def test_a_row_above_level_0_that_deletes_its_key_is_no_row_before() -> None:
    """Compactions of tables without vectors leave such rows; Java takes the key as absent (KeyValue.isAdd)."""
    made = MadeBucket(dict(LOOKUP))
    made.add(4, [Row(1, "gone", 1, DELETE), Row(2, "gone", 2, DELETE), Row(3, "there", 3)])
    made.add(0, [Row(1, "back", 9), Row(2, None, 10, DELETE), Row(3, "new", 11)])
    task = full_task(made)
    assert task is not None
    done = rewrite(made.storage, task, RUN)
    assert written(made, task, done) == [(INSERT, 1, "back", 9), (BEFORE, 3, "there", 3), (AFTER, 3, "new", 11)]


def test_an_older_row_that_wins_is_reported_as_an_update_to_itself() -> None:
    made = MadeBucket(dict(BY_VALUE))
    made.add(5, [Row(1, "z", 1)])
    made.add(0, [Row(1, "a", 9)])
    task = replace(lifting(made, 4), values_needed=True)
    done = rewrite(made.storage, task, RUN)
    assert written(made, task, done) == [(BEFORE, 1, "z", 1), (AFTER, 1, "z", 1)]


def test_a_comparison_of_no_column_reports_no_update() -> None:
    made = MadeBucket({**SILENT, "changelog-producer.row-deduplicate-ignore-fields": "k,v"})
    made.add(5, [Row(1, "old", 1)])
    made.add(0, [Row(1, "new", 2), Row(2, "new", 3)])
    task = replace(lifting(made, 4), values_needed=True)
    done = rewrite(made.storage, task, RUN)
    assert written(made, task, done) == [(INSERT, 2, "new", 3)]
    (sole,) = expected(made.storage, task.bucket, with_changelog(task, done))
    assert sole.column("k").to_pylist() == [2]


def test_ignored_fields_are_split_at_commas_only() -> None:
    """As Java does: a blank makes another name."""
    option = {"changelog-producer.row-deduplicate-ignore-fields": "k, v"}
    made = MadeBucket({**SILENT, **option})
    rules = changelog_rules(made.schema)
    assert rules is not None
    assert rules.compared(made.schema) == ("v",)
