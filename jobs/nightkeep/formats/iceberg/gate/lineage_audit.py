"""Parent and candidate -> faults of row ids. Existing ids stay; new ids are unique.

Spec, "Row Lineage", "First Row ID Assignment" and "First Row ID Inheritance".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, integer, objects

_Span = tuple[int, int, str]
"""First id, last id plus one, and the file's path."""


def row_id_faults(parent: IcebergSnapshot, candidate: IcebergSnapshot) -> Iterator[str]:
    """Faults of new row ids; none for a table without row lineage. Ids of the parent are not checked."""
    if not candidate.schema.has_row_lineage:
        return
    first, added = candidate.raw.get("first-row-id"), candidate.raw.get("added-rows")
    if not isinstance(first, int) or not isinstance(added, int) or added < 0:
        yield f"first-row-id {first} and added-rows {added}, expected numbers"
        return
    given = _given(parent, candidate.sequence_number)
    if first < given:
        yield f"first-row-id {first}, expected the table's next, {given}"
    before = {file.path: file for file in _data(parent)}
    # After an upgrade the next commit assigns ids to old files too (spec, "Row Lineage for Upgraded Tables").
    fresh = [f for f in _data(candidate) if f.path not in before or before[f.path].first_row_id is None]
    missing = [file.path for file in fresh if file.first_row_id is None]
    yield from (f"{path}: no first row id" for path in missing)
    spans = [(f.first_row_id, f.first_row_id + f.rows, f.path) for f in fresh if f.first_row_id is not None]
    yield from _span_faults(sorted(spans), first, first + added)


def _given(parent: IcebergSnapshot, sequence_number: int) -> int:
    """The first id above those of all snapshots, of any branch, that are older than the candidate.

    Snapshots committed after the candidate was staged are a conflict, not a fault of the candidate.
    """

    def number(snapshot: Raw, name: str) -> int:
        return integer(snapshot, name, subject=parent.metadata_location) if name in snapshot else 0

    snapshots = objects(parent.metadata, "snapshots", subject=parent.metadata_location)
    older = (each for each in snapshots if number(each, "sequence-number") < sequence_number)
    return max((number(each, "first-row-id") + number(each, "added-rows") for each in older), default=0)


def _data(snapshot: IcebergSnapshot) -> Iterator[ContentFile]:
    return (file for unit in snapshot.units for file in unit.files)


def _span_faults(spans: Sequence[_Span], first: int, behind: int) -> Iterator[str]:
    """Faults unless all ids are in the range that the snapshot reserves, and no id is used twice."""
    for start, end, path in spans:
        if start < first or end > behind:
            yield f"{path}: row ids {start} to {end}, expected from {first} up to {behind}"
    for left, right in pairwise(spans):
        if right[0] < left[1]:
            yield f"{left[2]} and {right[2]}: row ids overlap at {right[0]}"
