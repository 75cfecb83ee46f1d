"""A bucket of a table without keys, at the plan and now -> why an edit no longer fits. Other files do not matter.

As C/operation/commit/ConflictDetection with deletion vectors and bucket = -1: a file that an edit removes, or whose
vector it writes, must still be there with the vector that the plan saw. Vector files go as a whole, so two edits of one
vector file conflict, whatever data files they are of. A fixed bucket has one vector file, which Java does not compare.
Appended files never conflict, unless they would come before rows that an update moves to the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.schema import has_fixed_buckets, keeps_order
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.metadata.vector_ranges import VectorRange, vector_ranges

_SHOWN = 3
"""How many files a reason names."""


def append_conflict(before: Bucket, after: Bucket | None, edit: BucketEdit) -> str | None:
    """`before` is the bucket that was planned on, `after` that of the newest version, None if it has none."""
    live = frozenset[str]() if after is None else frozenset(file.name for file in after.files)
    changed = {str(file["_FILE_NAME"]) for file in edit.removed}
    marked = {where.data_file for record in edit.index_added for where in vector_ranges(record)}
    if lost := sorted((changed | marked) - live):
        return f"files are gone: {_named(lost)}"
    held, holds = _vectors(before), {} if after is None else _vectors(after)
    if other := sorted(name for name in changed | marked if held.get(name) != holds.get(name)):
        return f"other rows were deleted of {_named(other)}"
    files = frozenset[str]() if after is None else frozenset(after.index_files)
    if replaced := sorted(edit.index_removed - files):
        return f"vector files were replaced: {_named(replaced)}"
    return None if after is None else _bucket_conflict(before, after, edit)


def _bucket_conflict(before: Bucket, after: Bucket, edit: BucketEdit) -> str | None:
    """Why an edit no longer fits a fixed bucket."""
    schema = before.schemas.current
    if not has_fixed_buckets(schema):
        return None
    if before.total_buckets != after.total_buckets:
        return f"the table was rescaled from {before.total_buckets} to {after.total_buckets} buckets"
    if (edit.index_removed or edit.index_added) and before.index_files != after.index_files:
        return f"its deletion vectors moved to {', '.join(after.index_files) or 'no file'}"
    if keeps_order(schema) and edit.intent.sets and edit.added:
        first = min(int(file["_MIN_SEQUENCE_NUMBER"]) for file in edit.added)
        known = {file.name for file in before.files}
        if late := sorted(f.name for f in after.files if f.name not in known and f.min_sequence > first):
            return f"rows were appended meanwhile, which would come after updated ones: {_named(late)}"
    return None


def _vectors(bucket: Bucket) -> Mapping[str, tuple[str, VectorRange]]:
    """The vector file and the range of each data file's vector."""
    return {
        where.data_file: (str(record["_FILE_NAME"]), where)
        for record in bucket.index_records
        for where in vector_ranges(record)
    }


def _named(files: list[str]) -> str:
    more = len(files) - _SHOWN
    return ", ".join(files[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
