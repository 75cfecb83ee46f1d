"""Avro schema of a file -> whether its records can be manifest records: known fields have the types of Paimon.

A file has its own schema, of the release that wrote it. Fields may be missing or added. Values are decoded by that
schema, and later code relies on numbers being numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

from nightkeep.encodings.avro_schemas import AvroType, Schema
from nightkeep.formats.paimon.metadata.manifest_schemas import INDEX_MANIFEST, MANIFEST_ENTRY, MANIFEST_LIST


class RecordKind(Enum):
    """Kinds of metadata files that a snapshot names."""

    LIST = "manifest list"
    MANIFEST = "manifest"
    INDEX = "index manifest"


KNOWN: Final[Mapping[RecordKind, Schema]] = {
    RecordKind.LIST: MANIFEST_LIST,
    RecordKind.MANIFEST: MANIFEST_ENTRY,
    RecordKind.INDEX: INDEX_MANIFEST,
}
_FAMILIES: Final[Mapping[str, str]] = {"int": "whole number", "long": "whole number"}
"""Types that Avro reads as one another."""
_WRITTEN_OUT: Final = frozenset(
    {"null", "boolean", "whole number", "float", "double", "bytes", "string", "record", "array", "map", "fixed", "enum"}
)
"""Names of Avro's own types. Other names refer to types defined earlier in the schema."""


def require_types(schema: Schema, kind: RecordKind) -> None:
    """Raise ValueError naming a field whose type differs from Paimon's."""
    for path, expected, found in _faults(schema, KNOWN[kind], ""):
        raise ValueError(f"{kind.value}: expected {path} of type {expected}, found {found}")


def _faults(schema: AvroType, known: AvroType, path: str) -> Iterator[tuple[str, str, str]]:
    ours, theirs = _branches(known), _branches(schema)
    if not theirs.keys() & _WRITTEN_OUT <= ours.keys() | {"null"}:
        yield path or "records", " or ".join(sorted(ours)), " or ".join(sorted(theirs.keys() & _WRITTEN_OUT))
        return
    if "record" in theirs and "record" in ours:
        fields = {field["name"]: field["type"] for field in theirs["record"]["fields"]}
        for field in ours["record"]["fields"]:
            if field["name"] in fields:
                yield from _faults(fields[field["name"]], field["type"], f"{path}{field['name']}")
    if "array" in theirs and "array" in ours:
        yield from _faults(theirs["array"]["items"], ours["array"]["items"], f"{path}[]")


def _branches(kind: AvroType) -> dict[str, Any]:
    """The types that a value may have, by family. Wrappers such as logical types are removed."""
    branches: dict[str, Any] = {}
    for branch in kind if isinstance(kind, list) else [kind]:
        head = branch.get("type") if isinstance(branch, dict) else branch
        if isinstance(head, dict | list):
            branches |= _branches(head)
        else:
            branches[_FAMILIES.get(str(head), str(head))] = branch
    return branches
