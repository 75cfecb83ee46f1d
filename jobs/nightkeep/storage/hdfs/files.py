"""Files of HDFS: ranges are read in few requests; bytes are written in pieces, through one datanode after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, Final, cast

import pyarrow as pa

from nightkeep.errors import NightkeepError
from nightkeep.storage.ranged_files import AT_LEAST, ranged_file

if TYPE_CHECKING:
    from hdfs_native import FileReader, FileWriter
    from typing_extensions import Buffer

_PIECE: Final = 4 * 1024 * 1024


def open_ranges(reader: FileReader, ask: Callable[[Callable[[], bytes]], bytes], *, subject: str) -> pa.NativeFile:
    """A file for random reads. Opening already reads its end. `ask` makes each call and turns its errors."""
    size = len(reader)

    def fetch(start: int, end: int) -> bytes:
        # The client ends in a panic where a range leads beyond the end.
        return ask(lambda: reader.read_range(start, end - start)) if start < end else b""

    start = max(0, size - AT_LEAST)
    return ranged_file(fetch, subject=subject, size=size, start=start, held=fetch(start, size))


@contextmanager
def written(
    writer: FileWriter, ask: Callable[[Callable[[], object]], object], remove: Callable[[], object]
) -> Iterator[BinaryIO]:
    """The sink of a file that was just created. An error removes it: its lease lives as long as this process."""
    sink = _Sink(writer, ask)
    try:
        yield cast(BinaryIO, sink)
        sink.send()
        ask(writer.close)
    except BaseException:
        with suppress(NightkeepError, OSError):
            remove()
        raise


class _Sink:
    """The methods that Arrow and others need to write a file. close() ends no file; only the context does."""

    closed = False

    def __init__(self, writer: FileWriter, ask: Callable[[Callable[[], object]], object]) -> None:
        self._writer, self._ask = writer, ask
        self._held = bytearray()
        self._sent = 0

    def write(self, data: Buffer) -> int:
        # Writers give a few bytes at a time, and a call takes as long as the transfer of many.
        self._held += data
        if len(self._held) >= _PIECE:
            self.send()
        return memoryview(data).nbytes

    def send(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        for start in range(0, len(held), _PIECE):
            self._ask(partial(self._writer.write, held[start : start + _PIECE]))
        self._sent += len(held)

    def tell(self) -> int:
        return self._sent + len(self._held)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Does nothing: pieces are sent when they are full."""

    def close(self) -> None:
        """Does nothing: the file is closed when the context ends."""
