"""Paimon's types -> types of new ORC files, with Paimon's field ids (OrcTypeUtil.java)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from nightkeep.formats.paimon.metadata.types import PaimonType, TypeRoot
from nightkeep.model.arrow_types import ArrowField

_FIELD_ID: Final = "paimon.id"
# SpecialFields.java: parts of nested columns have ids around a quarter of the largest integer.
_PARTS_ID, _DEPTHS = (1 << 29) - 1, 1 << 10


def orc_field(name: str, kind: PaimonType | pa.DataType, number: int) -> ArrowField:
    """A column of an ORC file, `number` being its field id."""
    return _field(name, kind, number, within=number, depth=0)


def _field(name: str, kind: PaimonType | pa.DataType, number: int, *, within: int, depth: int) -> ArrowField:
    """`within`: the id of the column, or of the ROW's field, that this is a part of, `depth` levels above."""
    stored = _nested(kind, within, depth + 1) if isinstance(kind, PaimonType) and kind.is_nested else _leaf(kind)
    return pa.field(name, stored, metadata={_FIELD_ID: str(number)})


def _nested(kind: PaimonType, within: int, depth: int) -> pa.DataType:
    place = within * _DEPTHS + depth
    if kind.root is TypeRoot.ROW:
        return pa.struct([orc_field(child.name, child.type, child.id or 0) for child in kind.children])
    first = kind.children[0].type
    if kind.root is TypeRoot.ARRAY:
        return pa.list_(_field("element", first, _PARTS_ID + place, within=within, depth=depth))
    count = PaimonType(TypeRoot.INT, nullable=False)
    value = count if kind.root is TypeRoot.MULTISET else kind.children[1].type
    key_field = _field("key", first, _PARTS_ID - place, within=within, depth=depth)
    return pa.map_(  # type: ignore[call-overload, no-any-return]
        key_field.with_nullable(nullable=False), _field("value", value, _PARTS_ID + place, within=within, depth=depth)
    )


def _leaf(kind: PaimonType | pa.DataType) -> pa.DataType:
    plain = kind.arrow if isinstance(kind, PaimonType) else kind
    return pa.int32() if pa.types.is_time(plain) else plain
