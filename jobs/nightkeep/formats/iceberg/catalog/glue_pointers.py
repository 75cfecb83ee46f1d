"""AWS Glue -> the names of metadata files, each a parameter of its table that is replaced if the version is unchanged.

The protocol is that of Iceberg's GlueTableOperations.java: Glue counts the versions of a table, and takes an update for
the newest one alone (`VersionId`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError, PartialCredentialsError
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.glue import GLUE_MAX_RETRIES, GLUE_SKIP_ARCHIVE, GlueCatalog

from nightkeep.errors import AddressError
from nightkeep.formats.iceberg.catalog.claims import Claim
from nightkeep.formats.iceberg.catalog.metadata_swap import Pointers
from nightkeep.formats.iceberg.metadata.table_metadata import Raw

_POINTER: Final = "metadata_location"
_GONE: Final = "EntityNotFoundException"
_CHANGED: Final = "ConcurrentModificationException"
_DENIED: Final = frozenset({
    "AccessDeniedException", "ExpiredTokenException", "InvalidSignatureException", "UnrecognizedClientException",
})  # fmt: skip
_STATED: Final = (
    "Name", "Description", "Owner", "LastAccessTime", "LastAnalyzedTime", "Retention", "StorageDescriptor",
    "PartitionKeys", "ViewOriginalText", "ViewExpandedText", "TableType", "Parameters", "TargetTable",
)  # fmt: skip
"""What an update takes of a table. The rest is Glue's own."""


def open_catalog(name: str, settings: dict[str, Any]) -> GlueCatalog:
    # pyiceberg passes on the text that an environment variable is, which Amazon's client does not take.
    retries = {GLUE_MAX_RETRIES: int(settings[GLUE_MAX_RETRIES])} if GLUE_MAX_RETRIES in settings else {}
    with _asking(name):
        return GlueCatalog(name, **{**settings, **retries})


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
        kind = parameters.get("table_type", "")
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
            with _asking(self.catalog.name):
                self.catalog.glue.update_table(
                    DatabaseName=identifier[0], TableInput=stated, SkipArchive=skip, VersionId=found["VersionId"]
                )
        except ClientError as failure:
            if _code(failure) in (_GONE, _CHANGED):
                return False
            raise
        return True

    def claims(self) -> Iterator[Claim]:
        with _asking(self.catalog.name):
            for databases in self.catalog.glue.get_paginator("get_databases").paginate():
                for database in databases["DatabaseList"]:
                    for tables in self.catalog.glue.get_paginator("get_tables").paginate(DatabaseName=database["Name"]):
                        yield from _claims(database["Name"], tables["TableList"])

    def _table(self, identifier: tuple[str, ...]) -> dict[str, Any] | None:
        if len(identifier) != 2:
            raise AddressError(f"{'.'.join(identifier)}: expected DATABASE.TABLE, as Glue has it")
        try:
            with _asking(self.catalog.name):
                answer = self.catalog.glue.get_table(DatabaseName=identifier[0], Name=identifier[1])
        except ClientError as failure:
            if _code(failure) == _GONE:
                return None
            raise
        return dict(answer["Table"])


def _claims(database: str, tables: list[Any]) -> Iterator[Claim]:
    for table in tables:
        location = table.get("Parameters", {}).get(_POINTER)
        if location:
            yield Claim((database, table["Name"]), location)


@contextmanager
def _asking(catalog: str) -> Iterator[None]:
    """Turn failures of Amazon's client into AddressError, or OSError if there is no answer.

    ClientError is raised for an answer that its caller expects."""
    try:
        yield
    except (NoCredentialsError, PartialCredentialsError) as failure:
        keys = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        raise AddressError(f"catalog {catalog}: expected credentials for Glue, found none; set {keys}") from failure
    except NoRegionError as failure:
        raise AddressError(f"catalog {catalog}: expected a region of Glue, found none; set AWS_REGION") from failure
    except BotoCoreError as failure:
        raise ConnectionError(str(failure)) from failure
    except ClientError as failure:
        if _code(failure) in (_GONE, _CHANGED):
            raise
        if _code(failure) in _DENIED:
            raise AddressError(f"catalog {catalog}: expected access to Glue, found {failure}") from failure
        raise ConnectionError(str(failure)) from failure


def _code(failure: ClientError) -> str:
    return str(failure.response.get("Error", {}).get("Code", ""))
