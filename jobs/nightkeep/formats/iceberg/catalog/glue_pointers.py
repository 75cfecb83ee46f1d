"""AWS Glue -> the names of metadata files, each a parameter of its table that is replaced if the version is unchanged.

The protocol is that of Iceberg's GlueTableOperations.java: Glue counts the versions of a table, and takes an update for
the newest one alone (`VersionId`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import ClientError
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.glue import GLUE_SKIP_ARCHIVE, GlueCatalog

from nightkeep.errors import AddressError
from nightkeep.formats.iceberg.catalog.claims import Claim
from nightkeep.formats.iceberg.catalog.metadata_swap import Pointers
from nightkeep.formats.iceberg.metadata.table_metadata import Raw
from nightkeep.metastores.glue import open_glue
from nightkeep.metastores.glue_answers import CHANGED, GONE, asking_glue, code_of
from nightkeep.metastores.table_kind import stated_kind

_POINTER: Final = "metadata_location"
_STATED: Final = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
    "TargetTable",
)
"""What an update takes of a table. The rest is Glue's own."""


def open_catalog(name: str, settings: dict[str, Any]) -> GlueCatalog:
    return open_glue(name, settings)


def pointers(catalog: Catalog) -> Pointers:
    assert isinstance(catalog, GlueCatalog)
    return GluePointers(catalog)


@dataclass(frozen=True, slots=True)
class GluePointers:
    """Those of a Glue catalog."""

    catalog: GlueCatalog

    def metadata_location(self, identifier: tuple[str, ...]) -> str | None:
        found = self._table(identifier)
        if found is None:
            return None
        parameters = found.get("Parameters", {})
        kind = stated_kind(parameters)
        location: str | None = parameters.get(_POINTER) if kind.lower() == "iceberg" else None
        if location is None:
            subject = ".".join((self.catalog.name, *identifier))
            raise AddressError(f"{subject}: expected an Iceberg table, found one of type {kind or 'unknown'}")
        return location

    def swap(self, identifier: tuple[str, ...], *, old: str, new: str, after: Raw) -> bool:
        found = self._table(identifier)
        if found is None or found.get("Parameters", {}).get(_POINTER) != old:
            return False
        stated = {name: found[name] for name in _STATED if name in found}
        stated["Parameters"] = {**found["Parameters"], _POINTER: new, "previous_metadata_location": old}
        skip = str(self.catalog.properties.get(GLUE_SKIP_ARCHIVE, "true")).lower() == "true"
        try:
            with asking_glue(f"catalog {self.catalog.name}"):
                self.catalog.glue.update_table(
                    DatabaseName=identifier[0], TableInput=stated, SkipArchive=skip, VersionId=found["VersionId"]
                )
        except ClientError as failure:
            if code_of(failure) in (GONE, CHANGED):
                return False
            raise
        return True

    def claims(self) -> Iterator[Claim]:
        with asking_glue(f"catalog {self.catalog.name}"):
            for databases in self.catalog.glue.get_paginator("get_databases").paginate():
                for database in databases["DatabaseList"]:
                    for tables in self.catalog.glue.get_paginator("get_tables").paginate(DatabaseName=database["Name"]):
                        yield from _claims(database["Name"], tables["TableList"])

    def _table(self, identifier: tuple[str, ...]) -> dict[str, Any] | None:
        if len(identifier) != 2:
            raise AddressError(f"{'.'.join(identifier)}: expected DATABASE.TABLE, as Glue has it")
        try:
            with asking_glue(f"catalog {self.catalog.name}"):
                answer = self.catalog.glue.get_table(DatabaseName=identifier[0], Name=identifier[1])
        except ClientError as failure:
            if code_of(failure) == GONE:
                return None
            raise
        return dict(answer["Table"])


def _claims(database: str, tables: list[Any]) -> Iterator[Claim]:
    for table in tables:
        location = table.get("Parameters", {}).get(_POINTER)
        if location:
            yield Claim((database, table["Name"]), location)
