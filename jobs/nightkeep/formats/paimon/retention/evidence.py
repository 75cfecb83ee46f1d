"""What a snapshot tells of its lists beside the lists themselves -> what is read is whole, contradicts, or is unproven.

An Avro file that was cut at a block's end is a valid one. Snapshots tell the size of each manifest list since Paimon
1.0, rows of all, of base and of delta always (A/Snapshot.java); of an index manifest they tell its name alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.paimon.metadata.avro import Blocks, Container, read_blocks
from nightkeep.formats.paimon.metadata.entries import decoding, parse_index, parse_list
from nightkeep.protocol.table_files import Unproven
from nightkeep.storage import Storage

BASE, DELTA, CHANGELOG, INDEX = "baseManifestList", "deltaManifestList", "changelogManifestList", "indexManifest"
_ROWS: Final = {DELTA: "deltaRecordCount", CHANGELOG: "changelogRecordCount"}
_FIRST: Final = 1
"""The id of a table's first snapshot, which has nothing below it."""


@dataclass(frozen=True, slots=True)
class Told:
    """A manifest list, and by how many rows its entries are told to change a version; None where they are not."""

    name: str
    rows: int | None

    @classmethod
    def of(cls, raw: Mapping[str, object], key: str) -> Told:
        return cls(str(raw[key]), rows_told(raw, key))


@dataclass(frozen=True, slots=True)
class Read:
    """A metadata file as it was read; `unproven` where nothing tells that it is whole."""

    name: str
    container: Container
    digest: str
    unproven: Unproven | None

    @property
    def records(self) -> Sequence[Record]:
        return self.container.records


def require_known(raw: Mapping[str, object], *, subject: str) -> None:
    """Raises RefusedTable for a key that we do not know and that names metadata: what that keeps alive is unknown."""
    for key, value in raw.items():
        if key not in _KEYS and isinstance(value, str) and _METADATA.match(value):
            raise RefusedTable(subject, f"{key} names {value}, and is unknown", "use the engine's own cleaning")


def require_changelog(raw: Mapping[str, object], *, subject: str) -> None:
    """Raises CorruptMetadata for a version that tells of a changelog and names no list of one."""
    field = f"{CHANGELOG}Size" if raw.get(f"{CHANGELOG}Size") is not None else _ROWS[CHANGELOG]
    if raw.get(CHANGELOG) is None and (_number(raw, field) or 0) > 0:
        raise CorruptMetadata(subject, f"{CHANGELOG}, as {field} is {raw[field]}", "none")


def lost_index(name: str, before: str) -> Unproven:
    """Of a version without an index manifest: commits keep that of the version before, or write another one."""
    return Unproven(name, f"it names no index manifest, and {before} does", _INDEX_KINDS | {"index-manifest"})


def rows_told(raw: Mapping[str, object], key: str) -> int | None:
    """How many rows more the entries of a list add than they remove; None where the snapshot does not tell."""
    if key in _ROWS:
        return _number(raw, _ROWS[key])
    total, delta = _number(raw, "totalRecordCount"), _number(raw, _ROWS[DELTA])
    return None if total is None or delta is None else total - delta


def read_told_list(storage: Storage, raw: Mapping[str, object], key: str) -> Read:
    """A manifest list of a snapshot. Raises CorruptMetadata where its size or its rows are not those that are told."""
    name = f"manifest/{raw[key]}"
    data = storage.read(name)
    stated = _number(raw, f"{key}Size")
    if stated is not None and len(data) != stated:
        raise CorruptMetadata(name, f"{stated} bytes, as its snapshot says", f"{len(data)} bytes")
    container = parse_list(data, name)
    if not container.records and (rows := rows_told(raw, key)):
        raise CorruptMetadata(name, f"manifests of {rows} rows, as its snapshot says", "none")
    why = None if stated is not None else _why_unproven(raw, key, container, data, name)
    return Read(name, container, _digest(data), None if why is None else Unproven(name, why))


