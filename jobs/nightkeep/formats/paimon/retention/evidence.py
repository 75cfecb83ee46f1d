"""Sizes and row counts in a snapshot -> whether its lists are complete, contradict it, or are unproven.

An Avro file that was cut at the end of a block is still valid. Since Paimon 1.0 snapshots have the size of each
manifest list. They always have the rows of the total, base and delta (A/Snapshot.java). Of an index manifest they have
only the name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nightkeep.encodings.avro_container import Record
from nightkeep.encodings.avro_schemas import Schema
from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.paimon.metadata.avro import FILE_NAME, RECORDS, Blocks, Container, read_blocks
from nightkeep.formats.paimon.metadata.entries import decoding, parse_index, parse_list
from nightkeep.formats.paimon.metadata.row_totals import counts_removed_rows
from nightkeep.protocol.table_files import Unproven
from nightkeep.storage import Storage

BASE, DELTA, CHANGELOG, INDEX = "baseManifestList", "deltaManifestList", "changelogManifestList", "indexManifest"
_ROWS: Final = {DELTA: "deltaRecordCount", CHANGELOG: "changelogRecordCount"}
_FIRST: Final = 1
"""The id of a table's first snapshot, which has no parent."""


@dataclass(frozen=True, slots=True)
class StatedList:
    """A manifest list, and the row count of its entries (added less removed) by its snapshot, None if not stated."""

    name: str
    rows: int | None

    @classmethod
    def of(cls, raw: Mapping[str, object], key: str) -> StatedList:
        return cls(str(raw[key]), stated_rows(raw, key))


@dataclass(frozen=True, slots=True)
class Read:
    """A metadata file as read. `unproven` is set if nothing proves that it is complete."""

    name: str
    container: Container
    digest: str
    unproven: Unproven | None

    @property
    def records(self) -> Sequence[Record]:
        return self.container.records


def require_known(raw: Mapping[str, object], *, subject: str) -> None:
    """Raises RefusedTable for an unknown key that names metadata, because the files that it keeps alive are unknown."""
    for key, value in raw.items():
        if key not in _KEYS and isinstance(value, str) and _METADATA.match(value):
            raise RefusedTable(subject, f"{key} names {value}, and is unknown", "use the engine's own cleaning")


def require_changelog(raw: Mapping[str, object], *, subject: str) -> None:
    """Raises CorruptMetadata for a version that has rows or a size of a changelog, but no changelog list."""
    field = f"{CHANGELOG}Size" if raw.get(f"{CHANGELOG}Size") is not None else _ROWS[CHANGELOG]
    if raw.get(CHANGELOG) is None and (_number(raw, field) or 0) > 0:
        raise CorruptMetadata(subject, f"{CHANGELOG}, as {field} is {raw[field]}", "none")


def lost_index(name: str, before: str) -> Unproven:
    """The doubt about a version that lost its index manifest: each commit keeps its parent's or writes a new one."""
    return Unproven(name, f"it names no index manifest, and {before} does", _INDEX_KINDS | {"index-manifest"})


def stated_rows(raw: Mapping[str, object], key: str) -> int | None:
    """The rows that a list's entries add less those they remove. None if the snapshot does not state it."""
    if key in _ROWS:
        return _number(raw, _ROWS[key])
    total, delta = _number(raw, "totalRecordCount"), _number(raw, _ROWS[DELTA])
    return None if total is None or delta is None else total - delta


def read_named_list(storage: Storage, raw: Mapping[str, object], key: str) -> Read:
    """A manifest list of a snapshot. Raises CorruptMetadata if its size or rows differ from the snapshot's."""
    name = f"manifest/{raw[key]}"
    data = storage.read(name)
    stated = _number(raw, f"{key}Size")
    if stated is not None and len(data) != stated:
        raise CorruptMetadata(name, f"{stated} bytes, as its snapshot states", f"{len(data)} bytes")
    container = parse_list(data, name)
    require_own_name(container, name)
    if not container.records and (rows := stated_rows(raw, key)):
        raise CorruptMetadata(name, f"manifests of {rows} rows, as its snapshot states", "none")
    why = None if stated is not None else _why_unproven(raw, key, container, data, name)
    return Read(name, container, _digest(data), None if why is None else Unproven(name, why))


def read_index_manifest(storage: Storage, raw: Mapping[str, object], *, may_be_empty: bool) -> Read | None:
    """The index manifest of a snapshot, if it has one. `may_be_empty`: the version has no rows, so nothing to index."""
    if raw.get(INDEX) is None:
        return None
    name = f"manifest/{raw[INDEX]}"
    data = storage.read(name)
    container = parse_index(data, name)
    require_own_name(container, name)
    whole = _is_counted(container, name) or _is_whole(read_blocks(data, subject=name), own=_is_own(container))
    whole = whole or (may_be_empty and not container.records)
    unproven = None if whole else Unproven(name, "a file cut at the end of a block looks like it", _INDEX_KINDS)
    return Read(name, container, _digest(data), unproven)


def require_own_name(container: Container, name: str) -> None:
    """Raises CorruptMetadata for a file of Nightkeep's, whose header has its name, under the name of another one."""
    own = container.metadata.get(FILE_NAME)
    if own is not None and own != name.rpartition("/")[2].encode():
        raise CorruptMetadata(name, "a file of that name", f"the file {own.decode(errors='replace')}")


