"""Statistics of files -> their row counts; statistics in columns of a checkpoint -> JSON."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as arrow_compute
import pyarrow.json as pj

from nightkeep.model.arrow_types import Array, ChunkedArray
from nightkeep.model.file_columns import UNKNOWN, Numbers

pc: Final[Any] = arrow_compute
"""The stubs know few of the combinations of types."""

_DEEP: Final = 500
"""Brackets of one kind in a text that Python's parser, which limits their depth, may refuse."""
_COUNTED: Final = pa.schema({"numRecords": pa.int64()})


def row_count(stats: str) -> int | None:
    """numRecords of statistics. None if it is absent or no count of rows: statistics are optional, and the footer has
    the count.

    Column statistics are not checked here, and may hold numbers that JSON does not allow.
    """
    try:
        rows = json.loads(stats).get("numRecords")
    except (ValueError, AttributeError, RecursionError):
        return None
    return rows if type(rows) is int and 0 <= rows < 1 << 63 else None


def row_counts(stats: Array) -> Numbers | None:
    """As row_count for every text of some files, UNKNOWN if absent; None if one of them must be parsed."""
    texts = stats.filter(pc.and_kleene(pc.is_valid(stats), pc.not_equal(stats, "")))
    found = np.full(len(stats), UNKNOWN, np.int64)
    if len(texts):
        counts = _parsed(texts)
        if counts is None:
            return None
        present = pc.fill_null(pc.not_equal(stats, ""), fill_value=False).to_numpy(zero_copy_only=False)
        found[present] = pc.fill_null(counts, UNKNOWN).to_numpy()
    return found


def _parsed(texts: Array) -> ChunkedArray | None:
    # One object a line, that has the name once: Arrow's parser takes several values in a line, and the last of a name.
    objects = pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))
    plain = pc.and_(objects, pc.invert(pc.match_substring(texts, "\n")))
    once = pc.less_equal(pc.count_substring(texts, "numRecords"), 1)
    shallow = [pc.less(pc.count_substring(texts, bracket), _DEEP) for bracket in "{["]
    if not all(pc.all(flags).as_py() for flags in (plain, once, *shallow)):
        return None
    lines = pc.binary_join_element_wise(texts, "", "\n")
    data = cast("pa.Buffer", lines.buffers()[2])
    options = pj.ReadOptions(use_threads=False, block_size=max(data.size, 1 << 20))
    parsing = pj.ParseOptions(explicit_schema=_COUNTED, unexpected_field_behavior="ignore")
    try:
        counts = pj.read_json(io.BytesIO(data), options, parsing).column("numRecords")
    except pa.ArrowException:
        return None
    least = pc.min(counts).as_py()
    return counts if len(counts) == len(texts) and (least is None or least >= 0) else None


def stats_texts(column: Array) -> Sequence[str | None]:
    """JSON of each row, None for null. Names without a value are left out, as delta-spark does.

    Times are truncated to milliseconds, with Z if the column has a zone. Numbers that JSON does not allow are strings.
    """
    rows: list[object] = column.to_pylist()
    return [None if row is None else _text(row) for row in rows]


def _text(value: object) -> str:
    if isinstance(value, dict):
        items = (f"{_text(name)}:{_text(item)}" for name, item in value.items() if item is not None)
        return "{" + ",".join(items) + "}"
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
        return f'"{text}Z"' if value.tzinfo else f'"{text}"'
    if isinstance(value, date):
        return f'"{value.isoformat()}"'
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    return json.dumps(value, ensure_ascii=False)
