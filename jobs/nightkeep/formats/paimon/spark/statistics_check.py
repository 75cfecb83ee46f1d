"""Files of a version -> the number of wrong statistics that readers with filters rely on. Counted by Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.metadata.binary_row import decode_row, sort_key
from nightkeep.formats.paimon.metadata.schema import PaimonField
from nightkeep.formats.paimon.metadata.snapshot import Schemas
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.formats.paimon.metadata.values import Value, canonical
from nightkeep.formats.paimon.spark.data_files import PaimonStoredFile
from nightkeep.model.arrow_types import Scalar
from nightkeep.spark.releases import arrow_of
from nightkeep.spark.stored_files import ROW_BITS
from nightkeep.spark.view import column

_NANOS_OF_MICRO = 1000
_EXACT = frozenset(
    {
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INT,
        TypeRoot.BIGINT,
        TypeRoot.FLOAT,
        TypeRoot.DOUBLE,
        TypeRoot.DECIMAL,
        TypeRoot.DATE,
    }
)
"""Types whose bounds no writer cuts."""


def misstated(stored: DataFrame, schemas: Schemas, files: Sequence[PaimonStoredFile]) -> Mapping[int, int]:
    """The number of columns of `files` with a wrong null count or range, by index of each unit.

    `stored` has every stored row of `files`, from stored_rows. A file with a wrong range of sequence numbers counts as
    one more column.
    """
    fields = schemas.current.fields
    spans = [span for i in range(len(fields)) for span in _span(F.col(column(i)), column(i))]
    numbers = _span(F.col("sequence"), "sequence")
    ranges = stored.groupBy(F.shiftright("position", ROW_BITS).alias("file")).agg(
        F.count(F.lit(1)).alias("rows"), *numbers, *spans
    )
    by_number = {file.number: file for file in files}
    wrong: Counter[int] = Counter()
    for held in arrow_of(ranges).to_batches():
        for row in range(held.num_rows):
            values = {name: held.column(name)[row] for name in held.schema.names}
            file = by_number[values["file"].as_py()]
            wrong[file.unit] += sum(1 for _ in _faults(values, schemas, file))
    return wrong


def _span(value: Column, name: str) -> tuple[Column, Column, Column]:
    return F.min(value).alias(f"{name}_min"), F.max(value).alias(f"{name}_max"), F.count(value).alias(f"{name}_some")


def _faults(values: Mapping[str, Scalar], schemas: Schemas, file: PaimonStoredFile) -> Iterator[str]:
    stated = (file.file.min_sequence, file.file.max_sequence)
    # Rows of a table without keys have no sequence numbers.
    if schemas.current.primary_keys and (values["sequence_min"].as_py(), values["sequence_max"].as_py()) != stated:
        yield "sequence"
    places = {field.id: place for place, field in enumerate(schemas.current.fields)}
    written = schemas.by_id[file.file.schema_id]
    listed = file.file.record["_VALUE_STATS_COLS"]
    names = [field.name for field in written.fields] if listed is None else list(listed)
    for field, low, high, nulls in _stated(written.select(tuple(names)), file.file.record["_VALUE_STATS"]):
        place = places.get(field.id)
        if place is None or schemas.current.fields[place].type != field.type:
            continue
        name = column(place)
        least, greatest = (canonical(values[f"{name}_{side}"], field.type) for side in ("min", "max"))
        missing = values["rows"].as_py() - values[f"{name}_some"].as_py()
        outside = _below(least, low, field.type) or _below(high, greatest, field.type)
        # Readers answer MIN and MAX from bounds that no writer cuts.
        wider = field.type.root in _EXACT and (low not in (None, least) or high not in (None, greatest))
        if outside or wider or nulls not in (None, missing):
            yield field.name


def _stated(fields: Sequence[PaimonField], stats: Record) -> Iterator[tuple[PaimonField, Value, Value, int | None]]:
    types = [field.type for field in fields]
    lows, highs = (decode_row(stats[side], types) for side in ("_MIN_VALUES", "_MAX_VALUES"))
    nulls = stats["_NULL_COUNTS"] or [None] * len(fields)
    yield from zip(fields, lows, highs, nulls, strict=True)


def _below(left: Value, right: Value, kind: PaimonType) -> bool:
    """Whether both values are given and `left` orders before `right`. Times are compared in Spark's precision."""
    if left is None or right is None:
        return False
    is_time = kind.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
    if is_time and isinstance(left, int) and isinstance(right, int):
        return left // _NANOS_OF_MICRO < right // _NANOS_OF_MICRO
    return sort_key((left,), (kind,)) < sort_key((right,), (kind,))
