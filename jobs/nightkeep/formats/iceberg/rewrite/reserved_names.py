"""Names of columns -> RefusedTable where an operation would need a metadata column of the same name (spec, "Reserved
Field IDs")."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.model import Request

_POSITION: Final = frozenset({"_pos"})
_LINEAGE: Final = frozenset({"_row_id", "_last_updated_sequence_number"})


def refuse_position_name(snapshot: IcebergSnapshot, request: Request) -> None:
    """Java adds `_pos` where a file has positional deletes or a vector, and then refuses the schema
    (DeleteFilter.fileProjection), so that nobody could read the table."""
    _refuse(snapshot, _POSITION, "a metadata column that readers add where rows are deleted by position")


def refuse_lineage_names(snapshot: IcebergSnapshot, request: Request) -> None:
    """A rewrite to format version 3 stores each row's id and version in columns of these names (spec, row lineage)."""
    if snapshot.schema.has_row_lineage:
        _refuse(snapshot, _LINEAGE, "a column that rewrites add in format version 3")


def _refuse(snapshot: IcebergSnapshot, reserved: AbstractSet[str], of: str) -> None:
    names = reserved & {field.name for field in snapshot.schema.current.fields}
    if names:
        raise RefusedTable(
            snapshot.table.name, f"the column {min(names)} has the name of {of}", "rename the column first"
        )
