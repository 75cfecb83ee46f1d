"""Position delete files (format version 2) <-> one bitmap of positions per data file.

Iceberg table spec, "Position Delete Files"; SortedPosDeleteWriter.java for what is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc
from pyiceberg.types import LongType, NestedField, StringType
from pyroaring import BitMap64

from nightkeep.encodings.parquet_rows import leaf_bounds
from nightkeep.encodings.parquet_settings import WriterOptions
from nightkeep.errors import CorruptMetadata, reason_of
from nightkeep.formats.iceberg.data.orc_output import orc_field
from nightkeep.formats.iceberg.data.stored_columns import footer_of, open_columns
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent, NewFile
from nightkeep.formats.iceberg.metadata.conversions import to_bytes
from nightkeep.formats.iceberg.metadata.file_records import PATH_FIELD
from nightkeep.formats.iceberg.metadata.locations import name_in
from nightkeep.kernels.bitmap import Width, from_positions, positions
from nightkeep.model.arrow_types import FIELD_ID, Array, ArrowField, DictionaryArray, field_id
from nightkeep.storage import Storage

POSITION_FIELD: Final = 2147483545
"""The field id of pos (spec, "Reserved Field IDs")."""


def read_positions(
    storage: Storage, file: ContentFile, wanted: Collection[str] | None = None
) -> Mapping[str, BitMap64]:
    """The deleted positions by path of the data file, spelled as in the delete file. Its rows may be in any order.

    `wanted` limits the result to these data files: row groups of Parquet whose statistics exclude all of them are
    skipped. Only path and position are read. Raises MissingFile, and CorruptMetadata naming the file for a file that is
    no position delete file, nulls, negative positions, or a row count other than the manifest's.
    """
    by_file: dict[str, BitMap64] = {}
    source = open_columns(storage, file.name, file.format, subject=file.path)
    if source.starts[-1] != file.rows:
        raise CorruptMetadata(file.path, f"{file.rows} rows as its manifest states", str(source.starts[-1]))
    try:
        places = _places(source.fields, file.path)
        starts = leaf_bounds(source.fields)
        leaves, footer = [starts[place] for place in sorted(places)], footer_of(source)
        parts = [
            part
            for part in range(len(source.starts) - 1)
            if footer is None or _may_hold(footer.row_group(part).column(starts[places[0]]), wanted)
        ]
        order = (0, 1) if places[0] < places[1] else (1, 0)
        for _, batch in source.batches(leaves, groups=parts, batch_rows=_BATCH_ROWS):
            for path, held in _by_path(batch.column(order[0]), batch.column(order[1]), file.path):
                if wanted is None or path in wanted:
                    by_file[path] = by_file[path] | held if path in by_file else held
    except (pa.ArrowException, OSError, UnicodeError) as failure:
        raise CorruptMetadata(file.path, "a file of file_path and pos", f"{failure!s:.200}") from failure
    return by_file


def write_positions(
    storage: Storage, location: str, data_file: ContentFile, bitmap: BitMap64, *, file_format: str = "parquet"
) -> NewFile:
    """Write the deleted positions of one data file in ascending order. Returns the file for the commit to add.

    `file_format` is "parquet" or "orc".

    The bounds of file_path are not truncated: equal bounds show engines that the deletes are for this one data file.
    Raises ValueError for an empty bitmap and positions that the data file does not have.
    """
    if not bitmap or bitmap.max() >= data_file.rows:
        found = f"up to {bitmap.max()}" if bitmap else "none"
        raise ValueError(f"{data_file.path}: expected positions below its {data_file.rows} rows, found {found}")
    name = name_in(storage, location)
    pieces = (bitmap[start : start + _BATCH_ROWS] for start in range(0, len(bitmap), _BATCH_ROWS))
    batches = (_batch(data_file.path, piece) for piece in pieces)
    with storage.create(name) as sink:
        (_write_orc if file_format == "orc" else _write_parquet)(sink, batches)
        size = sink.tell()
    raw = _raw(data_file, bitmap) | {"file_format": file_format.upper()}
    if file_format == "parquet":
        with storage.open(name) as opened, pq.ParquetFile(opened) as written:
            raw |= _footer_facts(written.metadata)
    raw |= {"file_path": location, "file_size_in_bytes": size}
    return NewFile(FileContent.POSITION_DELETES, data_file.spec_id, raw)


def _write_parquet(sink: BinaryIO, batches: Iterable[pa.RecordBatch]) -> None:
    with pq.ParquetWriter(sink, _SCHEMA, **_WRITING) as writer:
        writer.add_key_value_metadata({"delete-type": "position"})
        for batch in batches:
            writer.write_batch(batch)


def _write_orc(sink: BinaryIO, batches: Iterable[pa.RecordBatch]) -> None:
    with orc.ORCWriter(sink, compression="ZSTD", dictionary_key_size_threshold=1) as writer:
        for batch in batches:
            writer.write(pa.Table.from_batches([batch]).cast(_ORC_SCHEMA))


_BATCH_ROWS: Final = 1 << 17
_PATH, _POSITION = "file_path", "pos"


def _field(name: str, kind: pa.DataType, number: int) -> ArrowField:
    return pa.field(name, kind, nullable=False, metadata={FIELD_ID: str(number).encode()})


_SCHEMA: Final = pa.schema(
    [_field(_PATH, pa.dictionary(pa.int32(), pa.string()), PATH_FIELD), _field(_POSITION, pa.int64(), POSITION_FIELD)]
)
_ORC_SCHEMA: Final = pa.schema(
    [
        orc_field(NestedField(PATH_FIELD, _PATH, StringType(), required=True)),
        orc_field(NestedField(POSITION_FIELD, _POSITION, LongType(), required=True)),
    ]
)
# Positions ascend: delta encoding takes one or two bits per row, a dictionary would save nothing.
_WRITING: Final[WriterOptions] = {
    "compression": "zstd",
    "use_dictionary": [_PATH],
    "column_encoding": {_POSITION: "DELTA_BINARY_PACKED"},
    "store_schema": False,
}


_FOUND_BY: Final = ((PATH_FIELD, _PATH, (pa.string(), pa.large_string())), (POSITION_FIELD, _POSITION, (pa.int64(),)))


def _places(fields: Sequence[ArrowField], subject: str) -> tuple[int, int]:
    """The indexes of the path and position columns, found by field id, or by name in a file without ids."""
    by_id = {field_id(field): place for place, field in enumerate(fields)}
    by_name = {field.name: place for place, field in enumerate(fields)}
    found = []
    for number, name, kinds in _FOUND_BY:
        place = by_id.get(number, by_name.get(name))
        if place is None or fields[place].type not in kinds:
            names = [field.name for field in fields]
            raise CorruptMetadata(subject, f"a column {name} with field id {number}", f"{names}")
        found.append(place)
    return found[0], found[1]


def _may_hold(column: pq.ColumnChunkMetaData, wanted: Collection[str] | None) -> bool:
    if wanted is None:
        return True
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max:
        return True
    low, high = str(statistics.min), str(statistics.max)
    return any(low <= path <= high for path in wanted)


def _by_path(paths: Array, column: Array, subject: str) -> Iterator[tuple[str, BitMap64]]:
    if paths.null_count or column.null_count:
        raise CorruptMetadata(subject, "no null in file_path and pos", f"{paths.null_count}, {column.null_count}")
    encoded = cast(DictionaryArray, pc.dictionary_encode(paths))
    values, codes = column.to_numpy(), encoded.indices.to_numpy()
    if len(encoded.dictionary) > 1:
        order = np.argsort(codes, kind="stable")
        values, codes = values[order], codes[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
        yield encoded.dictionary[int(codes[start])].as_py(), _bitmap(values[start:end], subject)


def _bitmap(values: npt.NDArray[np.int64], subject: str) -> BitMap64:
    try:
        return BitMap64(from_positions(values, Width.BITS_64))
    except ValueError as failure:
        raise CorruptMetadata(subject, "positions of 0 and more", reason_of(failure)) from failure


def _batch(path: str, held: BitMap64) -> pa.RecordBatch:
    column = pa.array(positions(held))
    paths = pa.DictionaryArray.from_arrays(np.zeros(len(column), np.int32), pa.array([path]))
    return pa.RecordBatch.from_arrays([paths, column], schema=_SCHEMA)


def _footer_facts(footer: pq.FileMetaData) -> dict[str, object]:
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    sizes = [sum(group.column(at).total_compressed_size for group in groups) for at in range(2)]
    return {
        "column_sizes": dict(zip((PATH_FIELD, POSITION_FIELD), sizes, strict=True)),
        "split_offsets": [_start(group.column(0)) for group in groups],
    }


def _raw(data_file: ContentFile, bitmap: BitMap64) -> dict[str, object]:
    """The data_file struct, with bounds and without counts, as Java writes it for deletes of one data file."""
    path, ends = to_bytes(StringType(), data_file.path), (bitmap.min(), bitmap.max())
    low, high = (to_bytes(LongType(), end) for end in ends)
    return {
        "content": FileContent.POSITION_DELETES.value,
        "partition": data_file.partition,
        "record_count": len(bitmap),
        "lower_bounds": {PATH_FIELD: path, POSITION_FIELD: low},
        "upper_bounds": {PATH_FIELD: path, POSITION_FIELD: high},
        "referenced_data_file": data_file.path,
    }


def _start(column: pq.ColumnChunkMetaData) -> int:
    """Offset of a row group by its first column: a dictionary page precedes the data pages."""
    dictionary = column.dictionary_page_offset
    return column.data_page_offset if dictionary is None else dictionary
