"""Rows -> stripes of an ORC file, which hold these rows although Arrow's writer loses nulls and some times.

Of a slice of structs, the writer (arrow/adapters/orc/util.cc) takes the nulls from the beginning of the buffer, where
other rows are. Of a null struct within others that have no nulls, it writes the values of the fields, and readers take
them for those of the next rows. So structs are copied, and what is in a null struct is null, too. Times that Java
cannot read are refused.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import orc

from nightkeep.encodings.nested_values import rebuilt
from nightkeep.encodings.orc_times import refuse_fractions_before_1970
from nightkeep.model.arrow_types import Array, ChunkedArray, has_type


def write_rows(writer: orc.ORCWriter, rows: pa.Table, *, batch_rows: int) -> None:
    """Append rows to a file whose batches have `batch_rows` rows: the writer slices more. Raises RefusedTable for times
    that Arrow writes as Java cannot read them."""
    for name in rows.column_names:
        refuse_fractions_before_1970(name, rows.column(name))
    if not any(has_type(field.type, pa.types.is_struct) for field in rows.schema):
        writer.write(rows)
        return
    for start in range(0, max(rows.num_rows, 1), batch_rows):
        piece = rows.slice(start, batch_rows)
        writer.write(pa.Table.from_arrays([_given(column) for column in piece.columns], schema=rows.schema))


def _given(column: ChunkedArray) -> Array:
    """The values in buffers of their own: Arrow copies arrays that it puts together, but not a single one."""
    return _masked(pa.concat_arrays([*column.chunks, pa.array([], column.type)]))


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
