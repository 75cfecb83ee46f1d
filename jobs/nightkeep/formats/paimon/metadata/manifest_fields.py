"""Avro schema of a file -> the fields that its records lack and that a later release gave them: they come as null.

Paimon's readers match fields by name and take a field that a file lacks for null. So records of all releases have the
fields of 2.0.0, and one meaning. What null means is the reader's of the field, such as `_VALUE_STATS_COLS`: statistics
of all columns. A field that Paimon had from the start is not filled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from nightkeep.encodings.avro_container import Record
from nightkeep.encodings.avro_schemas import AvroType, Schema
from nightkeep.formats.paimon.metadata.manifest_types import KNOWN, RecordKind


@dataclass(frozen=True, slots=True)
class Missing:
    """The nullable fields that records of a schema lack, and those of records `within` them, by field."""

    names: tuple[str, ...]
    within: Mapping[str, Missing]

    def fill(self, records: Iterable[Record]) -> None:
        """Add the fields to the records, as nulls."""
        for record in records:
            record.update(dict.fromkeys(self.names))
            for name, missing in self.within.items():
                missing.fill(_records(record[name]))


def missing_fields(schema: Schema, kind: RecordKind) -> Missing | None:
    """What records of a kind lack that are stored under `schema`; None if they have every field."""
    return _missing(KNOWN[kind], schema)


def _missing(known: AvroType, stored: AvroType) -> Missing | None:
    ours, theirs = (next(_record_types(kind), None) for kind in (known, stored))
    if ours is None or theirs is None:
        return None
    held = {field["name"]: field["type"] for field in theirs["fields"]}
    names = tuple(f["name"] for f in ours["fields"] if f["name"] not in held and _is_nullable(f["type"]))
    inner = ((f["name"], _missing(f["type"], held[f["name"]])) for f in ours["fields"] if f["name"] in held)
    within = {name: missing for name, missing in inner if missing is not None}
    return Missing(names, within) if names or within else None


def _record_types(kind: AvroType) -> Iterator[Schema]:
    """The record that values of a type are, or that items of theirs are."""
    for branch in kind if isinstance(kind, list) else [kind]:
        if isinstance(branch, dict) and branch["type"] == "record":
            yield branch
        elif isinstance(branch, dict) and branch["type"] == "array":
            yield from _record_types(branch["items"])


def _is_nullable(kind: AvroType) -> bool:
    return isinstance(kind, list) and "null" in kind


def _records(value: object) -> Iterable[Record]:
    values = value if isinstance(value, list) else [value]
    return (each for each in values if isinstance(each, dict))
