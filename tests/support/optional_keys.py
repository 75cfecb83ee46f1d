"""Rows -> a Parquet file whose maps have optional keys, as Paimon Java before 0.9 declares all of its maps."""

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nightkeep.encodings.parquet_footer import I32, STRUCT, footer_bytes, read_footer, structs

ENTRY = pa.struct([("key", pa.string()), ("value", pa.list_(pa.int64()))])
LISTS = pa.list_(pa.field("key_value", ENTRY, nullable=False))
SCHEMA = pa.schema({"top": LISTS, "row": pa.struct([("in", LISTS)]), "last": pa.int64()})
MAP, MAP_KEY_VALUE, REPEATED = (I32, 1), (I32, 2), (I32, 2)


def with_optional_keys(rows: Sequence[dict[str, Any]], called: tuple[int, int] = MAP, **written: Any) -> bytes:
    """Lists of keys and values have the same pages; what a footer calls them is changed."""
    sink = io.BytesIO()
    table = pa.Table.from_pylist(list(rows), SCHEMA)
    pq.write_table(table, sink, store_schema=False, use_compliant_nested_type=False, **written)
    data = sink.getvalue()
    footer = read_footer(pa.BufferReader(data))
    pages = data[: -len(footer_bytes(footer))]
    elements = structs(footer, 2)
    lists = [place for place, each in enumerate(elements) if each[4][1] == b"key_value"]
    for place in lists:
        elements[place - 2] |= {6: called, 10: (STRUCT, {2: (STRUCT, {})})}
        elements[place] |= {3: REPEATED, 6: MAP_KEY_VALUE}
    # The lists' own groups, of one child, are left out.
    footer[2] = (footer[2][0], (STRUCT, [each for place, each in enumerate(elements) if place + 1 not in lists]))
    return pages + footer_bytes(footer)
