"""Actions on files -> the names of the files that they keep, and when files were removed.

PROTOCOL.md, "Add File and Remove File", "Deletion Vectors". A relative path gives one name. An absolute path gives
every suffix of it as a name: the table's folder may have another address, and then one of them is the file's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.errors import CorruptMetadata, MissingFile, reason_of
from nightkeep.formats.delta.deletes.vectors import vector_file
from nightkeep.formats.delta.metadata.actions import Action, Raw, check, parse_lines
from nightkeep.formats.delta.metadata.checkpoints import NOT_A_CHECKPOINT, require_bounds, struct_fields
from nightkeep.formats.delta.metadata.data_file import vector_of
from nightkeep.formats.delta.metadata.locations import is_absolute, storage_name
from nightkeep.limits import DOCUMENT, require_memory
from nightkeep.model.arrow_types import Array, Datum
from nightkeep.protocol.table_files import FILES
from nightkeep.storage import Storage, spelled
from nightkeep.storage.names import MAX_NAME_BYTES
from nightkeep.storage.times import happened_ms

BATCH: Final = 20_000


def data_names(path: str) -> tuple[str, ...]:
    """The names of a data or change file, by its action's path. Raises CorruptMetadata."""
    return _ends(path) if is_absolute(path) else (storage_name(path, ""),)


def vector_names(body: Raw) -> tuple[str, ...]:
    """The names of the file that holds an add's or remove's vector. Empty without a vector, or for an inline one."""
    vector = vector_of(body.get("deletionVector"))
    if vector is None or vector.kind == "i":
        return ()
    name = vector_file(vector)
    return _ends(vector.place) if name is None else (name,)


def commit_actions(storage: Storage, name: str) -> Iterator[Action]:
    """The actions of a commit, or of a checkpoint in JSON, line by line: a commit may have a line for each file."""
    with storage.open(name) as source:
        for line in _lines(name, source):
            yield from parse_lines(line, subject=name)


def checkpoint_files(storage: Storage, name: str) -> Iterator[Sequence[Action]]:
    """Adds and removes of one file of a checkpoint, in batches. Has only the fields for names, sizes and times."""
    if name.endswith(".json"):
        yield [action for action in commit_actions(storage, name) if action[0] in _COLUMNS]
        return
    for kind, column in checkpoint_columns(storage, name):
        yield list(bodies(name, kind, column))


def checkpoint_columns(storage: Storage, name: str) -> Iterator[tuple[str, Datum]]:
    """As `checkpoint_files`, for one in Parquet: the kind of each batch, and its actions as a valid column of structs,
    some of which may be null."""
    try:
        with storage.open(name) as source, pq.ParquetFile(source) as file:
            require_bounds(file, subject=name)
            yield from _batches(name, file)
    except NOT_A_CHECKPOINT as failure:
        raise CorruptMetadata(name, "a checkpoint in Parquet", reason_of(failure)) from failure


def removed_ms(body: Raw, *, made_ms: int, now_ms: int) -> int:
    """When a file was removed, in epoch milliseconds: the later of its action's time and `made_ms`, its commit's.

    A time ahead of now is from a wrong clock and is ignored.
    """
    stated = body.get("deletionTimestamp")
    return max(stated if isinstance(stated, int) and stated <= now_ms else 0, made_ms)


def left_removed_ms(body: Raw, *, written_ms: int, now_ms: int) -> int:
    """As `removed_ms`, for a tombstone in a checkpoint: a time from a wrong clock is replaced by the checkpoint's."""
    stated = body.get("deletionTimestamp")
    return happened_ms(now_ms, (stated if isinstance(stated, int) else 0, written_ms))


def commit_ms(actions: Sequence[Action], modified_ms: int, *, now_ms: int) -> int:
    """When a commit was made: the latest of its own times and its file's, so that nothing is deleted too early.

    A time ahead of now is from a wrong clock and is ignored. The file's time always counts.
    """
    infos = [body for kind, body in actions if kind == "commitInfo"]
    times = (info.get(name) for info in infos for name in ("inCommitTimestamp", "timestamp"))
    return max([modified_ms, *(time for time in times if isinstance(time, int) and time <= now_ms)])


