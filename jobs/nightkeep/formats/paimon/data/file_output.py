"""Chunks of rows -> the bytes of one data file, in the format of its level.

Types and field ids follow ParquetSchemaConverter.java, OrcTypeUtil.java and AvroSchemaConverter.java.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.avro_container import AvroHeader, array_of, container_bytes
from nightkeep.encodings.avro_schemas import AvroType, Schema
from nightkeep.encodings.orc_writing import write_rows
from nightkeep.encodings.parquet_settings import SETTINGS
from nightkeep.formats.paimon.data.columns import KEY_PREFIX, KIND, SEQUENCE
from nightkeep.formats.paimon.data.orc_types import orc_field
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema, option_bool, option_bytes
from nightkeep.formats.paimon.metadata.types import TypeRoot
from nightkeep.model.arrow_types import ArrowField, ChunkedArray

WriteChunk: TypeAlias = Callable[[pa.Table], None]
"""Appends rows. Their columns have the table's logical types."""
ROW_GROUP_ROWS: Final = 1 << 18
"""Rows per row group: small enough that lookups skip most of a file, large enough to compress well."""
ORC_BATCH_ROWS: Final = 1024
"""A stripe can end after so many rows: Arrow's default."""
AVRO_BATCH_ROWS: Final = 1 << 13
"""Rows that are Python objects at a time while they are encoded."""
_STRIPES: Final = 4
"""A file ends after whole stripes, so that it exceeds its target size by a quarter at most."""
_STRIPE_BYTES: Final = 64 << 20
_ORC_CODECS: Final[Mapping[str, Literal["UNCOMPRESSED", "ZLIB", "SNAPPY", "LZ4", "ZSTD"]]] = {
    "none": "UNCOMPRESSED",
    "zlib": "ZLIB",
    "snappy": "SNAPPY",
    "lz4": "LZ4",
    "zstd": "ZSTD",
}
_ORC_DICTIONARY: Final = 0.8
"""orc.dictionary.key.threshold of OrcOptions.java: more distinct texts than that are not worth a dictionary."""
# SpecialFields.java.
_KEY_FIELD_ID, _SEQUENCE_FIELD_ID, _KIND_FIELD_ID = (1 << 30) - 1, (1 << 31) - 2, (1 << 31) - 3


def open_output(
    file_format: str, sink: BinaryIO, schema: PaimonSchema, *, codec: tuple[str, int | None], target_bytes: int
) -> AbstractContextManager[WriteChunk]:
    """What writes the rows of one file to `sink`, which it leaves open. `file_format` is of `metadata.file_formats`."""
    return _OUTPUTS[file_format](sink, schema, codec, target_bytes)


@contextmanager
def _parquet(
    sink: BinaryIO, schema: PaimonSchema, codec: tuple[str, int | None], target_bytes: int
) -> Iterator[WriteChunk]:
    stored = pa.schema([_field(name, field) for name, field, _ in _columns(schema)])
    name, level = codec
    # Keys and sequence numbers of a file are nearly unique, so a dictionary of them would be discarded.
    spelled = [f.name for f in schema.fields if f.type.arrow in (pa.string(), pa.binary())]
    settings = {"compression": name, "compression_level": level, "use_dictionary": spelled, **SETTINGS}
    with pq.ParquetWriter(sink, stored, **settings) as writer:
        yield lambda chunk: writer.write_table(chunk.select(stored.names).cast(stored), row_group_size=ROW_GROUP_ROWS)


