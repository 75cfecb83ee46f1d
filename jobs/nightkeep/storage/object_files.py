"""Objects as files: ranges are read in few requests; bytes are written in parts that are invisible until the last.

A request takes as long as the transfer of a few hundred KiB, so each one asks for at least as much.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import IOBase
from typing import TYPE_CHECKING, BinaryIO, Final, cast

import obstore
import pyarrow as pa
from obstore.exceptions import BaseError, GenericError, NotSupportedError

from nightkeep.storage.client_failures import asking
from nightkeep.storage.clients import Client

if TYPE_CHECKING:
    from obstore import WritableFile
    from typing_extensions import Buffer

_AT_LEAST: Final = 256 * 1024
_PART: Final = 8 * 1024 * 1024
_PARTS_AT_ONCE: Final = 4


def open_object(client: Client, key: str, *, subject: str) -> pa.NativeFile:
    """Open an object for random reads. Opening already reads its end: a footer or a small file needs no other request.

    Raises MissingFile, and OSError if the store does not answer; so do the reads.
    """
    with asking(subject):
        try:
            tail = obstore.get(client, key, options={"range": {"suffix": _AT_LEAST}})
            size, start, held = tail.meta["size"], tail.range[0], bytes(tail.bytes())
        except (GenericError, NotSupportedError):
            # An empty object has no last bytes, and Azure does not support requests for last bytes.
            size, held = obstore.head(client, key)["size"], b""
            start = size
    reader = _Reader(client, key, subject=subject, size=size, start=start, held=held)
    return pa.PythonFile(cast(IOBase, reader), mode="r")


class _Reader:
    """The methods that pa.PythonFile needs to read a file. Keeps the bytes of the last request."""

    closed = False

    def __init__(self, client: Client, key: str, *, subject: str, size: int, start: int, held: bytes) -> None:
        self._client, self._key, self._subject, self._size = client, key, subject, size
        self._start, self._held = start, held
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        start = min(self._at, end)
        if start < end and not self._start <= start <= end <= self._start + len(self._held):
            self._fetch(start, max(end, min(start + _AT_LEAST, self._size)))
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
        with asking(self._subject):
            held = bytes(obstore.get_range(self._client, self._key, start=start, end=end))
        if len(held) != end - start:
            raise OSError(f"{self._subject}: expected {end - start} bytes from {start} on, found {len(held)}")
        self._start, self._held = start, held


@contextmanager
def create_object(client: Client, key: str, *, subject: str) -> Iterator[BinaryIO]:
    """A sink for a new object. It exists once the context is left without an error; an error removes its parts.

    After a crash, parts are left that only the store sees: buckets need a rule that aborts unfinished uploads.
    """
    with asking(subject):
        writer = obstore.open_writer(client, key, buffer_size=_PART, max_concurrency=_PARTS_AT_ONCE)
    try:
        yield cast(BinaryIO, _Sink(writer, subject))
    except BaseException as failure:
        with suppress(BaseError):
            writer.__exit__(type(failure), failure, failure.__traceback__)
        raise
    with asking(subject):
        writer.close()


class _Sink:
    """The methods that Arrow and others need to write a file. close() creates no object; only the context does."""

    closed = False

    def __init__(self, writer: WritableFile, subject: str) -> None:
        self._writer, self._subject = writer, subject
        self._at = 0

    def write(self, data: Buffer) -> int:
        with asking(self._subject):
            written = self._writer.write(data)
        self._at += written
        return written

    def tell(self) -> int:
        return self._at

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Does nothing: parts are sent when they are full."""

    def close(self) -> None:
        """Does nothing: the object is created when the context ends."""