def read_index_manifest(storage: Storage, raw: Mapping[str, object], *, may_be_empty: bool) -> Read | None:
    """The index manifest of a snapshot, if it has one. `may_be_empty`: without rows there is nothing to index."""
    if raw.get(INDEX) is None:
        return None
    name = f"manifest/{raw[INDEX]}"
    data = storage.read(name)
    container = parse_index(data, name)
    whole = _is_whole(read_blocks(data, subject=name)) or (may_be_empty and not container.records)
    unproven = None if whole else Unproven(name, "a file cut at the end of a block looks like it", _INDEX_KINDS)
    return Read(name, container, _digest(data), unproven)


def require_once(metas: Iterable[Record], *, subject: str) -> None:
    """Raises CorruptMetadata for a manifest that is listed twice."""
    seen: set[object] = set()
    for meta in metas:
        if meta["_FILE_NAME"] in seen:
            raise CorruptMetadata(subject, "every manifest once", f"{meta['_FILE_NAME']} twice")
        seen.add(meta["_FILE_NAME"])


def require_rows(stated: int | None, found: int, *, subject: str) -> None:
    """Raises CorruptMetadata where entries do not add up to the rows that a snapshot tells."""
    if stated is not None and stated != found:
        raise CorruptMetadata(subject, f"entries of {stated} rows, as its snapshot says", f"entries of {found} rows")


def require_successor(storage: Storage, lists: Sequence[Read], following: str) -> None:
    """The base list of the next snapshot names what this one's lists add up to, whatever manifests were merged.

    Raises CorruptMetadata where it has another number of files.
    """
    name = f"manifest/{following}"
    expected, found = sum(map(_files, lists)), _files(Read(name, parse_list(storage.read(name), name), "", None))
    if expected != found:
        subject = " and ".join(each.name for each in lists)
        raise CorruptMetadata(subject, f"{found} files, as {name} of the next snapshot has", f"{expected}")


def _files(read: Read) -> int:
    with decoding(read.name, "numbers of files added and removed"):
        return sum(int(meta["_NUM_ADDED_FILES"]) - int(meta["_NUM_DELETED_FILES"]) for meta in read.records)


def _why_unproven(raw: Mapping[str, object], key: str, container: Container, data: bytes, subject: str) -> str | None:
    """Why a list of no told size may be cut; None for one that cannot be."""
    if not container.records:
        # The rows that it tells of are none, and so would those be that a cut removed.
        first = key == BASE and raw.get("id") == _FIRST
        return None if first else "it is empty, and its snapshot tells no size of it"
    whole = _is_whole(read_blocks(data, subject=subject))
    return None if whole else "a file cut at the end of a block looks like it, and its snapshot tells no size of it"


def _is_whole(blocks: Blocks) -> bool:
    """Whether a file cannot have lost blocks: its only one is not full, so that no other one was ever begun."""
    if len(blocks.sizes) != 1:
        return False
    ((records, size),) = blocks.sizes
    full = _JAVA_BLOCK_BYTES if blocks.by_java else _LEAST_BLOCK_BYTES
    return 0 < records != _OUR_BLOCK_RECORDS and size < full


def _number(raw: Mapping[str, object], key: str) -> int | None:
    value = raw.get(key)
    return value if type(value) is int else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


_JAVA_BLOCK_BYTES: Final = 64_000
"""Avro Java begins another block once one has so many bytes before compression (DataFileConstants)."""
_LEAST_BLOCK_BYTES: Final = 16_000
"""fastavro, which pypaimon writes with, and Avro's Rust implementation."""
_OUR_BLOCK_RECORDS: Final = 256
_INDEX_KINDS: Final = frozenset({"index"})
_METADATA: Final = re.compile("manifest-|index-manifest-|stat-")
_KEYS: Final = frozenset(
    {
        "version", "uuid", "id", "schemaId", BASE, f"{BASE}Size", DELTA, f"{DELTA}Size", CHANGELOG,
        f"{CHANGELOG}Size", INDEX, "commitUser", "commitIdentifier", "commitKind", "timeMillis", "logOffsets",
        "totalRecordCount", "deltaRecordCount", "changelogRecordCount", "watermark", "statistics", "properties",
        "nextRowId", "operation", "writerVersion", "tagCreateTime", "tagTimeRetained",
    }
)  # fmt: skip
"""Of snapshots, changelogs and tags (A/Snapshot.java, C/tag/Tag.java)."""