def dated_removals(storage: Storage, name: str, *, modified_ms: int, now_ms: int) -> Iterator[tuple[Action, int]]:
    """The removes and change files of a commit, each with the time since which no version needs it (`removed_ms`).

    A change file is as old as its commit: its action has no time.
    """
    kinds = ("remove", "cdc", "commitInfo")
    actions = [action for action in commit_actions(storage, name) if action[0] in kinds]
    made_ms = commit_ms(actions, modified_ms, now_ms=now_ms)
    yield from ((a, removed_ms(a[1], made_ms=made_ms, now_ms=now_ms)) for a in actions if a[0] != "commitInfo")


def written_ms(storage: Storage, name: str) -> int:
    """When a file of a checkpoint was written, in epoch milliseconds. Raises MissingFile."""
    stored = storage.stat(name)
    if stored is None:
        raise MissingFile(spelled(storage, name), "a file of a checkpoint", "no such file")
    return stored.modified_ms


def files(rows: Iterable[tuple[str, int | None, bool]]) -> pa.Table:
    """Rows of (name, size, needed) as a table of schema FILES."""
    names, sizes, needed = zip(*rows, strict=True) if (rows := list(rows)) else ((), (), ())
    columns: tuple[Array, ...] = (
        pa.array(names, pa.string()),
        pa.array(sizes, pa.int64()),
        pa.array(needed, pa.bool_()),
    )
    return pa.Table.from_arrays(columns, schema=FILES)


def _ends(address: str) -> tuple[str, ...]:
    path = _path_of(address)
    parts = [part for part in path.split("/") if part]
    if ".." in parts or "." in parts or "\0" in path or len(path) > MAX_NAME_BYTES:
        raise CorruptMetadata("absolute path of an action", "no steps within it, and the length of a path", address)
    return tuple("/".join(parts[start:]) for start in range(len(parts)))


def _path_of(address: str) -> str:
    try:
        return unquote(urlsplit(address).path)
    except ValueError as failure:
        raise CorruptMetadata("absolute path of an action", "a URI", f"{address}: {failure}") from failure


def _lines(name: str, source: pa.NativeFile) -> Iterator[bytes]:
    # The parts of a long line are joined once. Its length is checked before it ends.
    parts: list[bytes] = []
    held = 0
    while block := source.read(_BLOCK):
        first, *lines = block.split(b"\n")
        parts.append(first)
        held += len(first)
        DOCUMENT.require(held, name)
        for line in lines:
            yield b"".join(parts)
            parts, held = [line], len(line)
    yield b"".join(parts)


def _batches(name: str, file: pq.ParquetFile) -> Iterator[tuple[str, Datum]]:
    schema = file.schema_arrow
    for kind, names in _COLUMNS.items():
        if kind not in schema.names:
            continue
        present = [field.name for field in struct_fields(schema.field(kind)) if field.name in names]
        columns = [f"{kind}.{field}" for field in present]
        for batch in file.iter_batches(BATCH, columns=columns):
            require_memory(name)
            column = batch.column(kind)
            column.validate(full=True)
            yield kind, column


def bodies(name: str, kind: str, column: Datum) -> Iterator[Action]:
    """The actions of a column of `checkpoint_columns`. Raises CorruptMetadata."""
    for body in column.drop_null().to_pylist():
        fields = {key: value for key, value in body.items() if value is not None}
        if kind == "add":
            fields |= {"partitionValues": {}}
        if isinstance(vector := fields.get("deletionVector"), Mapping):
            fields["deletionVector"] = {key: value for key, value in vector.items() if value is not None}
        yield check(kind, fields, subject=name)


_BLOCK: Final = 1 << 20
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "add": ("path", "size", "deletionVector"),
    "remove": ("path", "deletionTimestamp", "deletionVector"),
}
