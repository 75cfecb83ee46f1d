"""Rows -> stripes of an ORC file, which hold these rows although Arrow's writer loses nulls and some times.

Of a slice of structs, the writer (arrow/adapters/orc/util.cc) takes the nulls from the beginning of the buffer, where
other rows are. Of a null struct within others that have no nulls, it writes the values of the fields, and readers take
them for those of the next rows. So columns with null structs are copied batch by batch, and what is in a null struct is
null, too. Times that Java cannot read are refused.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import orc

from nightkeep.encodings.nested_values import rebuilt
from nightkeep.encodings.orc_times import refuse_fractions_before_1970
from nightkeep.model.arrow_types import Array, ChunkedArray


def write_rows(writer: orc.ORCWriter, rows: pa.Table, *, batch_rows: int) -> None:
    """Append rows to a file whose batches have `batch_rows` rows. Raises RefusedTable for times that Java cannot read
    as Arrow writes them."""
    for name in rows.column_names:
        refuse_fractions_before_1970(name, rows.column(name))
    writer.write(pa.Table.from_arrays([_given(column, batch_rows) for column in rows.columns], schema=rows.schema))


def _given(column: ChunkedArray, batch_rows: int) -> ChunkedArray:
    """The column; if a struct of it is null, in chunks of a batch, each in buffers of its own: the writer slices none.

    Arrow copies arrays that it puts together, but not a single one.
    """
    if not any(map(_has_null_struct, column.chunks)):
        return column
    nothing = pa.array([], column.type)
    whole = _masked(pa.concat_arrays([*column.chunks, nothing]))
    starts = range(0, len(whole), batch_rows)
    pieces = [pa.concat_arrays([whole.slice(start, batch_rows), nothing]) for start in starts]
    return pa.chunked_array(pieces, column.type)


def _has_null_struct(array: Array) -> bool:
    """Whether the values of this array, or those within, have a struct that is null."""
    if isinstance(array, pa.StructArray):
        return bool(array.null_count) or any(map(_has_null_struct, array.flatten()))
    if isinstance(array, pa.MapArray):
        return _has_null_struct(array.items)
    return isinstance(array, pa.ListArray) and _has_null_struct(array.values)


def _masked(array: Array) -> Array:
    """The same values, where each field of a struct is null if the struct is."""
    if isinstance(array, pa.StructArray):
        fields = [_masked(field) for field in array.flatten()]
        # Not from_arrays: a required field is null in a null struct, too.
        return pa.Array.from_buffers(array.type, len(array), array.buffers()[:1], array.null_count, 0, fields)
    if isinstance(array, pa.MapArray):
        kind = array.type
        entries = [array.keys, _masked(array.items)]
        return rebuilt(array, kind, pa.StructArray.from_arrays(entries, fields=[kind.key_field, kind.item_field]))
    if isinstance(array, pa.ListArray):
        return rebuilt(array, array.type, _masked(array.values))
    return array
