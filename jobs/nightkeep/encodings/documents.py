"""JSON of metadata files, plain or compressed by gzip -> objects. Sizes are limited before unpacking and parsing."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from typing import Final, TypeVar

from nightkeep.errors import CorruptMetadata, reason_of
from nightkeep.limits import DOCUMENT, WATCH
from nightkeep.model.json_values import JsonObject, JsonValue

Parsed = TypeVar("Parsed")

GZIP: Final = b"\x1f\x8b"
"""The first bytes of a file compressed by gzip."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_WITH_HEADER: Final = zlib.MAX_WBITS | 16


def parse_object(data: bytes | str, *, subject: str) -> JsonObject:
    """A JSON object. Raises CorruptMetadata naming `subject` for anything else, RefusedTable beyond limits.DOCUMENT."""
    value: JsonValue = parse(data, json.loads, subject=subject)
    if not isinstance(value, dict):
        raise CorruptMetadata(subject, "a JSON object", f"a {_NAMES.get(type(value), 'null')}")
    return value


def parse(data: bytes | str, parser: Callable[[bytes | str], Parsed], *, subject: str) -> Parsed:
    """The result of `parser` for a document, which may be any JSON value. Otherwise raises as `parse_object`."""
    DOCUMENT.require(len(data), subject)
    WATCH.took(len(data), subject)
    try:
        value = parser(data)
    except RecursionError as failure:
        raise CorruptMetadata(subject, "JSON", "values too deep within each other") from failure
    except (ValueError, MemoryError) as failure:
        raise CorruptMetadata(subject, "JSON", reason_of(failure)) from failure
    if _SURROGATE.search(data if isinstance(data, bytes) else data.encode(errors="replace")):
        _require_text(value, subject)
    return value


def _require_text(value: object, subject: str) -> None:
    """Raises CorruptMetadata for half a surrogate pair: JSON can escape one, names of files and columns cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as failure:
        raise CorruptMetadata(subject, "JSON of whole characters", "half a surrogate pair") from failure


def gunzip(data: bytes, *, subject: str) -> bytes:
    """The unpacked text of all gzip members. Raises as `parse_object`; stops unpacking at the limit."""
    text, most = bytearray(), DOCUMENT.value
    try:
        while data:
            unpacking = zlib.decompressobj(_WITH_HEADER)
            text += unpacking.decompress(data, most + 1 - len(text))
            DOCUMENT.require(len(text), subject)
            if not unpacking.eof:
                raise CorruptMetadata(subject, "a text compressed by gzip", f"no end after {len(text)} bytes")
            # Zeros after a member are padding, as in gzip(1).
            data = unpacking.unused_data.lstrip(b"\0")
    except zlib.error as failure:
        raise CorruptMetadata(subject, "a text compressed by gzip", reason_of(failure)) from failure
    return bytes(text)


_NAMES: Final = {list: "list", str: "text", int: "number", float: "number", bool: "boolean"}
