"""A bucket that a task cannot hold: whatever the ranges are, files and vectors have the bytes that one range gives."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.paimon.made_bucket import RUN, MadeBucket, Row, buckets
from tests.formats.paimon.rewrite.test_rewrite import BY_VALUE, full_task, lifting
from tests.formats.paimon.small_ranges import batches_of
from tests.support.examples import examples

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.data.columns import SEQUENCE
from nightkeep.formats.paimon.data.write import PaimonFileWriter
from nightkeep.formats.paimon.gate.gate import gate_of
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, Schemas, data_file
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.formats.paimon.rewrite.candidates import LEVEL, POSITION, SOURCE
from nightkeep.formats.paimon.rewrite.key_ranges import key_ranges
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask, rewrite
from nightkeep.formats.paimon.rewrite.steps import Step, StepKind
from nightkeep.model import Rewrite, VerifyLevel
from nightkeep.stages.verify import prove

TELLS = {"changelog-producer": "lookup"}
KINDS: Mapping[str, Mapping[str, str]] = {
    "whole rows": {},
    "sequence field": BY_VALUE,
    "changelog": TELLS,
    "silent changelog": {**TELLS, "changelog-producer.row-deduplicate": "true"},
    "partial update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "joined texts": {
        "merge-engine": "aggregation",
        "fields.v.aggregate-function": "listagg",
        "fields.v.ignore-retract": "true",
    },
    "told aggregation": {
        **TELLS,
        "merge-engine": "aggregation",
        "fields.v.aggregate-function": "max",
        "fields.v.ignore-retract": "true",
    },
}


@settings(max_examples=examples(40))
@given(buckets(), st.integers(1, 3))
def test_ranges_hold_every_live_row_once_and_whole_keys_in_order(made: MadeBucket, rows: int) -> None:
    bucket = made.bucket()
    files = bucket.files
    with batches_of(rows):
        ranges = list(key_ranges(made.storage, bucket, files, made.vectors()))
    found = [
        (files[row[SOURCE]].name, row[POSITION], row["_KEY_k"], row[SEQUENCE], row[LEVEL])
        for each in ranges
        for row in each.to_pylist()
    ]
    levels = {file.name: file.level for file in files}
    expected = [(name, at, row.key, row.sequence, levels[name]) for name in made.rows for at, row in made.live(name)]
    assert sorted(found) == sorted(expected)
    keys = [each.column("_KEY_k").to_pylist() for each in ranges if each.num_rows]
    assert all(max(before) < min(after) for before, after in itertools.pairwise(keys))
    (whole,) = key_ranges(made.storage, bucket, files, made.vectors())
    assert len(keys) > 1 or len(set(whole.column("_KEY_k").to_pylist())) <= rows * len(files)


def written(made: MadeBucket, task: UpgradeTask) -> tuple[Rewrite, Mapping[str, bytes]]:
    before = dict(made.held.files)
    done = rewrite(made.storage, task, RUN)
    files, made.held.files = made.held.files, before
    return done, {name: data for name, data in files.items() if name not in before}


def require_as_in_one(made: MadeBucket, task: UpgradeTask | None, rows: int) -> None:
    if task is None:
        return
    whole = written(made, task)
    with batches_of(rows):
        assert written(made, task) == whole


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(25))
@given(st.data())
def test_any_number_of_ranges_writes_the_same_bytes(kind: str, data: st.DataObject) -> None:
    made = data.draw(buckets(options=KINDS[kind]))
    rows, needed = data.draw(st.integers(1, 3)), bool(KINDS[kind])
    if kind == "partial update":
        made = without_updates_before(made)
    for task in (full_task(made), lifting(made, 3)):
        require_as_in_one(made, None if task is None else replace(task, values_needed=needed), rows)


def without_updates_before(made: MadeBucket) -> MadeBucket:
    """A partial update takes deletes, and no other retracts."""
    fresh = MadeBucket(made.options)
    for file in made.files:
        rows = [row._replace(kind=3 if row.kind == 1 else row.kind) for row in made.rows[file.name]]
        fresh.add(file.level, rows, hidden=sorted(made.hidden.get(file.name, ())))
    return fresh


@settings(max_examples=examples(25))
@given(buckets(options={"deletion-vectors.enabled": "false"}), st.integers(1, 3), st.integers(0, 1))
def test_without_vectors_as_well(made: MadeBucket, rows: int, drops: int) -> None:
    made.hidden = {}
    files = made.bucket().files
    task = UpgradeTask(
        made.bucket(),
        (Step(StepKind.MERGE, files),),
        5,
        1 << 20,
        values_needed=False,
        looks_up=False,
        drops_retracts=drops == 1,
    )
    require_as_in_one(made, task, rows)


@settings(max_examples=examples(15))
@given(buckets(options=TELLS), st.integers(1, 3))
def test_an_upgraded_file_marks_and_reports_the_same(made: MadeBucket, rows: int) -> None:
    bucket = made.bucket()
    lifted = next(file for file in bucket.files if file.level == 0)
    task = UpgradeTask(bucket, (Step(StepKind.UPGRADE, (lifted,)),), 3, 1 << 20, values_needed=False)
    require_as_in_one(made, task, rows)


def test_a_file_rolls_where_it_does_in_one_range() -> None:
    made = MadeBucket()
    made.add(5, [Row(key, "old" * key, key) for key in range(0, 60, 2)], group_rows=7)
    made.add(0, [Row(key, "new" * key, 60 + key) for key in range(0, 60, 3)], group_rows=4)
    task = replace(full_task(made), target_bytes=900)  # type: ignore[type-var]
    (done, _) = written(made, task)
    assert len(done.outputs) > 2
    for rows in (1, 2, 5, 100):
        require_as_in_one(made, task, rows)


def test_keys_that_do_not_ascend_are_refused() -> None:
    """Files of one level whose metadata states that one comes after the other, which is not so."""
    made = MadeBucket()
    made.add(4, [Row(1), Row(5), Row(9)])
    made.add(4, [Row(6), Row(7)])
    made.add(0, [Row(3, "new", 9)])
    task = full_task(made)
    assert task is not None
    with batches_of(1), pytest.raises(CorruptMetadata, match=r"keys of data-0\.parquet, data-1\.parquet: row"):
        rewrite(made.storage, task, RUN)


TYPES = {"region": "INT NOT NULL", "code": "STRING NOT NULL", "v": "BIGINT"}


def composite(made: MadeBucket, levels: Sequence[int], codes: Sequence[Sequence[str]]) -> Bucket:
    """All keys have the same first column, and Parquet's statistics of it tell nothing."""
    fields = tuple(PaimonField(n, name, parse_type(kind)) for n, (name, kind) in enumerate(TYPES.items()))
    schema = PaimonSchema(0, fields, (), ("region", "code"), {"deletion-vectors.enabled": "true"})
    bucket = replace(made.bucket(), schemas=Schemas(schema, {0: schema}))
    files = []
    for number, (level, own) in enumerate(zip(levels, codes, strict=True)):
        naming = PaimonNaming(replace(RUN, attempt=f"{number:08}"), bucket.key)
        ordered = sorted(own, key=str.encode)
        size, region = len(ordered), pa.array([7] * len(ordered), pa.int32())
        rows = pa.table(
            {
                "_KEY_region": region,
                "_KEY_code": pa.array(ordered),
                "_SEQUENCE_NUMBER": np.arange(size) + 1000 * number,
                "_VALUE_KIND": np.zeros(size, np.int8),
                "region": region,
                "code": pa.array(ordered),
                "v": np.arange(size),
            }
        )
        writer = PaimonFileWriter(made.storage, bucket, naming, level=level, now_ms=0)
        files += [data_file(file.record, [f.type for f in fields[:2]]) for file in writer.write([rows], target_bytes=1)]
    return replace(bucket, files=tuple(files))


