"""Rows -> stripes of an ORC file, which hold these rows although Arrow's writer loses nulls and some times.

Of a slice of structs, the writer (arrow/adapters/orc/util.cc) takes the nulls from the beginning of the buffer, where
other rows are. Of a struct within a struct, it writes the nulls only if the outer struct counts nulls, too. Otherwise
readers show values of other rows. So structs are copied, and each counts a null. Times that Java cannot read are
refused.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyarrow import orc

from nightkeep.encodings.nested_values import rebuilt
from nightkeep.encodings.orc_times import refuse_fractions_before_1970
from nightkeep.kernels.arrow_buffers import BYTE_BITS
from nightkeep.model.arrow_types import Array, ChunkedArray, has_type

_ALL: Final = 255


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
    return _stating_nulls(pa.concat_arrays([*column.chunks, pa.array([], column.type)]))


def _stating_nulls(array: Array) -> Array:
    """The same values, where each struct states that it has nulls."""
    if isinstance(array, pa.StructArray):
        validity = array.buffers()[0] or pa.py_buffer(bytes([_ALL]) * -(-len(array) // BYTE_BITS))
        fields = [_stating_nulls(array.field(place)) for place in range(array.type.num_fields)]
        return pa.Array.from_buffers(
            array.type, len(array), [validity], max(array.null_count, min(len(array), 1)), 0, fields
        )
    if isinstance(array, pa.MapArray):
        # Entries are a struct that has no nulls, and may state none.
        kind = array.type
        entries = [array.keys, _stating_nulls(array.items)]
        return rebuilt(array, kind, pa.StructArray.from_arrays(entries, fields=[kind.key_field, kind.item_field]))
    if isinstance(array, pa.ListArray):
        return rebuilt(array, array.type, _stating_nulls(array.values))
    return array