@contextmanager
def _orc(
    sink: BinaryIO, schema: PaimonSchema, codec: tuple[str, int | None], target_bytes: int
) -> Iterator[WriteChunk]:
    columns = _columns(schema)
    stored = pa.schema(
        [
            orc_field(name, field.type if isinstance(field, PaimonField) else field, number)
            for name, field, number in columns
        ]
    )
    block = option_bytes(schema, "orc.stripe.size") or option_bytes(schema, "file.block-size") or _STRIPE_BYTES
    with orc.ORCWriter(
        sink,
        compression=_ORC_CODECS[codec[0]],
        stripe_size=max(1, min(block, target_bytes // _STRIPES)),
        batch_size=ORC_BATCH_ROWS,
        dictionary_key_size_threshold=_ORC_DICTIONARY,
    ) as writer:
        yield lambda chunk: write_rows(writer, chunk.select(stored.names).cast(stored), batch_rows=ORC_BATCH_ROWS)


@contextmanager
def _avro(
    sink: BinaryIO, schema: PaimonSchema, codec: tuple[str, int | None], target_bytes: int
) -> Iterator[WriteChunk]:
    columns = [(_field(name, field), _avro_type(field)) for name, field, _ in _columns(schema)]
    fields = [
        {"name": field.name, "type": ["null", kind], "default": None}
        if field.nullable
        else {"name": field.name, "type": kind}
        for field, kind in columns
    ]
    record: Schema = {"type": "record", "name": "org.apache.paimon.avro.generated.record", "fields": fields}
    items, header = array_of(record), AvroHeader(record, {})
    name, _ = codec
    packed = CODECS["zstandard" if name == "zstd" else name]
    start = container_bytes((), items, packed, header)
    sink.write(start)

    def write(chunk: pa.Table) -> None:
        # Equal headers have equal sync markers, so that blocks of one file may follow those of another.
        names = [field.name for field, _ in columns]
        numbers = pa.table([_number_of(chunk.column(name)) for name in names], names).combine_chunks()
        for batch in numbers.to_batches(max_chunksize=AVRO_BATCH_ROWS):
            sink.write(container_bytes(batch.to_pylist(), items, packed, header)[len(start) :])

    yield write


_Output: TypeAlias = Callable[[BinaryIO, PaimonSchema, tuple[str, int | None], int], AbstractContextManager[WriteChunk]]
_OUTPUTS: Final[Mapping[str, _Output]] = {"parquet": _parquet, "orc": _orc, "avro": _avro}


def _columns(schema: PaimonSchema) -> Sequence[tuple[str, PaimonField | pa.DataType, int]]:
    """Every column of a file: its name, the table's field or a type of its own, and its field id. A table without keys
    has no other columns than its own."""
    is_thin = option_bool(schema, "data-file.thin-mode")
    keys = () if is_thin else schema.select(schema.trimmed_keys)
    if not schema.primary_keys:
        return [(field.name, field, field.id) for field in schema.fields]
    return [
        *((KEY_PREFIX + field.name, field, _KEY_FIELD_ID + field.id) for field in keys),
        (SEQUENCE, pa.int64(), _SEQUENCE_FIELD_ID),
        (KIND, pa.int8(), _KIND_FIELD_ID),
        *((field.name, field, field.id) for field in schema.fields),
    ]


def _field(name: str, field: PaimonField | pa.DataType) -> ArrowField:
    if isinstance(field, PaimonField):
        return pa.field(name, field.type.arrow, nullable=field.type.nullable and field.name == name)
    return pa.field(name, field, nullable=False)


def _avro_type(field: PaimonField | pa.DataType) -> AvroType:
    kind = field.type.arrow if isinstance(field, PaimonField) else field
    if isinstance(field, PaimonField) and field.type.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        unit = "millis" if (field.type.precision or 0) <= _MILLIS else "micros"
        # Paimon has the names of the two kinds of times the other way round.
        local = "local-" if field.type.root is TypeRoot.TIMESTAMP_LTZ else ""
        return {"type": "long", "logicalType": f"{local}timestamp-{unit}"}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return _AVRO_TYPES[kind]


_MILLIS: Final = 3
_AVRO_TYPES: Final[Mapping[pa.DataType, AvroType]] = {
    pa.bool_(): "boolean",
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), "int"),
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.time32("ms"): {"type": "int", "logicalType": "time-millis"},
}


def _number_of(column: ChunkedArray) -> ChunkedArray:
    """Times as the numbers that Avro stores, of any year."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date(kind) or pa.types.is_time(kind) else column
