"""Planned snapshot and newest snapshot -> the units in conflict, each with its reason.

These rules allow more than the engines' own, but never change rows: appends and equality deletes are no conflict.
An equality delete that is newer than the plan still applies to the old files and to the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.formats.iceberg.commit.commit_changes import Edits, retired_positional
from nightkeep.formats.iceberg.data.columns import LINEAGE, ROW_ID
from nightkeep.formats.iceberg.data.stored_columns import open_columns
from nightkeep.formats.iceberg.metadata.content_files import FileContent, NewFile
from nightkeep.formats.iceberg.metadata.locations import storage_name
from nightkeep.formats.iceberg.metadata.partition import identity
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.positional_deletes import positional_of
from nightkeep.formats.iceberg.metadata.snapshot import NO_SNAPSHOT, IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.metadata.table_metadata import ancestors
from nightkeep.model import Rewrite, UnitKey
from nightkeep.model.arrow_types import field_id
from nightkeep.storage import Storage

_OF_VERSION_2 = "was written for a table of format version 2"


def edits_of(rewrites: Sequence[Rewrite[IcebergEdit]]) -> Edits:
    """The edits of a commit, and its units in their order."""
    return Edits(tuple(rewrite.edit for rewrite in rewrites), tuple(dict.fromkeys(each.key for each in rewrites)))


def conflicts(
    storage: Storage, planned: IcebergSnapshot, head: IcebergSnapshot, rewrites: Sequence[Rewrite[IcebergEdit]]
) -> tuple[tuple[UnitKey, str], ...]:
    """Units whose data files are gone or have other positional deletes; all units if the table itself changed.

    `planned` has the schema that the rewrites used.
    """
    keys = tuple(dict.fromkeys(rewrite.key for rewrite in rewrites))
    changed = _changed(planned, head) or _upgraded(storage, head, edits_of(rewrites).added)
    if changed is not None:
        return tuple((key, changed) for key in keys)
    reasons = {key: _lost(planned, head, [each for each in rewrites if each.key == key]) for key in keys}
    reasons |= {key: reason for key in keys if (reason := reasons[key] or _met(planned, head, key, rewrites))}
    return tuple((key, f"inputs changed: {reason}") for key, reason in reasons.items() if reason is not None)


def _changed(planned: IcebergSnapshot, head: IcebergSnapshot) -> str | None:
    schemas = [side.schema.current.schema_id for side in (planned, head)]
    if schemas[0] != schemas[1]:
        return f"the table's schema changed from {schemas[0]} to {schemas[1]}"
    line = ancestors(head.metadata, head.version, subject=head.metadata_location)
    if planned.version not in (NO_SNAPSHOT, *line):
        return f"version {planned.version} is not one that version {head.version} is built on"
    return None


def _upgraded(storage: Storage, head: IcebergSnapshot, added: Sequence[NewFile]) -> str | None:
    """The reason why the added files do not fit a table that was upgraded to format version 3 meanwhile, else None.

    Table metadata always gives the current format version, so the added files themselves are examined.
    """
    if not head.schema.has_row_lineage or not added:
        return None
    reason = "the table's format version changed: a file"
    if any(new.content is FileContent.POSITION_DELETES and "content_offset" not in new.raw for new in added):
        return f"{reason} of position deletes {_OF_VERSION_2}"
    data = next((new for new in added if new.content is FileContent.DATA), None)
    if data is None or _row_ids(storage, data):
        return None
    return f"{reason} {_OF_VERSION_2}"


def _row_ids(storage: Storage, new: NewFile) -> bool:
    columns = open_columns(storage, storage_name(new.path), str(new.raw["file_format"]).lower(), subject=new.path)
    ids = {field_id(field) for field in columns.fields}
    return LINEAGE[ROW_ID].field_id in ids


def _met(
    planned: IcebergSnapshot, head: IcebergSnapshot, key: UnitKey, rewrites: Sequence[Rewrite[IcebergEdit]]
) -> str | None:
    """Why rows that move to another partition could not: a newer equality delete of either partition.

    It applies to the rows where they were, or where they go, but not at both places. Global ones apply at both.
    """
    edits = edits_of([each for each in rewrites if each.key == key])
    unit = planned.by_key[key]
    there = {identity(new.spec_id, new.partition) for new in edits.added if new.content is FileContent.DATA}
    if there <= {identity(unit.spec_id, unit.values)}:
        return None
    places = there | {identity(unit.spec_id, unit.values)}
    for other in head.units:
        if identity(other.spec_id, other.values) in places:
            for delete in other.equality:
                if delete.sequence_number > edits.planned_sequence and not head.schema.is_global(delete.spec_id):
                    return f"newer equality deletes {delete.path} in {other.key}"
    return None


def _lost(planned: IcebergSnapshot, head: IcebergSnapshot, rewrites: Sequence[Rewrite[IcebergEdit]]) -> str | None:
    key, edits = rewrites[0].key, edits_of(rewrites)
    before, after = planned.by_key[key], head.by_key.get(key)
    if after is before or after == before:
        return None
    return _inputs_lost(before, after, edits)


def _inputs_lost(before: IcebergUnit, after: IcebergUnit | None, edits: Edits) -> str | None:
    inputs = edits.removed_data | edits.folded.keys()
    live = {file.path for file in after.files} if after is not None else set()
    gone = sorted(inputs - live)
    if gone or after is None:
        return f"{', '.join(gone) or 'the partition'} is gone"
    # A settled file that is gone is no conflict: nothing depends on it, and its rows elsewhere are not settled.
    held = [positional_of(side) for side in (before, after)]
    looked_at = inputs | (edits.settled & live)
    marked = sorted(path for path in looked_at if held[0].get(path) != held[1].get(path))
    if marked:
        return f"other position deletes for {', '.join(marked)}"
    planned = {delete.identity for delete in before.positional}
    retired = [{delete.identity for delete in retired_positional(side, edits)} & planned for side in (before, after)]
    # The gate proved the rows with one set of deletes removed: the commit must remove the same set.
    differing = sorted(path for path, _ in retired[0] ^ retired[1])
    return f"position deletes in {', '.join(differing)} hold for other files" if differing else None
