"""Folders of a table -> is anything of another table in them, as its own metadata tells?"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.iceberg.live import stored_name
from nightkeep.formats.iceberg.table_metadata import Raw, decode, objects, text
from nightkeep.limits import DOCUMENT
from nightkeep.storage import Storage, Stored
from nightkeep.territory import whose_folder

_VERSION: Final = re.compile(r"[.]metadata[.]json(?:[.]gz)?\Z")
_WHOLE_BYTES: Final = 64 * 1024
"""What is not much longer than its beginning is read in one request."""
_BEGINNING_BYTES: Final = 4096
"""Java's, pyiceberg's and ours have the UUID in the first few hundred."""
_THREADS: Final = 8
_AT_ONCE: Final = 10_000
_REMEMBERED: Final = 1 << 17


def require_alone(table: str, storage: Storage, folder: str, loaded: tuple[Raw, str]) -> None:
    """Every version in this folder that the current one does not know is of this table as well.

    Raises RefusedTable for one of another table, and for one that cannot be read: its data may be anywhere here. What
    a killed writer left has no end, and is nobody's current version.
    """
    raw, location = loaded
    own = text(raw, "table-uuid", subject=location)
    log = objects(raw, "metadata-log", subject=location)
    known = {stored_name(text(entry, "metadata-file", subject=location)) for entry in log} | {stored_name(location)}
    others = [file for file in storage.list(folder) if file.name not in known and _VERSION.search(file.name)]
    for name, found in _tables(table, storage, others):
        if found not in (None, own):
            feature = f"{name} in its folder is the metadata of another table, {found}"
            raise RefusedTable(
                table,
                feature,
                "give each table a folder of its own; which of the two is in use is what its catalog says",
            )


def require_one_format(table: str, storage: Storage, home: str) -> None:
    """Raises RefusedTable where the table's own folder is that of a table of another format as well: what that one
    needs is known to nobody here."""
    there = {folder.rpartition("/")[2] for folder in storage.folders(home)}
    found = {name for name in _SIGNS if name in there}
    # Any folder may have this name; what it holds is Paimon's alone.
    if "schema" in found and not any(_PAIMON.search(file.name) for file in storage.list(f"{home}/schema")):
        found.remove("schema")
    for name in sorted(found):
        feature = f"{home}/{name} in its folder is the metadata of a table of {_SIGNS[name]}'s"
        raise RefusedTable(table, feature, whose_folder(_SIGNS[name], home))


_SIGNS: Final = {"_delta_log": "Delta", ".hoodie": "Hudi", "schema": "Paimon"}
_PAIMON: Final = re.compile("/schema-[0-9]+\\Z")


_LOCATIONS: Final[dict[str, str]] = {}
"""By metadata file, none of which is ever written twice."""


def location_in(storage: Storage, metadata: str) -> str:
    """The location of the table whose metadata file is at `metadata`. Raises MissingFile, CorruptMetadata."""
    if metadata not in _LOCATIONS:
        name = stored_name(metadata)
        with storage.open(name) as source:
            told = _LOCATION_FIRST.match(_unpacked(source.read(_BEGINNING_BYTES)))
        found = json.loads(told[1]) if told else None
        if not isinstance(found, str):
            found = text(decode(storage.read(name), subject=metadata), "location", subject=metadata)
        if len(_LOCATIONS) >= _REMEMBERED:
            _LOCATIONS.clear()
        _LOCATIONS[metadata] = found
    return _LOCATIONS[metadata]


def _tables(table: str, storage: Storage, files: Sequence[Stored]) -> Iterator[tuple[str, str | None]]:
    """Each file's name and the table it is of; None for what is gone by now, or was never finished."""

    def told(file: Stored) -> str | None:
        try:
            return _table_of(storage, file)
        except MissingFile:
            return None
        except CorruptMetadata as failure:
            feature = f"{file.name} in its folder may be the metadata of another table: it cannot be read ({failure})"
            raise RefusedTable(table, feature, "move that file away if no table needs it") from failure

    with ThreadPoolExecutor(_THREADS) as threads:
        for start in range(0, len(files), _AT_ONCE):
            some = files[start : start + _AT_ONCE]
            yield from zip((file.name for file in some), threads.map(told, some), strict=True)


_KNOWN: Final[dict[tuple[str, Stored], str | None]] = {}
"""What was read, by store: a file of the same name, size and time is not asked twice."""


def _table_of(storage: Storage, file: Stored) -> str | None:
    """None for a file that ends before it says."""
    try:
        return _KNOWN[storage.root, file]
    except KeyError:
        found = _read(storage, file)
    if len(_KNOWN) >= _REMEMBERED:
        _KNOWN.clear()
    _KNOWN[storage.root, file] = found
    return found


def _read(storage: Storage, file: Stored) -> str | None:
    if file.bytes > _WHOLE_BYTES:
        with storage.open(file.name) as source:
            told = _UUID_FIRST.match(_unpacked(source.read(_BEGINNING_BYTES)))
        if told:
            return told[1].decode()
    data = storage.read(file.name)
    try:
        return text(decode(data, subject=file.name), "table-uuid", subject=file.name)
    except CorruptMetadata:
        if not _is_torn(data):
            raise
    told = _UUID_FIRST.match(_unpacked(data))
    return told[1].decode() if told else None


_PLAIN: Final = rb'"[^"\\]*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?[0-9]+|true|false|null)\s*,\s*'
_UUID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _PLAIN + rb')*?"table-uuid"\s*:\s*"([0-9A-Za-z-]+)"')
_LOCATION_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _PLAIN + rb')*?"location"\s*:\s*("(?:[^"\\]|\\.)*")')
"""A UUID, or a location, that stands before anything nested: what is further inside may be a property of that name."""


def _unpacked(data: bytes) -> bytes:
    """As much as there is of a text that gzip may have compressed; nothing where it is neither."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(data, DOCUMENT.value)
    except zlib.error:
        return b""


def _is_torn(data: bytes) -> bool:
    """Whether this is the beginning of a JSON object alone, be it compressed, or nothing: blocks that were never
    written read as zeros."""
    if data[:2] == b"\x1f\x8b":
        return _is_cut(data)
    written = data.rstrip(b"\0").decode(errors="replace").strip()
    if not written.startswith("{"):
        return not written or data == b"\x1f"
    try:
        json.loads(written)
    except json.JSONDecodeError as failure:
        # A string without an end goes on to that of the text; another word or escape has at most six letters.
        return failure.msg.startswith("Unterminated string") or failure.pos >= len(written) - _LONGEST_WORD
    except (ValueError, RecursionError):
        return False
    return False


_LONGEST_WORD: Final = 6


def _is_cut(packed: bytes) -> bool:
    """Whether a compressed text has no end."""
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unpacking.decompress(packed, DOCUMENT.value)
    except zlib.error:
        return False
    return not unpacking.eof and text.lstrip()[:1] in (b"", b"{")
