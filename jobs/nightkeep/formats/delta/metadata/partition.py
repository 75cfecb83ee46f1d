"""Partition values in the log, texts by physical name -> typed values, a unit's name, a folder's name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final
from urllib.parse import quote

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.metadata.partition_texts import read_text
from nightkeep.formats.delta.metadata.schema import ColumnMapping, DeltaField, DeltaSchema

Stored = Mapping[str, str | None]
DEFAULT: Final = "__HIVE_DEFAULT_PARTITION__"


def stored(schema: DeltaSchema, values: Stored, *, subject: str) -> Stored:
    """The text of every partition column, in the table's order, as it stands in the log. Missing ones are None.

    Raises CorruptMetadata, which names `subject`, for a value of a column that is not a partition column.
    """
    names = [schema.field(name).physical for name in schema.partition_columns]
    if not values.keys() <= set(names):
        others = ", ".join(sorted(values.keys() - set(names)))
        raise CorruptMetadata(subject, f"values of the partition columns {', '.join(names) or '(none)'}", others)
    return {name: values.get(name) for name in names}


def typed(schema: DeltaSchema, values: Stored) -> Mapping[str, object]:
    """Values by logical name, as delta-spark reads their texts (partition_texts).

    They are str, int, bool, Decimal, float, bytes, date, datetime, FarTime or None. A datetime is in UTC if its text
    names a zone. It is naive for timestamp_ntz, and for a timestamp whose text names no zone: each reader applies its
    own zone there, so such a text may mean another instant than the same text with a zone. Raises CorruptMetadata, and
    RefusedTable for a text whose value depends on the day.
    """
    typed_values: dict[str, object] = {}
    for name in schema.partition_columns:
        field = schema.field(name)
        text = values.get(field.physical)
        typed_values[name] = None if text is None else _value(field, text)
    return typed_values


def key_text(schema: DeltaSchema, values: Mapping[str, object]) -> str:
    """The unit's name, such as `day=2026-11-01/region=eu`; "" without partition columns.

    Different typed values have different texts. Null is `null`.
    """
    return "/".join(f"{_escaped(name)}={_key_value(values[name])}" for name in schema.partition_columns)


def folder(schema: DeltaSchema, values: Stored) -> str:
    """The folder of a partition's files, as Hive and delta-spark name it; "" for the table's own folder.

    Tables with column mapping have no partition folders, because folders would show names that the table may drop.
    """
    if schema.mapping is not ColumnMapping.NONE:
        return ""
    parts = ((field.physical, values.get(field.physical)) for field in map(schema.field, schema.partition_columns))
    return "/".join(f"{_hive(name)}={_hive(value) if value else DEFAULT}" for name, value in parts)


def folder_names(column: str) -> tuple[str, ...]:
    """The spellings of a column in a folder's name: Hive's, delta-rs's, and the unescaped name."""
    return tuple(dict.fromkeys((_hive(column), quote(column, safe=""), column)))


def _value(field: DeltaField, text: str) -> object:
    subject = f"partition column {field.name}"
    try:
        return read_text(field.type, text)
    except ValueError as failure:
        raise CorruptMetadata(subject, f"a value of type {field.type}", repr(text)) from failure


def _key_value(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(sep=" ")
        return f"{text}Z" if value.tzinfo else text
    # The text "null" must differ from the value null.
    return "%6Eull" if value == "null" else _escaped(str(value))


def _escaped(text: str) -> str:
    """The text escaped: no separators of columns, and printable, because it is a line of reports."""
    return "".join(f"%{ord(char):02X}" if char in "/=%" or not char.isprintable() else char for char in text)


def _hive(text: str) -> str:
    """Spark's ExternalCatalogUtils.escapePathName."""
    return "".join(f"%{ord(char):02X}" if char in _HIVE_ESCAPES else char for char in text)


_HIVE_ESCAPES: Final = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(32)))
