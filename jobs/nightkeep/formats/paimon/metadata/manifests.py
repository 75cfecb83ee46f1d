"""Raw records -> manifest, manifest list and index manifest files. Fields that newer writers added survive.

A file is written under the union of our own schema and the schemas its records were read with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nightkeep.encodings.avro_container import Record
from nightkeep.encodings.avro_schemas import AvroType, Schema
from nightkeep.formats.paimon.metadata.avro import write_container
from nightkeep.formats.paimon.metadata.binary_row import decode_row, encode_row, sort_key
from nightkeep.formats.paimon.metadata.entries import ADD, decoding
from nightkeep.formats.paimon.metadata.manifest_schemas import INDEX_MANIFEST, MANIFEST_ENTRY, MANIFEST_LIST
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.snapshot import PaimonSnapshot
from nightkeep.storage import Storage


def union(first: Schema, *others: Schema) -> Schema:
    """One record schema with every field of all schemas. On a clash, `first` wins.

    A field that not all have becomes nullable, because records of the others lack it.
    """
    fields = {field["name"]: dict(field) for field in first["fields"]}
    for other in others:
        for field in other["fields"]:
            name = field["name"]
            if name in fields:
                fields[name]["type"] = _united(fields[name]["type"], field["type"])
            else:
                fields[name] = {"name": name, "type": _nullable(field["type"]), "default": None}
    return {**first, "fields": list(fields.values())}


def _united(left: AvroType, right: AvroType) -> AvroType:
    if isinstance(left, list):
        return [_united(branch, right) if isinstance(branch, dict) else branch for branch in left]
    ours, theirs = _record_of(left), _record_of(right)
    if ours and theirs:
        return union(ours, theirs)
    held, offered = _array_of(left), _array_of(right)
    if held and offered:
        return {**held, "items": _united(held["items"], offered["items"])}
    return left


def _nullable(kind: AvroType) -> list[AvroType]:
    branches = kind if isinstance(kind, list) else [kind]
    return ["null", *(branch for branch in branches if branch != "null")]


def _record_of(kind: AvroType) -> Schema | None:
    return _branch(kind, "record")


def _array_of(kind: AvroType) -> Schema | None:
    return _branch(kind, "array")


def _branch(kind: AvroType, type_name: str) -> Schema | None:
    branches = kind if isinstance(kind, list) else [kind]
    return next((b for b in branches if isinstance(b, dict) and b.get("type") == type_name), None)


@dataclass(frozen=True, slots=True)
class WrittenPaimonList:
    """A manifest list or index manifest: name within manifest/, and size."""

    name: str
    bytes: int


class ManifestWriter:
    """Writes the metadata files of one candidate. `written` collects their paths."""

    def __init__(self, storage: Storage, parent: PaimonSnapshot, naming: PaimonNaming) -> None:
        self._storage, self._parent, self._naming = storage, parent, naming
        self._codec = parent.schema.options.get("manifest.compression", "zstd")
        self.written: list[str] = []

    def manifest(self, entries: Sequence[Record]) -> Record:
        """Write a manifest of `entries`. Returns its record for a manifest list."""
        name = self._naming.manifest()
        schema = union(*self._parent.entry_schemas, MANIFEST_ENTRY)
        size = self._put(name, [_filled(entry, schema) for entry in entries], schema)
        added = sum(entry["_KIND"] == ADD for entry in entries)
        buckets = [entry["_BUCKET"] for entry in entries]
        levels = [entry["_FILE"]["_LEVEL"] for entry in entries]
        return {
            "_VERSION": 2,
            "_FILE_NAME": name,
            "_FILE_SIZE": size,
            "_NUM_ADDED_FILES": added,
            "_NUM_DELETED_FILES": len(entries) - added,
            "_PARTITION_STATS": self._partition_stats(entries),
            "_SCHEMA_ID": self._parent.schema.id,
            "_MIN_BUCKET": min(buckets),
            "_MAX_BUCKET": max(buckets),
            "_MIN_LEVEL": min(levels),
            "_MAX_LEVEL": max(levels),
            "_MIN_ROW_ID": None,
            "_MAX_ROW_ID": None,
        }

    def manifest_list(self, metas: Sequence[Record]) -> WrittenPaimonList:
        name = self._naming.manifest_list()
        schema = union(*self._parent.list_schemas, MANIFEST_LIST)
        return WrittenPaimonList(name, self._put(name, [_filled(meta, schema) for meta in metas], schema))

    def index_manifest(self, records: Sequence[Record]) -> WrittenPaimonList:
        name = self._naming.index_manifest()
        schema = union(*self._parent.index_schemas, INDEX_MANIFEST)
        return WrittenPaimonList(name, self._put(name, [_filled(r, schema) for r in records], schema))

    def _put(self, name: str, records: Sequence[Record], schema: Schema) -> int:
        path = f"manifest/{name}"
        with decoding(path, "records that the schemas of the table's own manifests can hold"):
            # Files without records would be equal, and look as if one had been copied over the other.
            data = write_container(records, schema, self._codec, name=name)
        self._storage.put(path, data)
        self.written.append(path)
        return len(data)

    def _partition_stats(self, entries: Sequence[Record]) -> Record:
        """Minimum, maximum and null count of every partition column over `entries`. Nulls are not compared."""
        schema = self._parent.schema
        types = [field.type for field in schema.select(schema.partition_keys)]
        rows = [decode_row(entry["_PARTITION"], types) for entry in entries]
        columns = [[row[i] for row in rows] for i in range(len(types))]
        low, high = [], []
        for kind, values in zip(types, columns, strict=True):
            ordered = sorted((v for v in values if v is not None), key=lambda v: sort_key((v,), (kind,)))
            low.append(ordered[0] if ordered else None)
            high.append(ordered[-1] if ordered else None)
        nulls = [sum(value is None for value in values) for values in columns]
        return {"_MIN_VALUES": encode_row(low, types), "_MAX_VALUES": encode_row(high, types), "_NULL_COUNTS": nulls}


def _filled(record: Record, schema: Schema) -> Record:
    """The record with every field of the schema. Missing fields are null, as for a reader."""
    return {field["name"]: _value(record.get(field["name"]), field["type"]) for field in schema["fields"]}


def _value(value: object, kind: AvroType) -> object:
    if isinstance(value, dict) and (nested := _record_of(kind)):
        return _filled(value, nested)
    if isinstance(value, list) and (items := _array_of(kind)):
        return [_value(item, items["items"]) for item in value]
    return value
