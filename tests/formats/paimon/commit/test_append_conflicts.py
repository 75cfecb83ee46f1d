"""What another writer may do between our plan and our commit on a table without keys, case by case."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.formats.paimon.made_bucket import MadeBucket, Row

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.commit.append_conflicts import append_conflict
from nightkeep.formats.paimon.commit.index_manifest import index_records
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.model import Intent

FIRST, SECOND, THIRD = (f"data-{n}.parquet" for n in range(3))


def bucket(files: int, vectors: Mapping[str, Mapping[str, int]]) -> Bucket:
    """Data files, and vector files: of each the data files that it has vectors of, with a cardinality."""
    made = MadeBucket()
    for _ in range(files):
        made.add(0, [Row(1)])
    return replace(made.bucket(), index_records=tuple(entry(name, held) for name, held in vectors.items()))


def entry(name: str, held: Mapping[str, int]) -> Record:
    items = [{"f0": file, "f1": 1, "f2": 10, "_CARDINALITY": count} for file, count in held.items()]
    return {
        "_FILE_NAME": name,
        "_PARTITION": b"",
        "_BUCKET": 0,
        "_INDEX_TYPE": "DELETION_VECTORS",
        "_DELETIONS_VECTORS_RANGES": items,
    }


def edit(*removed: str, index_removed: tuple[str, ...] = (), index_added: tuple[Record, ...] = ()) -> BucketEdit:
    records = tuple({"_FILE_NAME": name} for name in removed)
    named = {"index_removed": frozenset(index_removed), "index_added": index_added}
    return BucketEdit(b"", 0, -1, records, (), None, **named)  # type: ignore[arg-type]


PLANNED = {"index-1": {FIRST: 2, SECOND: 1}}
PURGES = edit(FIRST, index_removed=("index-1",), index_added=(entry("index-9", {SECOND: 1}),))
"""The first file is rewritten without its deleted rows; the vector of the second moves to a new vector file."""


@pytest.mark.parametrize(
    ("ours", "now", "reason"),
    [
        (PURGES, bucket(2, PLANNED), None),
        (PURGES, bucket(3, PLANNED), None),
        (PURGES, bucket(3, {**PLANNED, "index-2": {THIRD: 1}}), None),
        (PURGES, None, "files are gone: data-0.parquet, data-1.parquet"),
        (PURGES, replace(bucket(2, PLANNED), files=bucket(2, {}).files[1:]), "files are gone: data-0.parquet"),
        (PURGES, bucket(2, {"index-2": {FIRST: 3, SECOND: 1}}), "other rows were deleted of data-0.parquet"),
        (PURGES, bucket(2, {"index-2": {FIRST: 2, SECOND: 2}}), "other rows were deleted of"),
        (edit(THIRD), bucket(3, {**PLANNED, "index-2": {THIRD: 1}}), "other rows were deleted of data-2.parquet"),
        (edit(THIRD), bucket(3, {"index-2": {FIRST: 5}}), None),
        (edit(index_removed=("index-1",)), bucket(2, {}), "vector files were replaced: index-1"),
        (edit(index_added=(entry("index-9", {THIRD: 1}),)), bucket(3, PLANNED), None),
        (edit(index_added=(entry("index-9", {THIRD: 1}),)), bucket(2, PLANNED), "files are gone: data-2.parquet"),
    ],
)
def test_an_edit_conflicts_with_other_changes_of_what_it_names(
    ours: BucketEdit, now: Bucket | None, reason: str | None
) -> None:
    found = append_conflict(bucket(3, PLANNED), now, ours)
    assert found is None if reason is None else str(found).startswith(reason)


def test_a_reason_names_three_files_and_counts_the_others() -> None:
    names = [f"data-{n}.parquet" for n in range(5)]
    assert append_conflict(bucket(5, {}), None, edit(*names)) == f"files are gone: {', '.join(names[:3])} and 2 more"


def test_index_entries_go_by_name_and_all_others_stay() -> None:
    kept, other = entry("index-2", {THIRD: 1}), {"_FILE_NAME": "index-1", "_INDEX_TYPE": "HASH"}
    parent = _Parent((entry("index-1", PLANNED["index-1"]), kept, other))
    assert index_records(parent.snapshot, [edit(FIRST)]) is None
    assert index_records(parent.snapshot, [edit(FIRST), PURGES]) == [kept, other, entry("index-9", {SECOND: 1})]


class _Parent:
    """A snapshot of which only the index manifest is looked at."""

    def __init__(self, records: tuple[Record, ...]) -> None:
        self.snapshot = object.__new__(PaimonSnapshot)
        object.__setattr__(self.snapshot, "index_records", records)


FIXED = {"bucket": "2"}
MARKS = edit(index_added=(entry("index-9", {THIRD: 1}),))


@pytest.mark.parametrize(
    ("ours", "now", "reason"),
    [
        (PURGES, bucket(3, PLANNED), None),
        (edit(THIRD), bucket(3, {"index-2": {**PLANNED["index-1"], FIRST: 5}}), None),
        (MARKS, bucket(3, {"index-2": PLANNED["index-1"]}), "vectors moved to index-2"),
        (PURGES, replace(bucket(2, PLANNED), total_buckets=9), "rescaled from 1 to 9 buckets"),
    ],
)
def test_a_fixed_bucket_has_one_vector_file(ours: BucketEdit, now: Bucket, reason: str | None) -> None:
    found = append_conflict(_fixed(bucket(3, PLANNED)), _fixed(now), ours)
    assert found is None if reason is None else found is not None and reason in found, found


@pytest.mark.parametrize(("first", "conflicts"), [(9, False), (10, False), (11, True)])
def test_rows_appended_behind_updated_ones_conflict(first: int, *, conflicts: bool) -> None:
    """A file that was appended meanwhile, and begins with a number above that of our new file, 10."""
    updates = replace(
        edit(), added=({"_FILE_NAME": "ours", "_MIN_SEQUENCE_NUMBER": 10},), intent=Intent(sets=(("a", "1"),))
    )
    before, after = _fixed(bucket(1, {})), _fixed(bucket(2, {}))
    late = replace(after, files=(after.files[0], replace(after.files[1], min_sequence=first)))
    assert (append_conflict(before, late, updates) is not None) is conflicts
    assert append_conflict(before, late, replace(updates, intent=Intent())) is None


def _fixed(unit: Bucket) -> Bucket:
    schema = replace(unit.schemas.current, primary_keys=(), options={**unit.schemas.current.options, **FIXED})
    return replace(unit, schemas=replace(unit.schemas, current=schema))