CODES = st.sets(st.text("ab\u00e9\U0001f600", max_size=3), min_size=4, max_size=9)


@settings(max_examples=examples(25))
@given(st.lists(CODES, min_size=3, max_size=3), st.integers(1, 3))
def test_keys_that_share_their_first_column_are_split(codes: list[set[str]], rows: int) -> None:
    made = MadeBucket()
    bucket = composite(made, (5, 0, 0), [sorted(some) for some in codes])
    lifted = tuple(file for file in bucket.files if file.level == 0)
    task = UpgradeTask(bucket, (Step(StepKind.MERGE, lifted),), 4, 1 << 20, values_needed=False)
    require_as_in_one(made, task, rows)
    with batches_of(rows):
        assert sum(each.num_rows > 0 for each in key_ranges(made.storage, bucket, lifted, {})) > 1
        after = rewritten_bucket(task, rewrite(made.storage, task, RUN))
        for level in VerifyLevel:
            assert prove(gate_of(made.storage), bucket, after, level=level).proven


def rewritten_bucket(task: UpgradeTask, done: Rewrite) -> Bucket:
    edit = done.edit
    assert isinstance(edit, BucketEdit)
    types = [field.type for field in task.bucket.schemas.current.fields[:2]]
    kept = [file for file in task.bucket.files if file.level > 0]
    files = (*kept, *(data_file(record, types) for record in edit.added))
    index = edit.index_record
    if index is None:
        return replace(task.bucket, files=files)
    return replace(task.bucket, files=files, vectors=vector_ranges(index), index_records=(index,))
