"""What a metastore states of a table, as one value for Hive's and Glue's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetastoreEntry:
    """A table, a view, or a link to one. Texts are empty where the metastore states nothing.

    `properties` are those of how rows are stored: Spark keeps the location of a table in them.
    """

    database: str
    name: str
    kind: str
    location: str
    parameters: Mapping[str, str]
    properties: Mapping[str, str]
    input_format: str = ""

    @property
    def parts(self) -> tuple[str, str]:
        return (self.database, self.name)
