"""Data files -> RefusedTable if a row's value is not that of its identity partition. Engines show different rows then.

The manifest's statistics prove most files, footers some of the rest; only columns of the others are read, a batch at a
time.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.encodings.parquet_statistics import group_spans
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.data.conform import constant
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.identity_values import IdentityValue, differing, unproven
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.types import arrow_type
from nightkeep.model.arrow_types import Array, Scalar
from nightkeep.storage import Storage

Floats = npt.NDArray[np.floating]


def require_partition_values(storage: Storage, schema: IcebergSchema, files: Iterable[ContentFile]) -> None:
    for file in files:
        open_values = tuple(unproven(schema, file))
        if not open_values:
            continue
        reader = IcebergFileReader(storage, schema, file)
        for each in open_values:
            if not (_by_footer(reader, schema, each) or _by_rows(reader, each)):
                raise differing(schema.table, file.path, each.field.name)


def _by_footer(reader: IcebergFileReader, schema: IcebergSchema, known: IdentityValue) -> bool:
    """Whether the bounds of every row group prove it. Those of floats leave NaN out, and prove nothing."""
    kind = arrow_type(known.field.field_type)
    top = any(each.field_id == known.field.field_id for each in schema.current.fields)
    leaf = reader.leaf_of(known.field.name) if top else None
    if leaf is None or reader.footer is None or known.value is None or pa.types.is_floating(kind):
        return False
    spans = group_spans(reader.footer, *leaf)
    ends = (spans.lows, spans.highs)
    return all(_are_all(each, constant(known.value, kind, 1)[0]) for each in ends) and _are_zero(spans.nulls)


def _by_rows(reader: IcebergFileReader, known: IdentityValue) -> bool:
    expected: Scalar = constant(known.value, arrow_type(known.field.field_type), 1)[0]
    columns = (keys.column(0) for keys in reader.keys((known.field.field_id,)))
    return all(_are_all(chunk, expected) for column in columns for chunk in column.chunks)


def _are_zero(counts: Array) -> bool:
    return counts.null_count == 0 and not np.asarray(counts).any()


def _are_all(values: Array, expected: Scalar) -> bool:
    """Whether every value is `expected`. Zeros of different signs differ, as in Java; every NaN is one value."""
    if not expected.is_valid:
        return values.null_count == len(values)
    if values.null_count:
        return False
    if pa.types.is_floating(values.type):
        return _float_equal(np.asarray(values), float(expected.as_py()))
    return pc.all(pc.equal(values, expected)).as_py() is not False


def _float_equal(values: Floats, expected: float) -> bool:
    if np.isnan(expected):
        return bool(np.isnan(values).all())
    return bool((values == expected).all() and (np.signbit(values) == np.signbit(expected)).all())
