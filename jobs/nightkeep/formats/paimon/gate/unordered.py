"""Rows -> the same rows with the elements of some columns in an order of our own.

Where Java leaves the order of an array's elements to a hash table, two arrays of the same elements are the same value.
A map's entries need no such order: a fingerprint counts them without their places.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from nightkeep.formats.paimon.metadata.merge_engine import merge_rules
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.kernels.fingerprint import row_hashes


def alike(batch: pa.RecordBatch, schema: PaimonSchema) -> pa.RecordBatch:
    """Arrays whose elements have no order (FieldRule.is_unordered) are sorted by the hashes of their elements."""
    rules = merge_rules(schema)
    for place, name in enumerate(batch.schema.names) if rules is not None else ():
        field = batch.schema.field(place)
        rule = None if rules is None else rules.fields.get(name)
        if rule is not None and rule.is_unordered and pa.types.is_list(field.type):
            batch = batch.set_column(place, field, _sorted(batch.column(place)))
    return batch


def _sorted(lists: Any) -> Any:
    offsets = lists.offsets.to_numpy()
    values = lists.values.slice(offsets[0], offsets[-1] - offsets[0])
    owner = np.repeat(np.arange(len(lists)), np.diff(offsets))
    first, second = row_hashes(pa.RecordBatch.from_arrays([values], names=["element"]))
    order = np.lexsort((second, first, owner))
    starts = pa.array((offsets - offsets[0]).astype(np.int32))
    return pa.ListArray.from_arrays(starts, values.take(pa.array(order)), type=lists.type, mask=lists.is_null())
