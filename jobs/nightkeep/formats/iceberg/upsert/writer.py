"""One writer's changes -> data files, equality deletes and position deletes per partition. No version refers to them.

Source: BaseTaskWriter.BaseEqualityDeltaWriter and Flink's BaseDeltaTaskWriter of Apache Iceberg. A row that the batch
itself wrote is deleted by position: equality deletes do not apply to rows of their own snapshot.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.schema import Schema
from pyroaring import BitMap64

from nightkeep.formats.iceberg.data.partitions import Partitioned, partition_rows
from nightkeep.formats.iceberg.data.write import IcebergFileWriter, Lineage, WrittenIcebergFile
from nightkeep.formats.iceberg.deletes.position_deletes import write_positions
from nightkeep.formats.iceberg.deletes.vectors import PuffinVectorWriter
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent, NewFile
from nightkeep.formats.iceberg.metadata.file_formats import delete_format
from nightkeep.formats.iceberg.metadata.locations import storage_name
from nightkeep.formats.iceberg.metadata.naming import IcebergNaming
from nightkeep.formats.iceberg.metadata.new_locations import data_location
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.upsert.batch import ChangeMode
from nightkeep.formats.iceberg.upsert.changes import Changes
from nightkeep.kernels.bitmap import Width, from_positions
from nightkeep.kernels.changelog import key_codes, resolve
from nightkeep.storage import Storage

Rows = npt.NDArray[np.int64]
_ATTEMPTS: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class WriterTarget:
    """What all writers of a batch share. `keys` are the names of the equality fields, empty when appending.

    `operation` is part of all file names: leftovers of a batch are found by it.
    """

    storage: Storage
    schema: IcebergSchema
    mode: ChangeMode
    keys: tuple[str, ...]
    operation: uuid.UUID

    @property
    def key_ids(self) -> tuple[int, ...]:
        return tuple(sorted(self.schema.current.find_field(name).field_id for name in self.keys))

    @property
    def target_bytes(self) -> int:
        return int(self.schema.properties.get("write.target-file-size-bytes", 512 << 20))


@dataclass(frozen=True, slots=True)
class WrittenChanges:
    """A writer's new files, the number of rows in them, and `seconds` by step."""

    files: tuple[NewFile, ...] = field(hash=False)
    rows: int
    seconds: Mapping[str, float] = field(hash=False)


def write_changes(target: WriterTarget, number: int, changes: Changes) -> WrittenChanges:
    """Write the files of writer `number`. `changes` must have all changes that the batch has for each of its keys."""
    clock = _Clock()
    # Spark may run a task twice: each attempt needs its own file names.
    naming = IcebergNaming.of_writer(number, secrets.randbelow(_ATTEMPTS), target.operation)
    with clock.step("resolve"):
        resolved = _resolved(target, changes)
        rows = changes.rows.num_rows
        written, unseen, replaced = (_Chosen(each, rows) for each in resolved)
    with clock.step("partition"):
        partitions = list(partition_rows(changes.rows, target.schema.current, target.schema.spec(_spec_id(target))))
    files: list[NewFile] = []
    hidden: list[tuple[NewFile, BitMap64]] = []
    for partition in partitions:
        writer = _PartitionWriter(target, naming, partition, changes)
        with clock.step("data"):
            data = writer.data(written.within(partition))
        with clock.step("equality deletes"):
            files += writer.equality_deletes(unseen.within(partition))
        files += [each.file for each in data]
        hidden += writer.hidden(data, replaced.within(partition))
    with clock.step("position deletes"):
        files += _position_deletes(target, naming, hidden)
    return WrittenChanges(tuple(files), changes.rows.num_rows, clock.seconds)


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started


def _spec_id(target: WriterTarget) -> int:
    return target.schema.default_spec_id


def _resolved(target: WriterTarget, changes: Changes) -> tuple[Rows, Rows, Rows]:
    """Indexes of rows to write, of keys of older rows to delete, and of written rows that the batch replaces."""
    if target.mode is ChangeMode.APPEND:
        nothing = np.zeros(0, np.int64)
        return np.arange(changes.rows.num_rows), nothing, nothing
    codes = key_codes(changes.rows.select(list(target.keys)))
    resolved = resolve(codes, changes.writes, upsert=target.mode is ChangeMode.UPSERT)
    return resolved.written, resolved.unseen, resolved.replaced


