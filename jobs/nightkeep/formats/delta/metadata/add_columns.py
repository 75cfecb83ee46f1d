"""Adds of a checkpoint as columns of one schema; a body in Python is made only for a row that is asked for.

Only for batches whose types alone show that `actions.check` accepts every row. Values that the files of one partition
share are stored once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as arrow_compute

from nightkeep.formats.delta.metadata.actions import Raw
from nightkeep.model.arrow_types import Array, ChunkedArray, Datum, MapArray
from nightkeep.model.file_columns import Numbers

pc: Final[Any] = arrow_compute
"""The stubs know few of the combinations of types."""

_HALF: Final = re.compile("[\ud800-\udfff]")
Values = Mapping[str, str | None]

_TEXTS: Final = pa.map_(pa.string(), pa.string())
_OF_VECTORS: Final[Mapping[str, pa.DataType]] = {
    "storageType": pa.string(),
    "pathOrInlineDv": pa.string(),
    "offset": pa.int32(),
    "sizeInBytes": pa.int32(),
    "cardinality": pa.int64(),
}
VECTOR: Final = pa.struct([*_OF_VECTORS.items()])
_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "path": pa.string(),
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "stats": pa.string(),
    "tags": _TEXTS,
    "deletionVector": VECTOR,
    "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(),
    "clusteringProvider": pa.string(),
}
_SPELLING: Final = "spelling"
_SCHEMA: Final = pa.schema({**_COLUMNS, _SPELLING: pa.int32()})
_REQUIRED: Final = frozenset({"path", "partitionValues", "size"})
_NEEDED_OF_VECTORS: Final = ("storageType", "pathOrInlineDv", "sizeInBytes", "cardinality")
_FITTING: Final[Mapping[str, pa.DataType]] = {**_COLUMNS, "partitionValues": _TEXTS}


@dataclass(frozen=True, slots=True, eq=False)
class AddColumns:
    """Adds by row. `values` are partition values as the log spells them; the column `spelling` is a row's place there.

    Rows of other columns have the fields of an add of the same name.
    """

    rows: pa.Table
    values: tuple[Values, ...]

    def __len__(self) -> int:
        return self.rows.num_rows

    @property
    def paths(self) -> ChunkedArray:
        return self.rows.column("path")

    @property
    def spellings(self) -> Numbers:
        return self.rows.column(_SPELLING).to_numpy().astype(np.int64)

    def with_paths(self, paths: Array) -> AddColumns:
        """The same rows, whose paths are these very values: so that they are in memory once."""
        place = _SCHEMA.get_field_index("path")
        return AddColumns(self.rows.set_column(place, "path", paths), self.values)

    def apart(self, paths: Iterable[str]) -> tuple[AddColumns, Iterator[Raw]]:
        """The rows whose path no other row has, nor one of these; and the raw adds of all others."""
        chosen = pc.is_in(self.paths, pa.array(_storable(paths), pa.string()))
        chosen = pc.or_(chosen, pc.is_in(self.paths, _twice(self.paths)))
        places = np.flatnonzero(chosen.to_numpy())
        left = self if not len(places) else AddColumns(self.rows.filter(pc.invert(chosen)), self.values)
        return left, self.bodies(places)

    def taken(self, places: Numbers) -> pa.Table:
        """The rows at these places. Batch by batch: Arrow would join all batches first."""
        batches = self.rows.to_batches()
        starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
        order = np.argsort(places, kind="stable")
        ends = np.searchsorted(places[order], starts)
        held = [
            batch.take(places[order[low:high]] - start)
            for batch, start, low, high in zip(batches, starts, ends[:-1], ends[1:], strict=False)
            if low < high
        ]
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return pa.Table.from_batches(held, self.rows.schema).take(back)

    def bodies(self, places: Numbers) -> Iterator[Raw]:
        """The raw adds at these places. Absent fields are left out."""
        some = self.taken(places)
        names = [*_COLUMNS, _SPELLING]
        columns = [some.column(name).to_pylist(maps_as_pydicts="strict") for name in names]
        for values in zip(*columns, strict=True):
            body = {name: value for name, value in zip(names, values, strict=True) if value is not None}
            body["partitionValues"] = self.values[body.pop(_SPELLING)]
            if "deletionVector" in body:
                body["deletionVector"] = {k: v for k, v in body["deletionVector"].items() if v is not None}
            yield body


NO_ADDS: Final = AddColumns(_SCHEMA.empty_table(), ())


def add_columns(rows: pa.StructArray, stats: Sequence[object] | None) -> AddColumns | None:
    """A batch of adds as columns; None where types leave room for doubt. `stats` take the place of the column.

    Raises ArrowInvalid for text that is not UTF-8, and KeyError for partition values with a name twice.
    """
    columns = {field.name: _plain(rows.field(field.name)) for field in rows.type}
    held = {name: column for name, column in columns.items() if column.null_count < len(column)}
    if not (_whole(held) and _fit(columns, held)):
        return None
    rows.validate(full=True)
    if stats is not None:
        held["stats"] = pa.array(stats, pa.string())
    codes, values = _spellings(cast("MapArray", held["partitionValues"]))
    held[_SPELLING] = pa.array(codes, pa.int32())
    filled = [held.get(field.name, pa.nulls(len(rows), field.type)) for field in _SCHEMA]
    return AddColumns(pa.Table.from_arrays(filled, schema=_SCHEMA), values)


def together(batches: Sequence[AddColumns]) -> AddColumns:
    """The rows of all batches, in their order."""
    known: dict[tuple[tuple[str, str | None], ...], int] = {}
    tables = []
    for batch in batches:
        places = [known.setdefault(tuple(values.items()), len(known)) for values in batch.values]
        codes = pa.array(np.asarray(places, np.int32)[batch.spellings], pa.int32())
        tables.append(batch.rows.set_column(_SCHEMA.get_field_index(_SPELLING), _SCHEMA.field(_SPELLING), codes))
    return AddColumns(pa.concat_tables(tables), tuple(map(dict, known))) if tables else NO_ADDS


def vector_ids(rows: pa.Table) -> ChunkedArray:
    """The unique id of the deletion vector of each row, null without one (actions.vector_id)."""
    vectors = rows.column("deletionVector")
    kind, place, offset = (pc.struct_field(vectors, name) for name in ("storageType", "pathOrInlineDv", "offset"))
    at = pc.if_else(pc.is_valid(offset), pc.binary_join_element_wise("@", offset.cast(pa.string()), ""), "")
    return cast("ChunkedArray", pc.binary_join_element_wise(kind, place, at, ""))


def _twice(texts: ChunkedArray) -> Array:
    """The texts that occur more than once. A hash of a million paths takes twice the time and memory of a sort."""
    ordered = texts.cast(pa.large_string()).combine_chunks()
    ordered = ordered.take(pc.array_sort_indices(ordered))
    again = pc.equal(ordered[1:], ordered[:-1])
    return ordered[1:].filter(again).cast(pa.string())


def _plain(column: Array) -> Array:
    """A vector's column with its own fields alone, if the others have no value."""
    if not isinstance(column, pa.StructArray):
        return column
    fields = {field.name: column.field(field.name) for field in column.type}
    others = [values for name, values in fields.items() if name not in _OF_VECTORS and values.null_count < len(column)]
    if others or not set(_NEEDED_OF_VECTORS) <= fields.keys():
        return column
    held = [fields.get(name, pa.nulls(len(column))) for name in _OF_VECTORS]
    return pa.StructArray.from_arrays(held, [*_OF_VECTORS], mask=column.is_null())


