"""Table metadata -> whether Iceberg's engines may write the table.

Paimon (`metadata.iceberg.storage`) and Delta (UniForm) write Iceberg metadata of their own tables, over their own data
files. A commit to that metadata would be lost with their next one, and files that it gives up are still theirs.
"""

from __future__ import annotations

from nightkeep.formats.iceberg.metadata.locations import root_of, stored_name
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, text
from nightkeep.protocol.foreign_tables import require_one_format
from nightkeep.storage import Storage


def require_iceberg_only(table: str, storage: Storage, raw: Raw) -> None:
    """Raises RefusedTable if the table's location also has metadata of another format."""
    location = text(raw, "location", subject=table).rstrip("/")
    if root_of(location) == storage.root:
        require_one_format(table, storage, stored_name(location), own={"Iceberg"})
