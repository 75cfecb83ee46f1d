"""Which writer a change goes to: a key's changes must all reach one, in their order.

Two writers with one key would each delete what was there before the batch, and both their rows would stay (an equality
delete does not hold for its own snapshot's rows; apache/iceberg issue 15305).
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
"""What a change does, on its way; no name of a column of ours, as none has a control character."""
_PLACES: Final = 1 << 32
"""Of one file."""
Hashes = npt.NDArray[np.void]
_HASH: Final = np.dtype([("a", np.uint64), ("b", np.uint64)])


@dataclass(frozen=True, slots=True)
class Dealt:
    """Writer `number` reads and writes the changes of its files: every `writers`-th, from its own number on."""

    target: WriterTarget
    files: tuple[str, ...]
    writers: int

    def __call__(self, number: int) -> WrittenChanges:
        begun = time.perf_counter()
        changes = self.read(number)
        spent = time.perf_counter() - begun
        written = write_changes(self.target, number, changes)
        return replace(written, seconds={"read": spent, **written.seconds})

    def read(self, number: int) -> Changes:
        return join_changes(self.target, [_read(self.target, file) for file in self.files[number :: self.writers]])


@dataclass(frozen=True, slots=True)
class KeysOf:
    """The hashes of a writer's keys, ascending, each once: 128 bits, so that no two keys have one."""

    dealt: Dealt

    def __call__(self, number: int) -> Hashes:
        return np.unique(_hashes(self.dealt.target, self.dealt.read(number).rows))


def require_apart(target: WriterTarget, keys: Sequence[Hashes]) -> None:
    """Raise UsageError where a key has changes at more than one writer."""
    _, counts = np.unique(np.concatenate([*keys]), return_counts=True)
    shared = int((counts > 1).sum())
    if shared:
        expected = "all changes of a key in the files of one writer (or distribution hash, or one writer)"
        raise UsageError(f"{target.schema.table}: expected {expected}, found {shared} keys at several")


def scatter_changes(
    target: WriterTarget, number: int, file: str, *, writers: int
) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """A file's changes by the writer their key's hash says: (writer, place, changes); places follow the files."""
    changes = _read(target, file)
    writer = (_hashes(target, changes.rows)["a"] % np.uint64(writers)).astype(np.int64)
    rows = changes.rows.append_column(_WRITES, pa.array(changes.writes))
    place = number * _PLACES
    for part in range(writers):
        for batch in rows.filter(pa.array(writer == part)).combine_chunks().to_batches():
            yield part, place, batch
            place += 1


def gather_changes(target: WriterTarget, number: int, batches: Sequence[pa.RecordBatch]) -> WrittenChanges:
    """What a writer makes of the changes that came to it, in the order of their places."""
    parts = []
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        writes = one_array(rows.column(_WRITES)).to_numpy(zero_copy_only=False)
        parts.append(Changes(rows.drop_columns([_WRITES]), writes))
    return write_changes(target, number, join_changes(target, parts))


def join_changes(target: WriterTarget, parts: Sequence[Changes]) -> Changes:
    """The changes of several files, one after the other, a chunk per column."""
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
    """Of each row's key."""
    columns = [one_array(rows.column(name)) for name in target.keys]
    hashes = np.empty(rows.num_rows, _HASH)
    start = 0
    for a, b in hash_blocks(columns, rows.num_rows):
        hashes["a"][start : start + len(a)], hashes["b"][start : start + len(b)] = a, b
        start += len(a)
    return hashes