def _is_counted(container: Container, name: str) -> bool:
    """Whether the header of a file of Nightkeep's counts its records. Raises CorruptMetadata for another number."""
    stated = container.metadata.get(RECORDS)
    if stated is not None and stated != str(len(container.records)).encode():
        raise CorruptMetadata(name, f"{stated.decode(errors='replace')} entries", str(len(container.records)))
    return stated is not None


def require_once(metas: Iterable[Record], *, subject: str) -> None:
    """Raises CorruptMetadata for a manifest that is listed twice."""
    seen: set[object] = set()
    for meta in metas:
        if meta["_FILE_NAME"] in seen:
            raise CorruptMetadata(subject, "every manifest once", f"{meta['_FILE_NAME']} twice")
        seen.add(meta["_FILE_NAME"])


def require_rows(stated: int | None, found: int, schemas: Iterable[Schema], *, subject: str) -> None:
    """Raises CorruptMetadata if the entries do not add up to the snapshot's row count. `schemas` are their manifests'.
    A count of Paimon 0.5 may be larger."""
    if stated is None or stated == found or counts_removed_rows(schemas, stated=stated, found=found):
        return
    raise CorruptMetadata(subject, f"entries of {stated} rows, as its snapshot states", f"entries of {found} rows")


def require_successor(storage: Storage, lists: Sequence[Read], following: str) -> None:
    """Check the number of files against the next snapshot's base list, which lists the state after this snapshot.

    Merged manifests do not change the number. Raises CorruptMetadata if it differs.
    """
    name = f"manifest/{following}"
    expected, found = sum(map(_files, lists)), _files(Read(name, parse_list(storage.read(name), name), "", None))
    if expected != found:
        subject = " and ".join(read.name for read in lists)
        raise CorruptMetadata(subject, f"{found} files, as {name} of the next snapshot has", f"{expected}")


def _files(read: Read) -> int:
    with decoding(read.name, "numbers of files added and removed"):
        return sum(int(meta["_NUM_ADDED_FILES"]) - int(meta["_NUM_DELETED_FILES"]) for meta in read.records)


def _why_unproven(raw: Mapping[str, object], key: str, container: Container, data: bytes, subject: str) -> str | None:
    """Why a list without a stated size may be cut. None if it cannot be."""
    if not container.records:
        # An empty list has no rows, but a cut list may be empty too.
        first = key == BASE and raw.get("id") == _FIRST
        return None if first else "it is empty, and its snapshot states no size of it"
    whole = _is_whole(read_blocks(data, subject=subject), own=_is_own(container))
    return None if whole else "a file cut at the end of a block looks like it, and its snapshot states no size of it"


def _is_own(container: Container) -> bool:
    """Whether Nightkeep wrote the file. Earlier releases stated its name in the header and not its records."""
    return FILE_NAME in container.metadata


def _is_whole(blocks: Blocks, *, own: bool) -> bool:
    """Whether a file cannot have lost blocks: its last block is not full, so there was no further one.

    Other writers fill a block by bytes, and its last record may be large. So only a single block of theirs is judged.
    """
    if own:
        return _is_whole_of_ours(blocks.sizes)
    if len(blocks.sizes) != 1:
        return False
    ((records, size),) = blocks.sizes
    full = _JAVA_BLOCK_BYTES if blocks.by_java else _LEAST_BLOCK_BYTES
    return 0 < records != _OUR_BLOCK_RECORDS and size < full


def _is_whole_of_ours(sizes: Sequence[tuple[int, int]]) -> bool:
    if len(sizes) < 2:
        return bool(sizes) and sizes[0][0] not in _OUR_FIRST_BLOCKS
    (before, size), (last, _) = sizes[-2:]
    return last < min(_OUR_BLOCK_RECORDS, before * _OUR_BLOCK_BYTES // max(1, size))


def _number(raw: Mapping[str, object], key: str) -> int | None:
    value = raw.get(key)
    return value if type(value) is int else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


_JAVA_BLOCK_BYTES: Final = 64_000
"""Avro Java starts a new block at this many bytes before compression (DataFileConstants)."""
_LEAST_BLOCK_BYTES: Final = 16_000
"""The same for fastavro, which pypaimon uses, and for Avro's Rust implementation."""
_OUR_BLOCK_RECORDS: Final = 256
_OUR_FIRST_BLOCKS: Final = frozenset({16, 256})
"""Records of a full first block, by release."""
_OUR_BLOCK_BYTES: Final = 1 << 20
"""Later blocks have as many records as fit into this by the block before (encodings/avro_container)."""
_INDEX_KINDS: Final = frozenset({"index"})
_METADATA: Final = re.compile("manifest-|index-manifest-|stat-")
_KEYS: Final = frozenset(
    {
        "version",
        "uuid",
        "id",
        "schemaId",
        BASE,
        f"{BASE}Size",
        DELTA,
        f"{DELTA}Size",
        CHANGELOG,
        f"{CHANGELOG}Size",
        INDEX,
        "commitUser",
        "commitIdentifier",
        "commitKind",
        "timeMillis",
        "logOffsets",
        "totalRecordCount",
        "deltaRecordCount",
        "changelogRecordCount",
        "watermark",
        "statistics",
        "properties",
        "nextRowId",
        "operation",
        "writerVersion",
        "tagCreateTime",
        "tagTimeRetained",
    }
)
"""Known keys of snapshots, changelogs and tags (A/Snapshot.java, C/tag/Tag.java)."""
