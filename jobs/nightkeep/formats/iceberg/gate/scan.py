"""Unit -> surviving positions -> logical rows, for the gate.

Columns are found, position deletes and vectors are read by the same code as in a rewrite. Equality deletes are joined
by Polars here; a rewrite uses hash lookups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import polars as pl
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.encodings.polars_rows import polars_batches
from nightkeep.errors import CorruptMetadata, RefusedTable, naming
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.deletes.position_deletes import read_positions
from nightkeep.formats.iceberg.deletes.vectors import read_vectors
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.delete_index import DeleteIndex, index_deletes
from nightkeep.formats.iceberg.metadata.features import refuse_keys
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.kernels.bitmap import Width, from_positions
from nightkeep.model import View
from nightkeep.model.variant_type import Shredding
from nightkeep.protocol import Positions
from nightkeep.storage import Storage

KEY_BYTES = 64 << 20
"""Bytes of deleted keys in one join, in Arrow memory. Polars' hash table takes about four times that."""
LEAST_ROWS = 1 << 18
"""Fewest data rows in one join. More with more keys: Polars hashes the keys again for every join."""
_SEQUENCE, _FILE, _POSITION, _ADDED = "sequence", "file", "position", "added"
"""Names of further columns in frames of keys. Key columns are named by digits."""
_BELOW_ZERO = "-"
"""The end of the name of a column that states which floats of a key column are -0.0."""

Hidden = dict[str, BitMap64]
"""Positions by a data file's path."""

PROMISE = "rows as their schema promises"


def survivors(storage: Storage, unit: IcebergUnit, view: View = View.RAW) -> Positions:
    """Positions of rows that readers see, by file name (ContentFile.name), after all kinds of deletes.

    `view` makes no difference: readers always apply every delete. Raises CorruptMetadata if a footer's row count is not
    the manifest's, or a delete has positions beyond it.
    """
    with naming(unit.key, PROMISE):
        index = index_deletes(unit.positional, unit.equality)
        counted = {file.path: _counted(storage, unit.schema, file) for file in unit.files}
        hidden: Hidden = {file.path: BitMap64() for file in unit.files}
        for path, positions in _by_vector(storage, index, unit.files):
            hidden[path] = positions
        for path, positions in _by_position(storage, index, unit.files):
            hidden[path] |= positions
        for path, positions in _by_equality(storage, index, unit):
            hidden[path] |= positions
        return {file.name: _rest(file, counted[file.path], hidden[file.path]) for file in unit.files}


def rows(storage: Storage, unit: IcebergUnit, positions: Positions) -> Iterator[pa.RecordBatch]:
    """The rows at `positions`, file by file: every column, and row lineage columns if any. Texts and bytes may be
    views, and shredded variants are as in their file."""
    with naming(unit.key, PROMISE):
        for file in unit.files:
            rows_of_file = positions.get(file.name)
            if rows_of_file:
                reader = IcebergFileReader(storage, unit.schema, file, decoder=polars_batches, shredding=Shredding.KEPT)
                for piece in reader.taken(None, rows_of_file):
                    yield from piece.combine_chunks().to_batches()


def _counted(storage: Storage, schema: IcebergSchema, file: ContentFile) -> int:
    counted = IcebergFileReader(storage, schema, file).rows
    if counted != file.rows:
        raise CorruptMetadata(file.path, f"{file.rows} rows as its manifest states", f"{counted} in its footer")
    return counted


def _rest(file: ContentFile, counted: int, hidden: BitMap64) -> BitMap64:
    if hidden and hidden.max() >= counted:
        raise CorruptMetadata(file.path, f"deleted positions below its {counted} rows", str(hidden.max()))
    return BitMap64(range(counted)) - hidden


def _by_vector(storage: Storage, index: DeleteIndex, files: Iterable[ContentFile]) -> Iterator[tuple[str, BitMap64]]:
    """Yield path and deleted positions of data files with a vector. Each Puffin file is read once."""
    vectors = {file.path: (vector, file.rows) for file in files if (vector := index.vector_of(file)) is not None}
    for vector, positions in read_vectors(storage, vectors.values()):
        assert vector.referenced is not None
        yield vector.referenced, positions


def _by_position(storage: Storage, index: DeleteIndex, files: Iterable[ContentFile]) -> Iterator[tuple[str, BitMap64]]:
    """Yield path and positions deleted by position delete files. Each delete file is read once."""
    for delete, paths in index.positions_of(files):
        yield from read_positions(storage, delete, paths).items()


def _by_equality(storage: Storage, index: DeleteIndex, unit: IcebergUnit) -> Iterator[tuple[str, BitMap64]]:
    """Yield path and positions deleted by equality delete files, for each set of key columns in pieces."""
    deletes_of: dict[tuple[int, ...], list[ContentFile]] = {}
    for delete in index.equality:
        deletes_of.setdefault(_columns(delete), []).append(delete)
    for columns, deletes in deletes_of.items():
        files = [file for file in unit.files if file.sequence_number < deletes[-1].sequence_number]
        if not files:
            continue
        _require_keys(unit.schema, columns)
        refuse_keys(unit.schema, deletes)
        oldest = min(file.sequence_number for file in files)
        applied = [delete for delete in deletes if delete.sequence_number > oldest]
        for keys in _deleted_keys(storage, unit.schema, applied, columns):
            yield from _joined(storage, unit.schema, files, keys)


