"""Raw records -> their values, equal if readers take the records for the same, whatever schemas they were stored under.

A record that is written again may gain fields that its first writer did not know, as nulls.
"""

from __future__ import annotations

from collections.abc import Mapping


def values_of(record: Mapping[str, object]) -> dict[str, object]:
    """The fields that are not null, in the order of their names, and likewise those of records within it."""
    return {name: _values(value) for name, value in sorted(record.items()) if value is not None}


def _values(value: object) -> object:
    if isinstance(value, Mapping):
        return values_of(value)
    return [_values(item) for item in value] if isinstance(value, list) else value
