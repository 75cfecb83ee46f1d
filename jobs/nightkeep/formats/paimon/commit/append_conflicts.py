"""A bucket of a table without keys, at the plan and now -> why an edit no longer fits. Other files do not matter.

As C/operation/commit/ConflictDetection with deletion vectors and bucket = -1: a file that an edit removes, or whose
vector it writes, must still be there with the vector that the plan saw. Vector files go as a whole, so two edits of one
vector file conflict, whatever data files they are of. Appended files never conflict.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
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
