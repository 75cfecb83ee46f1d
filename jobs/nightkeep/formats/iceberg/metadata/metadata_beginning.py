"""First bytes of a metadata file -> the table's UUID and location. Reads the whole file only if they are not there."""

from __future__ import annotations

import json
import re
import zlib
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.locations import stored_name
from nightkeep.formats.iceberg.metadata.table_metadata import decode, text
from nightkeep.limits import DOCUMENT
from nightkeep.storage import ListedFile, Storage


def location_in(storage: Storage, metadata: str) -> str:
    """The location of the table whose metadata file is at `metadata`. Raises MissingFile, CorruptMetadata."""
    if metadata not in _LOCATIONS:
        name = stored_name(metadata)
        with storage.open(name) as source:
            match = _LOCATION_FIRST.match(_unpacked(source.read(_BEGINNING_BYTES)))
        location = json.loads(match[1]) if match else None
        if not isinstance(location, str):
            location = text(decode(storage.read(name), subject=metadata), "location", subject=metadata)
        if len(_LOCATIONS) >= _REMEMBERED:
            _LOCATIONS.clear()
        _LOCATIONS[metadata] = location
    return _LOCATIONS[metadata]


_WHOLE_BYTES: Final = 64 * 1024
"""Files up to this size are read whole, in one request."""


_BEGINNING_BYTES: Final = 4096
"""In files of Java, pyiceberg and Nightkeep the UUID is within the first few hundred bytes."""


_REMEMBERED: Final = 1 << 17


_LOCATIONS: Final[dict[str, str]] = {}
"""Location by metadata file. A metadata file never changes."""


_TABLE_IDS: Final[dict[tuple[str, ListedFile], str | None]] = {}
"""UUIDs already read, by root of the storage and by file: a file of the same name, size and time is not read again."""


def table_id(storage: Storage, file: ListedFile) -> str | None:
    """The table's UUID; None for a truncated file that ends before it."""
    try:
        return _TABLE_IDS[storage.root, file]
    except KeyError:
        uuid = _read_table_id(storage, file)
    if len(_TABLE_IDS) >= _REMEMBERED:
        _TABLE_IDS.clear()
    _TABLE_IDS[storage.root, file] = uuid
    return uuid


def _read_table_id(storage: Storage, file: ListedFile) -> str | None:
    if file.bytes > _WHOLE_BYTES:
        with storage.open(file.name) as source:
            match = _UUID_FIRST.match(_unpacked(source.read(_BEGINNING_BYTES)))
        if match:
            return match[1].decode()
    data = storage.read(file.name)
    try:
        return text(decode(data, subject=file.name), "table-uuid", subject=file.name)
    except CorruptMetadata:
        if not _is_torn(data):
            raise
    match = _UUID_FIRST.match(_unpacked(data))
    return match[1].decode() if match else None


_PLAIN: Final = rb'"[^"\\]*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?[0-9]+|true|false|null)\s*,\s*'


_UUID_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _PLAIN + rb')*?"table-uuid"\s*:\s*"([0-9A-Za-z-]+)"')


_LOCATION_FIRST: Final = re.compile(rb"\s*\{\s*(?:" + _PLAIN + rb')*?"location"\s*:\s*("(?:[^"\\]|\\.)*")')
"""Match a UUID or a location before any nested value: further inside, a property may have the same name."""


def _unpacked(data: bytes) -> bytes:
    """The data, decompressed as far as possible if it begins as gzip does; empty if gzip's bytes are invalid."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(data, DOCUMENT.value)
    except zlib.error:
        return b""


def _is_torn(data: bytes) -> bool:
    """Whether the data is a truncated JSON object, compressed or not, or empty.

    Zeros at the end do not count: blocks that were never written read as zeros.
    """
    if data[:2] == b"\x1f\x8b":
        return _is_cut(data)
    written = data.rstrip(b"\0").decode(errors="replace").strip()
    if not written.startswith("{"):
        return not written or data == b"\x1f"
    try:
        json.loads(written)
    except json.JSONDecodeError as failure:
        # A truncated string is unterminated. Any other truncated token has at most six characters.
        return failure.msg.startswith("Unterminated string") or failure.pos >= len(written) - _LONGEST_WORD
    except (ValueError, RecursionError):
        return False
    return False


_LONGEST_WORD: Final = 6


def _is_cut(packed: bytes) -> bool:
    """Whether compressed data is truncated and began as a JSON object."""
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unpacking.decompress(packed, DOCUMENT.value)
    except zlib.error:
        return False
    return not unpacking.eof and text.lstrip()[:1] in (b"", b"{")
