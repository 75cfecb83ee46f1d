"""Row ids of a candidate's files: those that were there stay, new ones are nobody else's.

Spec, "Row Lineage", "First Row ID Assignment" and "First Row ID Inheritance".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from nightkeep.formats.iceberg.content_files import ContentFile
from nightkeep.formats.iceberg.metadata import IcebergSnapshot

_Span = tuple[int, int, str]
"""First id, the one behind the last, and the file."""


def row_id_faults(parent: IcebergSnapshot, candidate: IcebergSnapshot) -> Iterator[str]:
    """Empty for a table without row lineage. What is wrong with ids that were there before is not ours to tell."""
    if not candidate.schema.has_row_lineage:
        return
    first, added = candidate.raw.get("first-row-id"), candidate.raw.get("added-rows")
    if not isinstance(first, int) or not isinstance(added, int) or added < 0:
        yield f"first-row-id {first} and added-rows {added}, expected numbers"
        return
    # Others' branches take ids as well: only what the table has given away by now counts.
    if parent.next_row_id is None or first < parent.next_row_id:
        yield f"first-row-id {first}, expected the table's next, {parent.next_row_id}"
    known = {file.path: file for file in _data(parent)}
    fresh = [file for file in _data(candidate) if file.path not in known]
    missing = [file.path for file in fresh if file.first_row_id is None]
    yield from (f"{path}: no first row id" for path in missing)
    spans = [(f.first_row_id, f.first_row_id + f.rows, f.path) for f in fresh if f.first_row_id is not None]
    yield from _span_faults(sorted(spans), first, first + added)


def _data(snapshot: IcebergSnapshot) -> Iterator[ContentFile]:
    return (file for unit in snapshot.units for file in unit.files)


def _span_faults(spans: Sequence[_Span], first: int, behind: int) -> Iterator[str]:
    """Within what the snapshot reserves, which is above all ids given away before, and each id once."""
    for start, end, path in spans:
        if start < first or end > behind:
            yield f"{path}: row ids {start} to {end}, expected from {first} up to {behind}"
    for left, right in pairwise(spans):
        if right[0] < left[1]:
            yield f"{left[2]} and {right[2]}: row ids overlap at {right[0]}"
