"""Metadata of an Iceberg table, and its catalog -> what the table states of itself."""

from __future__ import annotations

import re
from typing import Final

from nightkeep.formats.iceberg.catalog.catalog import TableHandle, open_catalog
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, properties
from nightkeep.model.description import TableDescription, is_on

_AMORO: Final = "self-optimizing.enabled"
_S3_TABLES_BUCKET: Final = re.compile(r"s3[an]?://[^/]*--table-s3(/|$)")
"""How S3 Tables calls the bucket that it makes for each table."""
_S3_TABLES_ARN: Final = re.compile(r"arn:aws[\w-]*:s3tables:|\bs3tablescatalog/")
_OF_CATALOGS: Final = ("warehouse", "uri", "rest.signing-name", "glue.id")


def described(handle: TableHandle, snapshot: IcebergSnapshot) -> TableDescription:
    return _of(handle, snapshot.metadata)


def describe(handle: TableHandle) -> TableDescription:
    """The description by the catalog's present metadata. Raises as `TableHandle.load`."""
    return _of(handle, handle.load()[0])


def _of(handle: TableHandle, raw: Raw) -> TableDescription:
    stated, identity = properties(raw, subject=str(handle)), raw.get("table-uuid")
    managers = [f"Amoro's self-optimizing ({_AMORO} = {stated[_AMORO]})"] if is_on(stated, _AMORO) else []
    location = str(raw.get("location", ""))
    if _S3_TABLES_BUCKET.match(location):
        managers.append(f"S3 Tables (location {location})")
    managers += [f"S3 Tables ({name} of catalog {handle.catalog})" for name in _OF_CATALOGS if _is_s3(handle, name)]
    return TableDescription(None if identity is None else str(identity), stated, tuple(managers))


def _is_s3(handle: TableHandle, name: str) -> bool:
    value = str(open_catalog(handle.catalog).properties.get(name, ""))
    return value == "s3tables" or _S3_TABLES_ARN.search(value) is not None
