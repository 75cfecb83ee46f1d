"""Statistics of a file -> their row count; statistics in columns of a checkpoint -> JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from nightkeep.errors import CorruptMetadata, kind_of, reason_of
from nightkeep.model.arrow_types import Array


def row_count(stats: str, *, subject: str) -> int | None:
    """numRecords of statistics, None if absent. Raises CorruptMetadata.

    Column statistics are not checked here, and may hold numbers that JSON does not allow.
    """
    try:
        rows = json.loads(stats).get("numRecords")
    except (ValueError, AttributeError, RecursionError) as failure:
        raise CorruptMetadata(
            subject, "statistics as a JSON object", f"{kind_of(stats)}: {reason_of(failure)}"
        ) from failure
    if rows is not None and (type(rows) is not int or not 0 <= rows < 1 << 63):
        raise CorruptMetadata(subject, "numRecords that counts rows", kind_of(rows))
    return rows


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