def _columns(delete: ContentFile) -> tuple[int, ...]:
    """The field ids of the key columns, sorted: their order in the manifest has no meaning."""
    return tuple(sorted(set(delete.equality_ids)))


def _require_keys(schema: IcebergSchema, columns: Sequence[int]) -> None:
    for number in columns:
        field = schema.field(number)
        if not field.field_type.is_primitive:
            feature = f"deletes by equal values of column {field.name}, a {field.field_type}, are not handled"
            raise RefusedTable(schema.table, feature, "remove them with the engine that wrote them")


def _deleted_keys(
    storage: Storage, schema: IcebergSchema, deletes: Iterable[ContentFile], columns: Sequence[int]
) -> Iterator[pl.DataFrame]:
    """Yield pieces of deleted keys. A piece has each key once, with its greatest sequence number.

    Every piece costs another pass over the data files' keys, so repeated keys must not fill it.
    """
    held: list[pl.DataFrame] = []
    size = 0
    for keys, sequence_number in _key_batches(storage, schema, deletes, columns):
        held.append(_frame(keys).with_columns(pl.lit(sequence_number, pl.Int64).alias(_SEQUENCE)))
        size += keys.nbytes
        if size >= KEY_BYTES:
            count = sum(map(len, held))
            held = [_newest(held)]
            size = size * len(held[0]) // max(1, count)
            if size >= KEY_BYTES // 2:
                yield held[0]
                held, size = [], 0
    if held:
        yield _newest(held)


def _key_batches(
    storage: Storage, schema: IcebergSchema, deletes: Iterable[ContentFile], columns: Sequence[int]
) -> Iterator[tuple[pa.Table, int]]:
    for delete in deletes:
        reader = IcebergFileReader(storage, schema, delete)
        if reader.rows != delete.rows:
            expected = f"{delete.rows} rows as its manifest states"
            raise CorruptMetadata(delete.path, expected, f"{reader.rows} in its footer")
        for keys in reader.keys(columns):
            yield keys, delete.sequence_number


def _newest(keys: Sequence[pl.DataFrame]) -> pl.DataFrame:
    frame = pl.concat(keys)
    return frame.group_by([name for name in frame.columns if name != _SEQUENCE]).agg(pl.col(_SEQUENCE).max())


def _joined(
    storage: Storage, schema: IcebergSchema, files: Sequence[ContentFile], keys: pl.DataFrame
) -> Iterator[tuple[str, BitMap64]]:
    """Yield path and positions of rows whose key was deleted after their file was added. Null equals null."""
    names = [name for name in keys.columns if name != _SEQUENCE]
    newest: int = keys.select(pl.col(_SEQUENCE).max()).item()
    older = [file for file in files if file.sequence_number < newest]
    columns = [int(name) for name in names if not name.endswith(_BELOW_ZERO)]
    for rows in _keyed_rows(storage, schema, older, columns, rows=max(LEAST_ROWS, keys.height)):
        matched = rows.join(keys, on=names, how="inner", nulls_equal=True)
        hidden = matched.filter(pl.col(_SEQUENCE) > pl.col(_ADDED)).select(_FILE, _POSITION)
        for (ordinal,), group in hidden.group_by(_FILE):
            yield older[int(ordinal)].path, BitMap64(from_positions(group[_POSITION].to_numpy(), Width.BITS_64))


def _keyed_rows(
    storage: Storage, schema: IcebergSchema, files: Sequence[ContentFile], columns: Sequence[int], *, rows: int
) -> Iterator[pl.DataFrame]:
    """Yield the keys of the files' rows, about `rows` at a time. A frame may have rows of several files.

    Further columns are the index of the row's file, its position, and the file's data sequence number.
    """
    held: list[pl.DataFrame] = []
    count = 0
    for ordinal, file in enumerate(files):
        start = 0
        for batch in IcebergFileReader(storage, schema, file).keys(columns, batch_rows=rows):
            stop = start + batch.num_rows
            positions = pl.int_range(start, stop, dtype=pl.Int64).alias(_POSITION)
            number = pl.lit(ordinal, pl.Int32).alias(_FILE)
            held.append(
                _frame(batch).with_columns(number, positions, pl.lit(file.sequence_number, pl.Int64).alias(_ADDED))
            )
            count, start = count + batch.num_rows, stop
            if count >= rows:
                yield pl.concat(held)
                held, count = [], 0
    if held:
        yield pl.concat(held)


def _frame(keys: pa.Table) -> pl.DataFrame:
    """The keys as a Polars frame. Polars converts times of day and decimals; equal values stay equal.

    Polars joins NaN with NaN, and 0.0 with -0.0, which Java keeps apart: a further column has the sign of zeros.
    """
    frame = pl.DataFrame(keys)
    floating = [name for name, kind in frame.schema.items() if kind.is_float()]
    signs = [((pl.col(name) == 0) & (1 / pl.col(name) < 0)).alias(f"{name}{_BELOW_ZERO}") for name in floating]
    return frame.with_columns(signs)
