"""What others committed since a plan was made -> the units that it costs us.

Weaker than the engines' own rules, as far as rows stay the same: appends and equality deletes never cost a unit,
whenever they came. Equality deletes that are newer than a plan keep holding for its files, new or old.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.formats.iceberg.edits import IcebergEdit
from nightkeep.formats.iceberg.live_set import Edits, positional_of, retired_positional
from nightkeep.formats.iceberg.metadata import NO_SNAPSHOT, IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.table_metadata import ancestors
from nightkeep.model import Rewrite, UnitKey

_OF_THE_TABLE = ("table-uuid", "format-version", "current-schema-id", "schemas", "partition-specs", "default-spec-id")
"""What rewritten files were read and written by."""


def edits_of(rewrites: Sequence[Rewrite]) -> Edits:
    """The edits of a commit, and its units in their order."""
    return Edits(tuple(_edit(rewrite) for rewrite in rewrites), tuple(dict.fromkeys(each.key for each in rewrites)))


def conflicts(
    planned: IcebergSnapshot, head: IcebergSnapshot, rewrites: Sequence[Rewrite]
) -> tuple[tuple[UnitKey, str], ...]:
    """Units whose data files are gone or have other positional deletes; all of them where the table changed."""
    keys = tuple(dict.fromkeys(rewrite.key for rewrite in rewrites))
    changed = _changed(planned, head)
    if changed is not None:
        return tuple((key, changed) for key in keys)
    found = {key: _lost(planned, head, [each for each in rewrites if each.key == key]) for key in keys}
    return tuple((key, f"inputs changed: {reason}") for key, reason in found.items() if reason is not None)


def _changed(planned: IcebergSnapshot, head: IcebergSnapshot) -> str | None:
    for what in _OF_THE_TABLE:
        if planned.metadata.get(what) != head.metadata.get(what):
            return f"the table's {what} changed between versions {planned.version} and {head.version}"
    line = ancestors(head.metadata, head.version, subject=head.metadata_location)
    if planned.version not in (NO_SNAPSHOT, *line):
        return f"version {planned.version} is not one that version {head.version} is built on"
    return None


def _lost(planned: IcebergSnapshot, head: IcebergSnapshot, rewrites: Sequence[Rewrite]) -> str | None:
    key, edits = rewrites[0].key, edits_of(rewrites)
    before, after = planned.by_key[key], head.by_key.get(key)
    if after is before or after == before:
        return None
    return _inputs_lost(before, after, edits)


def _inputs_lost(before: IcebergUnit, after: IcebergUnit | None, edits: Edits) -> str | None:
    inputs = edits.removed_data | edits.folded.keys() | edits.settled
    live = {file.path for file in after.files} if after is not None else set()
    gone = sorted(inputs - live)
    if gone or after is None:
        return f"{', '.join(gone) or 'the partition'} is gone"
    held = [positional_of(side) for side in (before, after)]
    marked = sorted(path for path in inputs if held[0].get(path) != held[1].get(path))
    if marked:
        return f"other position deletes for {', '.join(marked)}"
    known = {delete.identity for delete in before.positional}
    retired = [{each.identity for each in retired_positional(side, edits)} & known for side in (before, after)]
    # The proof was made with these deletes gone, or with them in place.
    differing = sorted(path for path, _ in retired[0] ^ retired[1])
    return f"position deletes in {', '.join(differing)} hold for other files" if differing else None


def _edit(rewrite: Rewrite) -> IcebergEdit:
    assert isinstance(rewrite.edit, IcebergEdit)
    return rewrite.edit
