"""Values of a nested column as a file holds them -> values under the current schema, fields mapped by id.

Fields of a ROW may be renamed, added, dropped and widened, at any depth. A field that a file lacks is null.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.type_changes import is_converted
from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.model.arrow_types import ChunkedArray, Datum


def conformed(column: ChunkedArray, written: PaimonType, wanted: PaimonType, *, pads_chars: bool) -> ChunkedArray:
    """The column with the type `wanted.arrow`. `written` and `wanted` are nested types of one root.

    `pads_chars`: blanks at the end of CHAR values are left out. Raises RefusedTable for a change of type that is not
    handled, and KeyError for a file that lacks a field of its schema.
    """
    chunks = [_conformed(chunk, written, wanted, pads_chars=pads_chars) for chunk in column.chunks]
    kind: Any = wanted.arrow
    nested: ChunkedArray = pa.chunked_array(chunks, kind)
    return nested


def absent(rows: int, kind: Any) -> ChunkedArray:
    """Nulls of a type, nested or not."""
    return pa.chunked_array([_nulls(rows, kind)], kind)


def _nulls(rows: int, kind: Any) -> Datum:
    return pa.nulls(rows, kind)


def _conformed(array: Datum, written: PaimonType, wanted: PaimonType, *, pads_chars: bool) -> Datum:
    if is_converted(written, wanted):
        raise RefusedTable(
            "a nested column",
            f"values were written as {written} and are now {wanted}",
            "rewrite the file with the engine that changed the type",
        )
    match wanted.root:
        case TypeRoot.ROW:
            return _row(array, written, wanted, pads_chars=pads_chars)
        case TypeRoot.ARRAY | TypeRoot.MAP | TypeRoot.MULTISET:
            return _repeated(array, written, wanted, pads_chars=pads_chars)
        case TypeRoot.CHAR if pads_chars:
            array = pc.utf8_rtrim(array, " ")
        case TypeRoot.VARCHAR if pads_chars and written.root is TypeRoot.CHAR:
            array = pc.utf8_rtrim(array, " ")
    return array if array.type == wanted.arrow else array.cast(written.arrow).cast(wanted.arrow)


def _row(array: Datum, written: PaimonType, wanted: PaimonType, *, pads_chars: bool) -> Datum:
    kind: Any = wanted.arrow
    held = {field.id: field for field in written.children}
    children = []
    for field in wanted.children:
        stored = held.get(field.id)
        if stored is None:
            children.append(_nulls(len(array), field.type.arrow))
            continue
        place = array.type.get_field_index(stored.name)
        if place < 0:
            raise KeyError(stored.name)
        children.append(_conformed(array.field(place), stored.type, field.type, pads_chars=pads_chars))
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())


def _repeated(array: Datum, written: PaimonType, wanted: PaimonType, *, pads_chars: bool) -> Datum:
    """A list or a map: the offsets stay, what they point to changes."""
    kind: Any = wanted.arrow
    if wanted.root is TypeRoot.ARRAY:
        (element,), (now,) = written.children, wanted.children
        inside = _conformed(array.values, element.type, now.type, pads_chars=pads_chars)
    else:
        keys, items = _entries(array)
        keys = _conformed(keys, written.children[0].type, wanted.children[0].type, pads_chars=pads_chars)
        if wanted.root is TypeRoot.MAP:
            items = _conformed(items, written.children[1].type, wanted.children[1].type, pads_chars=pads_chars)
        inside = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
    return pa.Array.from_buffers(
        kind, len(array), array.buffers()[:2], null_count=array.null_count, offset=array.offset, children=[inside]
    )


def _entries(array: Datum) -> tuple[Datum, Datum]:
    """Keys and values of a map, which a file with optional keys holds as a list (see encodings.optional_keys)."""
    if pa.types.is_map(array.type):
        return array.keys, array.items
    keys, items = array.values.flatten()
    if keys.null_count:
        raise pa.ArrowInvalid(f"{keys.null_count} null keys of maps")
    return keys, items
