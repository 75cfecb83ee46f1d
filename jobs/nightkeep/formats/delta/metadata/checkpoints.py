"""A checkpoint's files -> its actions, as the commits had them (PROTOCOL.md, "Checkpoints").

Tombstones are read apart from the rest: no version shows them. Values that a checkpoint stores in columns become JSON
again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from nightkeep.encodings.legacy_calendar import LegacyCalendar, legacy_calendar
from nightkeep.errors import CorruptMetadata, RefusedTable, reason_of
from nightkeep.formats.delta.metadata.actions import Action, check, parse_lines
from nightkeep.formats.delta.metadata.add_columns import AddColumns, add_columns
from nightkeep.formats.delta.metadata.locations import is_absolute, own_name
from nightkeep.formats.delta.metadata.log_segment import Checkpoint
from nightkeep.formats.delta.metadata.naming import LOG
from nightkeep.formats.delta.metadata.struct_stats import stats_texts
from nightkeep.limits import RECORDS, UNPACKED, require_memory
from nightkeep.model.arrow_types import Array, ArrowField
from nightkeep.storage import Storage
from nightkeep.storage.names import MAX_NAME_BYTES

SIDECARS = f"{LOG}/_sidecars"

NOT_A_CHECKPOINT = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError)
"""Exceptions of reading a file that is not a checkpoint."""

_FILES = ("add",)
_OTHERS = ("protocol", "metaData", "txn", "domainMetadata", "sidecar", "checkpointMetadata")
_PARSED = frozenset({"stats_parsed", "partitionValues_parsed"})
_BATCH_ROWS = 1 << 16
_WITHOUT_DIRECTORY = re.compile(r"[^/]+\.parquet")


def checkpoint_actions(storage: Storage, checkpoint: Checkpoint) -> Iterator[Action | AddColumns]:
    """Every action but tombstones; adds in batches where they can be columns.

    Raises CorruptMetadata, MissingFile, and RefusedTable for a foreign sidecar.

    They are decoded as they are asked for: the actions of a million files, as Python objects, take a GB.
    """
    described: list[Action] = []
    has_files = False
    for name in checkpoint.names:
        for action in _file_actions(name, storage.read(name), (*_FILES, *_OTHERS)):
            if isinstance(action, AddColumns):
                has_files = has_files or len(action) > 0
                yield action
            elif action[0] in ("sidecar", "checkpointMetadata"):
                described.append(action)
            else:
                has_files = has_files or action[0] == "add"
                yield action
    sidecars = _sidecars(described, checkpoint)
    if sidecars and has_files:
        raise CorruptMetadata(checkpoint.names[0], "files here or in sidecars", "files in both")
    for body in sidecars:
        yield from _sidecar_actions(storage, body, checkpoint.names[0])


def checkpoint_tombstones(storage: Storage, checkpoint: Checkpoint) -> Iterator[Action]:
    """The removes of a checkpoint, decoded as they are asked for. Raises as checkpoint_actions does."""
    for name in checkpoint_head(storage, checkpoint)[1]:
        yield from _others(_file_actions(name, storage.read(name), ("remove",)))


def checkpoint_head(storage: Storage, checkpoint: Checkpoint) -> tuple[tuple[Action, ...], tuple[str, ...]]:
    """The actions that are not about files, and the names of the files that list data files: own parts, then sidecars.

    Reads no other column. Raises as checkpoint_actions does.
    """
    read: list[Action] = []
    for name in checkpoint.names:
        if name.endswith(".json"):
            read += _others(_file_actions(name, storage.read(name), _OTHERS))
        else:
            with storage.open(name) as source:
                read += _others(_file_actions(name, source, _OTHERS))
    names = [_sidecar_name(str(body["path"]), storage.root) for body in _sidecars(read, checkpoint)]
    return tuple(read), (*checkpoint.names, *names)


def _others(items: Iterable[Action | AddColumns]) -> Iterator[Action]:
    return (item for item in items if not isinstance(item, AddColumns))


def _sidecars(read: Sequence[Action], checkpoint: Checkpoint) -> list[Mapping[str, object]]:
    described = [body for kind, body in read if kind == "checkpointMetadata"]
    sidecars = [body for kind, body in read if kind == "sidecar"]
    if checkpoint.unique or sidecars or described:
        versions = [body["version"] for body in described]
        if versions != [checkpoint.version] or len(checkpoint.names) > 1:
            expected = f"one checkpointMetadata of version {checkpoint.version}"
            raise CorruptMetadata(checkpoint.names[0], expected, f"{versions}")
    return sidecars


def _sidecar_actions(storage: Storage, body: Mapping[str, object], subject: str) -> Iterator[Action | AddColumns]:
    name = _sidecar_name(str(body["path"]), storage.root)
    data = storage.read(name)
    if len(data) != body["sizeInBytes"]:
        raise CorruptMetadata(name, f"{body['sizeInBytes']} bytes, as {subject} states", f"{len(data)} bytes")
    return _file_actions(name, data, _FILES)


def _sidecar_name(path: str, root: str) -> str:
    """The name of a sidecar in storage. `path` is its file name, or its whole path in this table's log."""
    if len(path) > MAX_NAME_BYTES:
        raise CorruptMetadata("path of a sidecar", "the name of a Parquet file", path)
    name = own_name(path, root) if is_absolute(path) else unquote(path)
    folder, _, base = (name or path).rpartition("/")
    if folder not in ("", SIDECARS, "_sidecars"):
        raise RefusedTable(
            path, "a checkpoint's sidecar outside the table's log is not handled", "write a new checkpoint"
        )
    if not _WITHOUT_DIRECTORY.fullmatch(base) or "\0" in base or not base.isprintable():
        raise CorruptMetadata("path of a sidecar", "the name of a Parquet file", repr(path))
    return f"{SIDECARS}/{base}"