def _fit(columns: Mapping[str, Array], held: Mapping[str, Array]) -> bool:
    """Whether the columns' types alone show that `check` accepts every row. A column without a value fits any type."""
    known = all(name in held and not columns[name].null_count for name in _REQUIRED)
    return known and all(column.type == _FITTING.get(name) for name, column in held.items())


def _whole(columns: Mapping[str, Array]) -> bool:
    """Whether every vector has the fields that it needs."""
    vectors = columns.get("deletionVector")
    if vectors is None or vectors.type != VECTOR:
        return True
    present = pc.is_valid(vectors)
    needed = [pc.is_valid(cast("pa.StructArray", vectors).field(name)) for name in _NEEDED_OF_VECTORS]
    return all(bool(pc.all(pc.or_(pc.invert(present), valid)).as_py()) for valid in needed)


def _spellings(maps: MapArray) -> tuple[Numbers, tuple[Values, ...]]:
    """The place of each row's values among the different ones, and those."""
    offsets = maps.offsets.to_numpy().astype(np.int64)
    names, texts = (_codes(part) for part in (maps.keys, maps.items))
    pairs = names * (int(texts.max(initial=0)) + 1) + texts
    lengths = np.diff(offsets)
    found, chosen = np.zeros(len(maps), np.int64), np.zeros(0, np.int64)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        codes, firsts = _different(pairs[offsets[rows][:, None] + np.arange(length)])
        found[rows] = codes + len(chosen)
        chosen = np.concatenate((chosen, rows[firsts]))
    different: Datum = maps.take(chosen)
    return found, tuple(different.to_pylist(maps_as_pydicts="strict"))


def _different(rows: Numbers) -> tuple[Numbers, Numbers]:
    """A number for each different row, and the place where it is first."""
    codes, firsts = np.zeros(len(rows), np.int64), np.zeros(1, np.int64)
    for column in rows.T:
        _, column = np.unique(column, return_inverse=True)
        _, firsts, codes = np.unique(codes * len(rows) + column, return_index=True, return_inverse=True)
    return codes.astype(np.int64), firsts.astype(np.int64)


def _codes(texts: Array) -> Numbers:
    """A number for each different text. Null has 0."""
    codes = texts.dictionary_encode().indices
    found: Numbers = pc.fill_null(pc.add(codes.cast(pa.int64()), 1), 0).to_numpy(zero_copy_only=False)
    return found


def _storable(texts: Iterable[str]) -> list[str]:
    """The texts that a Parquet file can hold: JSON can name half a character, which UTF-8 cannot."""
    return [text for text in set(texts) if text.isascii() or not _HALF.search(text)]
