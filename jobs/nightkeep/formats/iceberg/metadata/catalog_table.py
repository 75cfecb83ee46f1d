"""What a snapshot's reader asks of whatever holds the table's newest metadata."""

from __future__ import annotations

from typing import Protocol

from nightkeep.formats.iceberg.metadata.table_metadata import Raw
from nightkeep.storage import Storage


class CatalogTable(Protocol):
    """A table of a catalog (catalog.TableHandle)."""

    @property
    def storage(self) -> Storage:
        """The store that the table's files are in."""

    @property
    def commits_any_version(self) -> bool:
        """Whether the catalog takes commits of tables of format version 3."""

    def load(self) -> tuple[Raw, str]:
        """The table's metadata as JSON has it, as of now, and its location; "" where the catalog does not say."""

    def found(self) -> tuple[Raw | None, str]:
        """What the catalog itself says: metadata, None where a file has it, and its location."""