def _file_actions(name: str, data: bytes | pa.NativeFile, kinds: Sequence[str]) -> Iterator[Action | AddColumns]:
    if isinstance(data, bytes) and name.endswith(".json"):
        return (action for action in parse_lines(data, subject=name) if action[0] in kinds)
    return _parquet_actions(name, data, kinds)


def _parquet_actions(name: str, data: bytes | pa.NativeFile, kinds: Sequence[str]) -> Iterator[Action | AddColumns]:
    source = pa.BufferReader(data) if isinstance(data, bytes) else data
    try:
        # INT96 timestamps of old writers are read as nanoseconds by default, and Python has no value for those.
        with pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file:
            require_bounds(file, subject=name)
            schema = file.schema_arrow
            for kind in kinds:
                if kind in schema.names:
                    yield from _of_kind(file, schema.field(kind), name)
    except NOT_A_CHECKPOINT as failure:
        raise CorruptMetadata(name, "a checkpoint in Parquet", reason_of(failure)) from failure


def _of_kind(file: pq.ParquetFile, action: ArrowField, name: str) -> Iterator[Action | AddColumns]:
    """The actions of one kind, decoded a batch at a time. Absent fields are left out."""
    fields = [field.name for field in struct_fields(action)]
    plain = [field for field in fields if field not in _PARSED]
    if len(set(fields)) < len(fields):
        raise ValueError(f"{action.name} has fields of one name: {', '.join(fields)}")
    parsed = _ParsedStats(file) if action.name == "add" and "stats_parsed" in fields else None
    for rows in _present(file, action.name, plain):
        require_memory(name)
        stats = None if parsed is None else parsed.beside(rows)
        stored = add_columns(rows, stats) if action.name == "add" else None
        if stored is not None:
            yield stored
        else:
            columns = _values(rows) if stats is None else {**_values(rows), "stats": stats}
            yield from _bodies(name, action.name, columns)


class _ParsedStats:
    """The column add.stats_parsed, batch by batch beside the plain columns, decoded from the first absent text on."""

    def __init__(self, file: pq.ParquetFile) -> None:
        self._file, self._int96, self._batches = file, _int96(file), 0
        self._calendar = legacy_calendar(file.metadata, subject="a checkpoint")
        self._rows: Iterator[pa.StructArray] | None = None

    def beside(self, rows: pa.StructArray) -> Sequence[object] | None:
        """The next batch's statistics: where the text is absent, the same statistics from columns.

        None as long as no text is absent.
        """
        column = rows.field("stats") if "stats" in rows.type.names else pa.nulls(len(rows))
        if self._rows is None and column.null_count:
            self._rows = islice(_present(self._file, "add", ["path", "stats_parsed"]), self._batches, None)
        self._batches += 1
        if self._rows is None:
            return None
        struct = next(self._rows).field("stats_parsed")
        path = "add.stats_parsed"
        zoned = struct.cast(_with_zones(struct.type, path, self._int96))
        parsed = stats_texts(zoned if self._calendar is None else _rebased(zoned, path, self._calendar, self._int96))
        return [text or other for text, other in zip(column.to_pylist(), parsed, strict=True)]


