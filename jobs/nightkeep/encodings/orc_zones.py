"""Stripe of an ORC file -> the time zone of its writer; its name -> when its offset from UTC changed.

A stripe's footer names the zone (ORC specification v1, "Stripe Footer"). Its rules come from the machine's time zone
database, which Arrow's reader of ORC uses too.
"""

from __future__ import annotations

import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import zstandard

from nightkeep.encodings.orc_footer import OrcStripe, message
from nightkeep.encodings.orc_times import ZoneRules
from nightkeep.limits import BLOCK

UNREADABLE: Final = (ValueError, LookupError, OSError, zlib.error, zstandard.ZstdError, struct.error)
"""What `writer_zone` and `zone_rules` may raise."""

_WRITER_ZONE: Final = 3
"""Field of StripeFooter in orc_proto.proto."""
_FOLDER: Final = "/usr/share/zoneinfo"
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")
_OF_UTC: Final = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", "Zulu", "Universal", "UCT", "GMT0", "Greenwich"})


def writer_zone(source: pa.NativeFile, stripe: OrcStripe, codec: int) -> str | None:
    """The zone of a stripe's writer; None if it is UTC or not named, which readers take for UTC."""
    source.seek(stripe.footer)
    stored = source.read(stripe.footer_bytes)
    names = message(b"".join(_unpacked(stored, codec))).get(_WRITER_ZONE, (b"",))
    name = names[-1]
    if isinstance(name, int):
        raise ValueError("a stripe's time zone as text, found a number")
    text = name.decode()
    return None if not text or text in _OF_UTC else text


@cache
def zone_rules(name: str) -> ZoneRules:
    """Raises ValueError for a name that is none, and OSError for a zone that the machine does not have."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"the name of a time zone, found {len(name)} characters")
    data = Path(os.environ.get("TZDIR") or _FOLDER, name).read_bytes()
    # RFC 8536: a header and a block with times of 32 bits, then the same with 64 bits.
    return _rules(data, _end_of_block(data, 0, 4), 8)


def _counts(data: bytes, at: int) -> tuple[int, int, int, int, int, int]:
    if data[at : at + 4] != b"TZif" or data[at + 4 : at + 5] < b"2":
        raise ValueError("a time zone file of version 2 or later")
    utc, std, leaps, times, types, letters = struct.unpack_from(">6I", data, at + _HEADER - 24)
    return utc, std, leaps, times, types, letters


_HEADER: Final = 44
_TYPE_BYTES: Final = 6


def _end_of_block(data: bytes, at: int, width: int) -> int:
    utc, std, leaps, times, types, letters = _counts(data, at)
    return at + _HEADER + times * (width + 1) + types * _TYPE_BYTES + letters + leaps * (width + 4) + std + utc


def _rules(data: bytes, at: int, width: int) -> ZoneRules:
    _, _, _, times, types, _ = _counts(data, at)
    at += _HEADER
    starts = np.frombuffer(data, f">i{width}", times, at).astype(np.int64)
    kinds = np.frombuffer(data, np.uint8, times, at + times * width)
    raw = np.frombuffer(
        data, np.dtype([("offset", ">i4"), ("dst", "u1"), ("name", "u1")]), types, at + times * (width + 1)
    )
    offsets = raw["offset"].astype(np.int64)
    first = int(np.argmin(raw["dst"]))
    return ZoneRules(starts, np.concatenate(([offsets[first]], offsets[kinds])))


def _unpacked(stored: bytes, codec: int) -> Iterator[bytes]:
    """The chunks of a compressed stream (ORC specification v1, "Compression")."""
    if codec == 0:
        yield stored
        return
    unpack = _CODECS[codec]
    while stored:
        head = int.from_bytes(stored[:3], "little")
        chunk, stored = stored[3 : 3 + (head >> 1)], stored[3 + (head >> 1) :]
        yield chunk if head & 1 else unpack(chunk)


def _inflate(chunk: bytes) -> bytes:
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, BLOCK.value)


def _unsnap(chunk: bytes) -> bytes:
    size = shift = at = 0
    while True:
        size |= (chunk[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if chunk[at - 1] < 0x80:
            break
    BLOCK.require(size, "a stripe's footer")
    plain: bytes = pa.Codec("snappy").decompress(chunk, decompressed_size=size, asbytes=True)
    return plain


def _unzstd(chunk: bytes) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(chunk) as stream:
        plain: bytes = stream.read(BLOCK.value)
    return plain


def _unlz4(chunk: bytes) -> bytes:
    """A block of LZ4. Arrow decodes it only where the size is known, and ORC does not state it."""
    plain, at = bytearray(), 0
    while at < len(chunk):
        token = chunk[at]
        size, at = _length(chunk, at + 1, token >> 4)
        plain += chunk[at : at + size]
        at += size
        if at >= len(chunk):
            break
        back = int.from_bytes(chunk[at : at + 2], "little")
        size, at = _length(chunk, at + 2, token & 15)
        for _ in range(size + 4):
            plain.append(plain[-back])
        BLOCK.require(len(plain), "a stripe's footer")
    return bytes(plain)


def _length(chunk: bytes, at: int, size: int) -> tuple[int, int]:
    if size == 15:
        while True:
            size, at = size + chunk[at], at + 1
            if chunk[at - 1] < 255:
                break
    return size, at


_CODECS: Final[Mapping[int, Callable[[bytes], bytes]]] = {1: _inflate, 2: _unsnap, 4: _unlz4, 5: _unzstd}
