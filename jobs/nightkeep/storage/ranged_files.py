"""A function that fetches ranges -> a file for random reads, which makes few requests.

A request takes as long as the transfer of a few hundred KiB, so each one asks for at least as much.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from io import IOBase
from typing import Final, TypeAlias, cast

import pyarrow as pa

AT_LEAST: Final = 256 * 1024
Fetch: TypeAlias = Callable[[int, int], bytes]
"""The bytes from a start to an end, both inside the file."""


def ranged_file(fetch: Fetch, *, subject: str, size: int, start: int, held: bytes) -> pa.NativeFile:
    """A file of `size` bytes, of which those from `start` on are `held` already. Reads raise as `fetch`."""
    reader = _RangedFile(fetch, subject=subject, size=size, start=start, held=held)
    return pa.PythonFile(cast(IOBase, reader), mode="r")


class _RangedFile:
    """The methods that pa.PythonFile needs to read a file. Keeps the bytes of the last request."""

    closed = False

    def __init__(self, fetch: Fetch, *, subject: str, size: int, start: int, held: bytes) -> None:
        self._ask, self._subject, self._size = fetch, subject, size
        self._start, self._held = start, held
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        start = min(self._at, end)
        if start < end and not self._start <= start <= end <= self._start + len(self._held):
            self._fetch(start, max(end, min(start + AT_LEAST, self._size)))
        self._at = end
        return self._held[start - self._start : end - self._start] if start < end else b""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True

    def _fetch(self, start: int, end: int) -> None:
        held = self._ask(start, end)
        if len(held) != end - start:
            raise OSError(f"{self._subject}: expected {end - start} bytes from {start} on, found {len(held)}")
        self._start, self._held = start, held