def struct_fields(action: ArrowField) -> list[ArrowField]:
    """The fields of an action's column. Raises ValueError for a column that is no struct."""
    if not pa.types.is_struct(action.type):
        raise ValueError(f"{action.name} is {action.type}, expected a struct")
    return list(action.type)


def require_bounds(file: pq.ParquetFile, *, subject: str) -> None:
    """Raise RefusedTable for more rows or more uncompressed bytes than a metadata file may have.

    Raises ValueError for a footer that contradicts itself on the number of rows. Nulls take no bytes on disk, but some
    in memory.
    """
    footer = file.metadata
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    rows = sum(group.num_rows for group in groups)
    if rows != footer.num_rows or any(group.num_rows < 0 or group.total_byte_size < 0 for group in groups):
        raise ValueError(f"{footer.num_rows} rows in all, {rows} in row groups")
    RECORDS.require(rows, subject)
    UNPACKED.require(sum(group.total_byte_size for group in groups), subject)


def _present(file: pq.ParquetFile, kind: str, fields: Sequence[str]) -> Iterator[pa.StructArray]:
    """The actions of one kind, in batches that depend on the file alone, not on the fields."""
    for batch in file.iter_batches(_BATCH_ROWS, columns=[f"{kind}.{name}" for name in fields]):
        column = batch.column(kind)
        present = column.filter(pc.is_valid(column)) if column.null_count else column
        yield cast(pa.StructArray, present)


def _int96(file: pq.ParquetFile) -> frozenset[str]:
    columns = (file.schema.column(i) for i in range(len(file.schema)))
    return frozenset(column.path for column in columns if column.physical_type == "INT96")


def _with_zones(kind: pa.DataType, path: str, int96: frozenset[str]) -> pa.DataType:
    """The type with a UTC zone at INT96 columns (PROTOCOL.md, "Delta Data Type to Parquet Type Mappings").

    INT96 holds instants, but the file does not state that.
    """
    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(_with_zones(field.type, f"{path}.{field.name}", int96)) for field in kind])
    return pa.timestamp("us", "UTC") if path in int96 else kind


def _rebased(array: Array, path: str, calendar: LegacyCalendar, int96: frozenset[str]) -> Array:
    """Bounds of the old calendar as Spark reads them; null, which is no bound, where that is not known."""
    if isinstance(array, pa.StructArray):
        names = [field.name for field in array.type]
        fields = [_rebased(array.field(name), f"{path}.{name}", calendar, int96) for name in names]
        return pa.StructArray.from_arrays(fields, fields=list(array.type), mask=array.is_null())
    if pa.types.is_date32(array.type):
        return calendar.days(array)
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        try:
            return calendar.micros(array.cast(pa.timestamp("us", "UTC")), is_int96=path in int96).cast(array.type)
        except RefusedTable:
            return pa.nulls(len(array), array.type)
    return array


def _values(rows: pa.StructArray) -> dict[str, Sequence[object]]:
    columns: dict[str, Sequence[object]] = {}
    for field in rows.type:
        values = rows.field(field.name).to_pylist(maps_as_pydicts="strict")
        columns[field.name] = [_without_nulls(v) for v in values] if pa.types.is_struct(field.type) else values
    return columns


def _bodies(name: str, kind: str, columns: Mapping[str, Sequence[object]]) -> Iterator[Action]:
    for values in zip(*columns.values(), strict=True):
        body = {field: value for field, value in zip(columns, values, strict=True) if value is not None}
        yield check(kind, body, subject=name)


def _without_nulls(value: object) -> object:
    """The value without null fields. Null means absent in JSON actions."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value
