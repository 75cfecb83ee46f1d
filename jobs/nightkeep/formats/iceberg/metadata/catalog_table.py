"""The interface of a catalog's table that reading a snapshot needs."""

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
        """The table's current metadata as raw JSON, and its location; "" if the catalog does not give the location."""

    def answer(self) -> tuple[Raw | None, str]:
        """The catalog's own answer: metadata (None if only the file has it) and its location."""
