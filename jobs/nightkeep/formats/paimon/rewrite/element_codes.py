"""Elements of a column of arrays or maps -> numbers that are equal where Java treats the elements as equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from nightkeep.formats.paimon.metadata.element_rules import NullKeys
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function
from nightkeep.kernels.arrow_buffers import Integers, Rows
from nightkeep.kernels.key_order import encode
from nightkeep.kernels.merge import Flags
from nightkeep.model.arrow_types import Array, Datum


@dataclass(frozen=True, slots=True)
class ElementCodes:
    """Codes of every element. `same`: equal for elements that count as the same. `rank`: the order of elements of one
    nested key. `null`: flags of nulls. `skipped`: elements that a nested key leaves out, nulls included."""

    same: Rows
    rank: Rows
    null: Flags
    skipped: Flags


def element_codes(rule: FieldRule, name: str, elements: Datum) -> ElementCodes:
    """`elements` are those of all rows, entries of maps as structs. Raises ValueError for a nested key with a null
    where the column's strategy does not allow one."""
    options = rule.elements
    assert options is not None
    null, nothing = _nulls(elements), np.zeros(len(elements), np.int64)
    if rule.function is Function.MERGE_MAP:
        return ElementCodes(dense([elements.field("key")]), nothing, null, null)
    if not options.key:
        compares = rule.distinct or not rule.ignores_retracts
        return ElementCodes(dense([elements]) if compares else nothing, nothing, null, null)
    keys = [elements.field(field) for field in options.key]
    incomplete = np.logical_or.reduce([_nulls(key) for key in keys])
    if options.null_keys is NullKeys.ERROR and bool((incomplete & ~null).any()):
        raise ValueError(f"column {name}: expected no null in fields {', '.join(options.key)} of its rows, found one")
    skipped = null | incomplete if options.null_keys is NullKeys.IGNORE else null
    rank = dense([elements.field(field) for field in options.sequence]) if options.sequence else nothing
    return ElementCodes(dense(keys), rank, null, skipped)


def dense(columns: Sequence[Array]) -> Rows:
    """A number per row that ascends with its values in Paimon's order, null first; equal for equal rows. ROWs compare
    field by field."""
    words = [word for column in columns for word in _words(column)]
    if not words or not len(words[0]):
        return np.zeros(len(columns[0]), np.int64)
    order = np.lexsort(words[::-1])
    changes = np.logical_or.reduce([np.diff(word[order], prepend=word[order[:1]]) != 0 for word in words])
    codes = np.empty(len(order), np.int64)
    codes[order] = np.cumsum(changes)
    return codes


def _words(column: Array) -> Iterator[Integers]:
    null = _nulls(column)
    yield (~null).astype(np.int64)
    if null.all():
        return
    if pa.types.is_struct(column.type):
        rows: Any = column
        # A null row may have anything in its fields.
        for child in rows.flatten():
            yield from _words(child)
        return
    filled: Datum = column.fill_null(column.drop_null()[0]) if column.null_count else column
    (encoded,) = encode(pa.table({"value": filled}))
    every = np.arange(len(column))
    for number in range(len(encoded.words)):
        yield encoded.word(number, every)


def _nulls(column: Array) -> Flags:
    flags: Flags = np.asarray(column.is_null())
    return flags