class _Chosen:
    """Some rows of a batch, by ascending index."""

    def __init__(self, rows: Rows, batch_rows: int) -> None:
        self._rows = rows
        self._flags = np.zeros(batch_rows, np.bool_)
        self._flags[rows] = True

    def within(self, partition: Partitioned) -> Rows:
        return self._rows if partition.is_everything else partition.rows[self._flags[partition.rows]]


class _PartitionWriter:
    """Writes the files of one partition from the changes of a batch."""

    def __init__(self, target: WriterTarget, naming: IcebergNaming, partition: Partitioned, changes: Changes) -> None:
        self._target, self._naming = target, naming
        self._values, self._rows = partition.values, changes.rows
        self._written: Rows = np.zeros(0, np.int64)

    def data(self, written: Rows) -> list[WrittenIcebergFile]:
        """Write data files of the changes that become rows, in their order."""
        self._written = written
        rows = self._taken(written, self._rows.column_names)
        return self._writer(self._target.schema).write([rows], target_bytes=self._target.target_bytes)

    def equality_deletes(self, unseen: Rows) -> list[NewFile]:
        """Write equality deletes of older rows: for an upsert their keys, else whole rows (BaseDeltaTaskWriter)."""
        target = self._target
        if not len(unseen):
            return []
        schema = _keys_only(target) if target.mode is ChangeMode.UPSERT else target.schema
        names = [column.name for column in schema.current.fields]
        written = self._writer(schema).write([self._taken(unseen, names)], target_bytes=target.target_bytes)
        return [_as_equality_delete(each.file, target.key_ids) for each in written]

    def hidden(self, data: Sequence[WrittenIcebergFile], replaced: Rows) -> Iterator[tuple[NewFile, BitMap64]]:
        """Yield each data file with the positions of rows that the batch itself replaced."""
        places = np.searchsorted(self._written, replaced)
        stops = list(accumulate(each.rows for each in data))
        for each, stop in zip(data, stops, strict=True):
            start = stop - each.rows
            own = places[(places >= start) & (places < stop)] - start
            if len(own):
                yield each.file, BitMap64(from_positions(own, Width.BITS_64))

    def _taken(self, rows: Rows, names: Sequence[str]) -> pa.Table:
        held = self._rows.select(list(names))
        return held if len(rows) == held.num_rows else held.take(rows)

    def _writer(self, schema: IcebergSchema) -> IcebergFileWriter:
        return IcebergFileWriter(
            self._target.storage,
            schema,
            self._naming,
            spec_id=_spec_id(self._target),
            values=self._values,
            lineage=Lineage.NEW,
        )


def _keys_only(target: WriterTarget) -> IcebergSchema:
    fields = (target.schema.current.find_field(number) for number in target.key_ids)
    return replace(target.schema, current=Schema(*fields, schema_id=target.schema.current.schema_id))


def _as_equality_delete(file: NewFile, key_ids: tuple[int, ...]) -> NewFile:
    raw = {**file.raw, "content": int(FileContent.EQUALITY_DELETES), "equality_ids": list(key_ids)}
    return replace(file, content=FileContent.EQUALITY_DELETES, raw=raw)


def _position_deletes(
    target: WriterTarget, naming: IcebergNaming, hidden: Sequence[tuple[NewFile, BitMap64]]
) -> Iterable[NewFile]:
    """Write one delete file per data file in format version 2; in version 3 one Puffin file with all vectors."""
    schema, spec_id = target.schema, _spec_id(target)
    if not schema.has_row_lineage:
        kind = delete_format(schema)
        for file, rows in hidden:
            data = _data_file(file)
            location = data_location(schema, spec_id, data.partition, naming.deletes(kind))
            yield write_positions(target.storage, location, data, rows, file_format=kind)
    elif hidden:
        data = _data_file(hidden[0][0])
        vectors = PuffinVectorWriter(target.storage, data_location(schema, spec_id, data.partition, naming.vectors()))
        for file, rows in hidden:
            vectors.add(_data_file(file), rows)
        yield from vectors.close()


def _data_file(new: NewFile) -> ContentFile:
    """A new data file in the form that writers of deletes take. The commit sets its sequence numbers."""
    return ContentFile(
        content=new.content,
        path=new.path,
        name=storage_name(new.path),
        format=str(new.raw["file_format"]).lower(),
        spec_id=new.spec_id,
        partition=new.partition,
        rows=new.rows,
        bytes=new.number("file_size_in_bytes"),
        sequence_number=0,
        file_sequence_number=0,
        snapshot_id=0,
        raw=new.raw,
    )
