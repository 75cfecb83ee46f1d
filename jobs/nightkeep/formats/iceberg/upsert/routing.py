"""Changes -> writers. All changes of a key must reach one writer, in their order.

If two writers had changes of one key, each would delete the row from before the batch, and both of their new rows would
stay: an equality delete does not apply to rows of its own snapshot (apache/iceberg issue 15305).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nightkeep.errors import UsageError
from nightkeep.formats.iceberg.metadata.types import arrow_schema
from nightkeep.formats.iceberg.upsert.changes import Changes, read_changes, require_values
from nightkeep.formats.iceberg.upsert.writer import WriterTarget, WrittenChanges, write_changes
from nightkeep.kernels.arrow_buffers import one_array
from nightkeep.kernels.row_hash import hash_blocks

_WRITES: Final = "nightkeep\0writes"
"""The column with a change's effect while rows are exchanged. A table's column names have no control characters."""
_PLACES: Final = 1 << 32
"""The number of places reserved for each file."""
Hashes = npt.NDArray[np.void]
_HASH: Final = np.dtype([("a", np.uint64), ("b", np.uint64)])


@dataclass(frozen=True, slots=True)
class Dealt:
    """Calling it with `number` writes the changes of that writer's files: every `writers`-th file from `number` on."""

    target: WriterTarget
    files: tuple[str, ...]
    writers: int

    def __call__(self, number: int) -> WrittenChanges:
        started = time.perf_counter()
        changes = self.read(number)
        spent = time.perf_counter() - started
        written = write_changes(self.target, number, changes)
        return replace(written, seconds={"read": spent, **written.seconds})

    def read(self, number: int) -> Changes:
        return join_changes(self.target, [_read(self.target, file) for file in self.files[number :: self.writers]])


@dataclass(frozen=True, slots=True)
class KeysOf:
    """Calling it with a writer's number returns the distinct hashes of its keys, ascending.

    With 128 bits, collisions are practically excluded.
    """

    dealt: Dealt

    def __call__(self, number: int) -> Hashes:
        return np.unique(_hashes(self.dealt.target, self.dealt.read(number).rows))


def require_apart(target: WriterTarget, keys: Sequence[Hashes]) -> None:
    """Raises UsageError if more than one writer has changes of the same key."""
    _, counts = np.unique(np.concatenate([*keys]), return_counts=True)
    shared = int((counts > 1).sum())
    if shared:
        expected = "all changes of a key in the files of one writer (or distribution hash, or one writer)"
        raise UsageError(f"{target.schema.table}: expected {expected}, found {shared} keys at several")


def scatter_changes(
    target: WriterTarget, number: int, file: str, *, writers: int
) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Yield a file's changes by writer, chosen by the hash of the key: (writer, place, changes).

    Places order the changes of all files.
    """
    changes = _read(target, file)
    writer = (_hashes(target, changes.rows)["a"] % np.uint64(writers)).astype(np.int64)
    rows = changes.rows.append_column(_WRITES, pa.array(changes.writes))
    place = number * _PLACES
    for part in range(writers):
        for batch in rows.filter(pa.array(writer == part)).combine_chunks().to_batches():
            yield part, place, batch
            place += 1


def gather_changes(target: WriterTarget, number: int, batches: Sequence[pa.RecordBatch]) -> WrittenChanges:
    """Write the changes that were sent to one writer, in the order of their places."""
    parts = []
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        writes = one_array(rows.column(_WRITES)).to_numpy(zero_copy_only=False)
        parts.append(Changes(rows.drop_columns([_WRITES]), writes))
    return write_changes(target, number, join_changes(target, parts))


def join_changes(target: WriterTarget, parts: Sequence[Changes]) -> Changes:
    """The changes of several files in order, with one chunk per column."""
    columns = arrow_schema(target.schema.current)
    rows = pa.concat_tables([columns.empty_table(), *(part.rows for part in parts)]).combine_chunks()
    return Changes(rows, np.concatenate([np.zeros(0, np.bool_), *(part.writes for part in parts)]))


def _read(target: WriterTarget, file: str) -> Changes:
    current = target.schema.current
    changes = read_changes(file, arrow_schema(current), target.mode)
    required = (column.name for column in current.fields if column.required)
    require_values(changes, required, keys=target.keys, mode=target.mode)
    return changes


def _hashes(target: WriterTarget, rows: pa.Table) -> Hashes:
    """The hash of each row's key."""
    columns = [one_array(rows.column(name)) for name in target.keys]
    hashes = np.empty(rows.num_rows, _HASH)
    start = 0
    for a, b in hash_blocks(columns, rows.num_rows):
        hashes["a"][start : start + len(a)], hashes["b"][start : start + len(b)] = a, b
        start += len(a)
    return hashes
