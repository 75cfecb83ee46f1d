"""Rows in Arrow -> values as documents show them: times in ISO 8601, bytes in hex, decimals as text."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from nightkeep.records.check_report import Row


def json_rows(batch: pa.RecordBatch) -> list[Row]:
    """The rows by column name. Dates and times that Python does not have are texts of Arrow."""
    columns = [[_value(each) for each in column] for column in batch.columns]
    return [dict(zip(batch.schema.names, values, strict=True)) for values in zip(*columns, strict=True)]


def _value(scalar: pa.Scalar[Any]) -> object:
    try:
        return _json(scalar.as_py())
    except (ValueError, OverflowError):
        return str(scalar.cast(pa.string()).as_py()) if pa.types.is_temporal(scalar.type) else str(scalar)


def _json(value: object) -> object:
    match value:
        case bytes():
            return value.hex()
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | timedelta():
            return str(value)
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {str(_json(key)): _json(each) for key, each in value.items()}
        case list() | tuple():
            return [_json(each) for each in value]
    return value
