"""Blocks of an Avro container <-> compressed bytes. Every codec limits the unpacked size."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import zstandard

from nightkeep.limits import BLOCK

FAILURES: Final = (zlib.error, zstandard.ZstdError, pa.ArrowException, OSError)
"""What `unpack` may raise besides ValueError."""


@dataclass(frozen=True, slots=True)
class Codec:
    """A codec by its Avro `name`. `unpack` returns at most limits.BLOCK bytes, or raises."""

    name: str
    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes]


def _inflate(content: bytes) -> bytes:
    # Avro's deflate has neither header nor checksum (negative window bits).
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    plain = stream.decompress(content, BLOCK.value + 1)
    _require_room(len(plain))
    if not stream.eof:
        raise ValueError(f"a deflate stream without an end after {len(plain)} bytes")
    return plain


def _deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def _unzstd(content: bytes) -> bytes:
    # Java's frames do not state their size, so only the streaming form reads them.
    with zstandard.ZstdDecompressor().stream_reader(content) as stream:
        plain: bytes = stream.read(BLOCK.value + 1)
    _require_room(len(plain))
    return plain


def _zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


_SNAPPY: Final = pa.Codec("snappy")
_CRC_BYTES: Final = 4


def _unsnap(content: bytes) -> bytes:
    packed, crc = content[:-_CRC_BYTES], content[-_CRC_BYTES:]
    size = _varint(packed)
    _require_room(size)
    plain: bytes = _SNAPPY.decompress(packed, decompressed_size=size, asbytes=True)
    if zlib.crc32(plain).to_bytes(_CRC_BYTES, "big") != crc:
        raise ValueError(f"a block with checksum {zlib.crc32(plain):#010x}, not 0x{crc.hex()}")
    return plain


def _snap(content: bytes) -> bytes:
    packed: bytes = _SNAPPY.compress(content, asbytes=True)
    return packed + zlib.crc32(content).to_bytes(_CRC_BYTES, "big")


def _varint(data: bytes) -> int:
    """The unpacked size at the start of a raw snappy block."""
    value = 0
    for place, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value
    raise ValueError("a snappy block without its size")


def _require_room(size: int) -> None:
    most = BLOCK.value
    if size > most:
        raise ValueError(f"a block of {size} bytes or more, above the limit of {most} ({BLOCK.variable})")


def _same(content: bytes) -> bytes:
    return content


CODECS: Final[Mapping[str, Codec]] = {
    codec.name: codec
    for codec in (
        Codec("null", _same, _same),
        Codec("deflate", _deflate, _inflate),
        Codec("snappy", _snap, _unsnap),
        Codec("zstandard", _zstd, _unzstd),
    )
}
