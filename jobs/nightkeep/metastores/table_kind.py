"""An entry of a metastore -> the format and the place of its table, or what it is otherwise. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.metastores.entry import MetastoreEntry
from nightkeep.model.metastore_table import metastore_table

PLACEHOLDER: Final = "__PLACEHOLDER__"
"""Spark ends the location of an external table with it, and keeps the true one as the property `path`."""
_PROVIDER: Final = "spark.sql.sources.provider"
_LOCAL: Final = re.compile(r"file:(?://(?:localhost)?)?(/(?!/).*)", re.DOTALL)
_S3: Final = re.compile(r"s3[an]://")
_HANDLERS: Final = {
    "io.delta.hive.deltastoragehandler": "delta",
    "org.apache.iceberg.mr.hive.hiveicebergstoragehandler": "iceberg",
    "org.apache.paimon.hive.paimonstoragehandler": "paimon",
}
_FORMATS: Final = ("delta", "iceberg", "paimon")
_SYMLINKS: Final = "SymlinkTextInputFormat"
"""The input format of tables over Delta's manifests: their location is not the table's."""
_WORD: Final = re.compile(r"[a-z0-9_. -]{1,40}")


@dataclass(frozen=True, slots=True)
class PlacedTable:
    """A table of one of our formats. `location` is that of its files, as in an address; "" if the entry has none."""

    format: str
    location: str


@dataclass(frozen=True, slots=True)
class OtherKind:
    """A view, or a table of another format. `name` states what it is."""

    name: str


def table_kind(entry: MetastoreEntry) -> PlacedTable | OtherKind:
    """What the entry states that it is. A table that states several things is Delta's if Spark's part does, as Delta
    adds Iceberg's parameters to its own; else it is none of ours."""
    kind = entry.kind.upper()
    if "VIEW" in kind:
        return OtherKind("view")
    if kind == _LINK:
        return OtherKind("link")
    formats = _formats(entry)
    if "delta" in formats and _provider(entry) != "delta" and _SYMLINKS in entry.input_format:
        return OtherKind("symlinks")
    if "delta" in formats and (len(formats) == 1 or _provider(entry) == "delta"):
        return PlacedTable("delta", _place(_of_spark(entry)))
    if len(formats) != 1:
        return OtherKind(" and ".join(sorted(formats)) or _other(entry))
    (found,) = formats
    if found == "paimon":
        return PlacedTable("paimon", _place(entry.parameters.get("paimon_location") or entry.location))
    return PlacedTable(found, "")


def stated_kind(parameters: Mapping[str, str]) -> str:
    """`table_type`, as Iceberg's catalogs know a table by it; `delta` for one of Delta, which may have both (UniForm):
    only Delta writes the Iceberg metadata of such a table."""
    of_delta = parameters.get(_PROVIDER, "").lower() == "delta"
    return "delta" if of_delta else parameters.get("table_type", "")


_LINK: Final = "LINK"


def _formats(entry: MetastoreEntry) -> set[str]:
    """Every format of ours that something in the entry names."""
    stated, handler = entry.parameters, entry.parameters.get("storage_handler", "").lower()
    named = {_provider(entry), stated.get("table_type", "").lower(), _HANDLERS.get(handler, "")}
    if "metadata_location" in stated:
        named.add("iceberg")
    if entry.input_format.startswith("org.apache.paimon.hive."):
        named.add("paimon")
    return named & set(_FORMATS)


def _provider(entry: MetastoreEntry) -> str:
    return entry.parameters.get(_PROVIDER, "").lower()


def _of_spark(entry: MetastoreEntry) -> str:
    location = "" if entry.location.endswith(PLACEHOLDER) else entry.location
    return entry.properties.get("path") or location


def _place(location: str) -> str:
    """A location of a metastore as in an address, "" if it cannot be one.

    Paths are not encoded, as Hadoop writes them: `file:/a b%20` is the folder `/a b%20`.
    """
    local = _LOCAL.fullmatch(location)
    path = local[1] if local else location
    if path.startswith("/"):
        return "" if {"..", "."} & set(path.split("/")) or "\0" in path else os.path.normpath(path).replace("//", "/")
    foreign = "://" not in location or location.startswith("file:") or _names_another(location)
    return "" if foreign else _S3.sub("s3://", location).rstrip("/")


def _names_another(location: str) -> bool:
    """Whether the location is again a name of a metastore, which is not followed."""
    try:
        return metastore_table(location) is not None
    except ValueError:
        return True


def _other(entry: MetastoreEntry) -> str:
    """What a table of no format of ours is: by its own words, else by the class that reads it."""
    stated = entry.parameters
    words = (_provider(entry), stated.get("table_type", "").lower(), stated.get("classification", "").lower())
    reader = re.sub(r"(InputFormat)?$", "", entry.input_format.rpartition(".")[2]).removeprefix("Mapred").lower()
    return next((word for word in (*words, reader) if _WORD.fullmatch(word)), "unknown")
