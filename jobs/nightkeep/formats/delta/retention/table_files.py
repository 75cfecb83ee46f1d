"""Table -> the names of files that belong to it, and so what a sweep may remove.

DeltaTable.scala (isHiddenDirectory), DelayedCommitProtocol.scala, PROTOCOL.md ("File Types"). VACUUM removes every old
file that is not hidden. We take only files whose name and folder match those of a writer of this table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.metadata.actions import Raw
from nightkeep.formats.delta.metadata.head import LogHead, head
from nightkeep.formats.delta.metadata.naming import LOG
from nightkeep.formats.delta.metadata.partition import folder_names
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaSchema, is_true, parse_partitions
from nightkeep.model import Address
from nightkeep.model.run_names import MARK
from nightkeep.model.sweep_rules import floor_ms
from nightkeep.protocol.foreign_tables import foreign_patterns, require_one_format
from nightkeep.protocol.table_files import FileKind, TableFiles, TableFolder
from nightkeep.storage import Storage


def find_table_files(address: Address, storage: Storage) -> TableFiles:
    """The table's folder, without tables below it.

    Raises RefusedTable if a table of another format is in the same folder, MissingFile, CorruptMetadata.
    """
    newest = head(storage, table=address.name)
    # UniForm's Iceberg metadata belongs to this table.
    own = {"Delta", "Iceberg"} if _is_universal(newest.metadata) else {"Delta"}
    require_one_format(address.name, storage, "", own=own)
    schema = parse_partitions(newest.metadata, newest.protocol, table=address.name)
    return TableFiles(
        table=address,
        storage=storage,
        home="",
        places=(TableFolder("", tuple(kinds(schema))),),
        foreign=tuple(foreign_patterns()),
        floor_ms=floor_ms(address.format),
        dry_only=_only_listed(address.name, newest),
        any_path=True,
    )


def _only_listed(table: str, newest: LogHead) -> RefusedTable | None:
    """Why files may be listed and none may be removed: a writer must know a feature that we do not."""
    try:
        newest.refuse_changes(table)
    except RefusedTable as refusal:
        return refusal
    return None


def _is_universal(metadata: Raw) -> bool:
    properties = metadata.get("configuration")
    formats = str(properties.get(_UNIVERSAL, "")) if isinstance(properties, Mapping) else ""
    return "iceberg" in (name.strip().lower() for name in formats.split(","))


def kinds(schema: DeltaSchema) -> Iterator[FileKind]:
    """Kinds of files that a sweep may remove. Of the log, only unfinished writes under names that readers ignore."""
    folders = _folders(schema)
    yield FileKind("staged commit", rf"{LOG}/\.staged-{MARK}-[0-9A-Za-z-]+\.json(?:\.tmp)?")
    yield FileKind("staged checkpoint", rf"{LOG}/\.staged-{MARK}-[0-9A-Za-z-]+\.parquet(?:\.tmp)?")
    # Spark, Flink and the Java kernel rename `.<name>.<uuid>.tmp`; Hadoop keeps a checksum beside it.
    yield FileKind("log temporary", rf"{LOG}/(?:_sidecars/)?\.[^/]+\.{_UUID}\.tmp(?:\.crc)?")
    # delta-rs renames `_commit_<uuid>.json.tmp`; a store of object_store on local disk stages `<name>#<number>`.
    yield FileKind("log temporary", rf"{LOG}/(?:_sidecars/)?(?:_commit_{_UUID}\.json\.tmp|[^/]+#[0-9]+)")
    yield FileKind("deletion vector", rf"(?:{_PREFIX}/)?deletion_vector_{_UUID}\.bin")
    yield FileKind("change data", rf"_change_data/{folders}{_DATA}")
    yield FileKind("data", rf"{folders}(?:{_DATA}|{_TRINO})")
    yield FileKind("data temporary", rf"(?:_change_data/)?{folders}{_DATA}#[0-9]+")


def _folders(schema: DeltaSchema) -> str:
    """Pattern of folders: none, one for each partition column in order, or a random prefix if the table uses one."""
    choices = ["".join(_column(schema, name) for name in schema.partition_columns)]
    if schema.mapping is not ColumnMapping.NONE or is_true(schema.configuration, "delta.randomizeFilePrefixes"):
        choices.append(f"[0-9A-Za-z]{{{_prefix_length(schema.configuration)}}}/")
    return f"(?:{'|'.join(choice for choice in choices if choice)})?" if any(choices) else ""


def _column(schema: DeltaSchema, name: str) -> str:
    """Pattern of a column's folder. With column mapping added later, a folder has the logical or the physical name."""
    names = dict.fromkeys((*folder_names(name), *folder_names(schema.field(name).physical)))
    return f"(?:{'|'.join(map(_literal, names))})=[^/]*/"


def _prefix_length(configuration: Mapping[str, str]) -> int:
    length = configuration.get("delta.randomPrefixLength", "2").strip()
    return int(length) if re.fullmatch("[1-9][0-9]?", length) else 2


def _literal(text: str) -> str:
    """The text as a pattern, with escapes that Python, RE2 and Rust read alike."""
    return "".join(f"\\x{ord(c):02x}" if c.isascii() and not (c.isalnum() or c == "_") else c for c in text)


_UUID: Final = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_DATA: Final = r"[^/._][^/]*\.parquet"
_TRINO: Final = rf"[0-9]{{8}}_[0-9]{{6}}_[0-9]{{5}}_[0-9a-z]{{5}}[_-]{_UUID}"
"""Trino names data files after their query's id, without a suffix."""
_PREFIX: Final = "[0-9A-Za-z][0-9A-Za-z-]*"
_UNIVERSAL: Final = "delta.universalFormat.enabledFormats"
