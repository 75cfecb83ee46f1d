"""Objects as files: ranges are read in few requests; bytes are written in parts that are invisible until the last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, Final, cast

import obstore
import pyarrow as pa
from obstore.exceptions import BaseError, GenericError, NotSupportedError

from nightkeep.storage.objects.clients import Client
from nightkeep.storage.objects.failures import asking
from nightkeep.storage.ranged_files import AT_LEAST, ranged_file

if TYPE_CHECKING:
    from obstore import WritableFile
    from typing_extensions import Buffer

_PART: Final = 8 * 1024 * 1024
_PARTS_AT_ONCE: Final = 4


def open_object(client: Client, key: str, *, subject: str) -> pa.NativeFile:
    """Open an object for random reads. Opening already reads its end: a footer or a small file needs no other request.

    Raises MissingFile, and OSError if the store does not answer; so do the reads.
    """
    with asking(subject):
        try:
            tail = obstore.get(client, key, options={"range": {"suffix": AT_LEAST}})
            size, start, held = tail.meta["size"], tail.range[0], bytes(tail.bytes())
        except (GenericError, NotSupportedError):
            # An empty object has no last bytes, and Azure does not support requests for last bytes.
            size, held = obstore.head(client, key)["size"], b""
            start = size

    def fetch(start: int, end: int) -> bytes:
        with asking(subject):
            return bytes(obstore.get_range(client, key, start=start, end=end))

    return ranged_file(fetch, subject=subject, size=size, start=start, held=held)


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
