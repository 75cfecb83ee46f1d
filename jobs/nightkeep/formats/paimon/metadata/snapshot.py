"""snapshot-<n> -> manifest lists -> manifests -> buckets: one version of a table. Reads metadata only.

Raw Avro records are kept beside the decoded values, so that unknown fields survive a commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nightkeep.encodings.avro_container import Record
from nightkeep.encodings.avro_schemas import Schema
from nightkeep.encodings.uncollected import uncollected
from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.formats.paimon.metadata.avro import Container
from nightkeep.formats.paimon.metadata.binary_row import decode_row, sort_key
from nightkeep.formats.paimon.metadata.entries import ADD, decoding, merge_entries, read_index, read_list, read_manifest
from nightkeep.formats.paimon.metadata.locations import inside
from nightkeep.formats.paimon.metadata.partition_paths import DEFAULT_PARTITION_NAME, partition_name, partition_path
from nightkeep.formats.paimon.metadata.schema import (
    PaimonSchema,
    has_fixed_buckets,
    keeps_order,
    option_bool,
    parse_schema,
)
from nightkeep.formats.paimon.metadata.snapshot_files import numbered, parse_snapshot
from nightkeep.formats.paimon.metadata.task_memory import DEFAULT_BYTES
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.formats.paimon.metadata.values import Value, python_value
from nightkeep.formats.paimon.metadata.vector_ranges import VectorRange, require_one_each, vector_ranges
from nightkeep.model import Address, FileSizes, UnitKey, VersionIdentity, digest_of
from nightkeep.storage import Storage

MAX_LEVEL = 1 << 10
"""Limit on levels against hostile metadata: far above any real table, and still cheap."""
VECTORS_INDEX = "DELETION_VECTORS"

Place = tuple[bytes, int]
"""A bucket's place: its partition as BinaryRow bytes, and its bucket number."""


@dataclass(frozen=True, slots=True)
class PaimonDataFile:
    """A data file of a bucket. Keys are decoded values of the trimmed primary key, in key order.

    `record` is the file's raw Avro record; `schema_id` is the schema it was written with.
    """

    name: str
    bytes: int
    rows: int
    level: int
    min_key: tuple[Value, ...]
    max_key: tuple[Value, ...]
    min_sequence: int
    max_sequence: int
    schema_id: int
    delete_rows: int | None
    created_ms: int
    record: Record = field(repr=False)

    @property
    def deletes_unknown_or_some(self) -> bool:
        return self.delete_rows is None or self.delete_rows > 0


@dataclass(frozen=True, slots=True)
class Schemas:
    """The schema that a version is read with (`current`, the latest on disk), and all schemas of its files.

    `converts`: values of a type that was changed are converted as Java's readers do. Otherwise their files are refused,
    as whatever rewrites or proves rows must not rest on a conversion.
    """

    current: PaimonSchema
    by_id: Mapping[int, PaimonSchema]
    converts: bool = False


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket at one version. Picklable and complete, so that tasks need no other metadata.

    `folder` is relative to the table's root. `files` are in the order of reading where rows have one (keeps_order).
    `index_records` are the raw entries of its deletion-vector files: at most one with keys or fixed buckets. `vectors`
    are the ranges in all of them. `changelog` are the changelog files that the version's own commit wrote, read for
    staged versions only. `task_bytes`: what its task may hold in memory.
    """

    key: UnitKey
    partition: Mapping[str, object]
    partition_bytes: bytes
    folder: str
    total_buckets: int
    files: tuple[PaimonDataFile, ...]
    vectors: tuple[VectorRange, ...]
    index_records: tuple[Record, ...]
    schemas: Schemas
    changelog: tuple[PaimonDataFile, ...] = ()
    task_bytes: int = DEFAULT_BYTES

    @property
    def index_files(self) -> tuple[str, ...]:
        return tuple(str(record["_FILE_NAME"]) for record in self.index_records)

    def path(self, file: PaimonDataFile) -> str:
        return f"{self.folder}/{file.name}"


@dataclass(frozen=True)
class PaimonSnapshot:
    """One version. `raw` is its JSON, `index_records` the whole index manifest. All records are raw. The `*_schemas`
    are the distinct Avro schemas of those records, the newest file's first. `identity` is made of the snapshot's JSON,
    its lists and all of their manifests.
    """

    table: Address
    identity: VersionIdentity
    raw: Mapping[str, object]
    schemas: Schemas
    units: tuple[Bucket, ...]
    index_records: tuple[Record, ...]
    index_schemas: tuple[Schema, ...]
    entry_schemas: tuple[Schema, ...]
    list_schemas: tuple[Schema, ...]
    base_manifests: tuple[Record, ...]
    delta_manifests: tuple[Record, ...]
    delta_entries: tuple[Record, ...]
    changelog_entries: tuple[Record, ...] = ()
    """Entries of the changelog files that this version's commit wrote. Read for staged versions only."""

    @property
    def version(self) -> int:
        return int(str(self.raw["id"]))

    @property
    def schema(self) -> PaimonSchema:
        return self.schemas.current

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self.schema.partition_keys

    @cached_property
    def by_key(self) -> Mapping[UnitKey, Bucket]:
        return {unit.key: unit for unit in self.units}

    @property
    def changes_rows(self) -> bool:
        return self.raw["commitKind"] != "COMPACT"

    @property
    def sizes(self) -> FileSizes:
        files = [file for unit in self.units for file in unit.files]
        vectors = sum(len(unit.vectors) for unit in self.units)
        return FileSizes(tuple(f.bytes for f in files), tuple(f.level for f in files), vectors)


def read_schemas(storage: Storage) -> Mapping[int, PaimonSchema]:
    """Every schema on disk by id. There is at least one."""
    names = [stored.name for stored in storage.list("schema") if numbered(stored.name, "schema-") is not None]
    schemas = [parse_schema(storage.read(name), subject=name) for name in names]
    if not schemas:
        raise MissingFile(f"{storage.root}/schema", "schema-<n> files of a Paimon table", "none")
    return {schema.id: schema for schema in schemas}


@uncollected()
def load(table: Address, storage: Storage, name: str, *, schemas: Schemas) -> PaimonSnapshot:
    """The version whose snapshot JSON is stored as `name`, staged or published.

    Its rows are read with `schemas.current`, whatever schema it was committed under.
    """
    subject = f"{table.name}/{name}"
    data = storage.read(name)
    raw = parse_snapshot(data, subject=subject)
    base, delta = (read_list(storage, str(raw[k])) for k in ("baseManifestList", "deltaManifestList"))
    earlier = [read_manifest(storage, meta) for meta in base.records]
    latest = [read_manifest(storage, meta) for meta in delta.records]
    changed = [record for container in latest for record in container.records]
    index = read_index(storage, raw.get("indexManifest"))
    with decoding(subject, "entries of data files"):
        live = merge_entries(record for container in (*earlier, *latest) for record in container.records)
        units = tuple(_buckets(live, changed, index.records if index else (), schemas=schemas))
    read = [base, delta, *earlier, *latest, *([index] if index else [])]
    content = digest_of(*(container.digest.encode() for container in read))
    return PaimonSnapshot(
        table=table,
        identity=VersionIdentity(int(str(raw["id"])), digest_of(data), content),
        raw=raw,
        schemas=schemas,
        units=units,
        index_records=tuple(index.records) if index else (),
        index_schemas=_distinct([index] if index else []),
        entry_schemas=_distinct(reversed([*earlier, *latest])),
        list_schemas=_distinct([delta, base]),
        base_manifests=tuple(base.records),
        delta_manifests=tuple(delta.records),
        delta_entries=tuple(changed),
    )


def _buckets(
    live: Sequence[Record], changed: Sequence[Record], index: Sequence[Record], *, schemas: Schemas
) -> Iterator[Bucket]:
    """Buckets with a data file or a vector file, and buckets whose last file this version removed."""
    entries: dict[Place, list[Record]] = {(record["_PARTITION"], record["_BUCKET"]): [] for record in changed}
    for record in live:
        entries.setdefault((record["_PARTITION"], record["_BUCKET"]), []).append(record)
    unique = bool(schemas.current.primary_keys) or has_fixed_buckets(schemas.current)
    vectors = _vector_files(index, unique=unique)
    for place in sorted(entries.keys() | vectors.keys()):
        yield bucket_at(place, entries.get(place, []), vectors.get(place, ()), schemas=schemas)


def _vector_files(index: Sequence[Record], *, unique: bool) -> Mapping[Place, tuple[Record, ...]]:
    """The vector files of each bucket. Raises for two in a bucket that has only one, and for two vectors of one data
    file: readers differ on which one applies."""
    records: dict[Place, tuple[Record, ...]] = {}
    for record in index:
        place = (record["_PARTITION"], record["_BUCKET"])
        if record["_INDEX_TYPE"] != VECTORS_INDEX:
            continue
        if record["_KIND"] != ADD or (unique and place in records):
            raise CorruptMetadata(f"index entry {record['_FILE_NAME']}", "one vector file per bucket, added", "another")
        inside(record)
        records[place] = (*records.get(place, ()), record)
    for files in records.values() if not unique else ():
        require_one_each(files)
    return records


def bucket_at(place: Place, records: Sequence[Record], index: tuple[Record, ...], *, schemas: Schemas) -> Bucket:
    schema = schemas.current
    partition_bytes, bucket = place
    columns = schema.select(schema.partition_keys)
    types = [column.type for column in columns]
    values = decode_row(partition_bytes, types)
    legacy = option_bool(schema, "partition.legacy-name", default=True)
    default = schema.options.get("partition.default-name", DEFAULT_PARTITION_NAME)
    path = partition_path(schema.partition_keys, values, types, legacy=legacy, default_name=default).rstrip("/")
    name = partition_name(
        schema.partition_keys, values, types, stored=partition_bytes, legacy=legacy, default_name=default
    )
    prefix = schema.options.get("data-file.path-directory", "")
    key_types = [column.type for column in schema.select(schema.trimmed_keys)]
    files = [data_file(record["_FILE"], key_types) for record in records]
    return Bucket(
        key=UnitKey(name, bucket),
        partition={c.name: python_value(v, c.type) for c, v in zip(columns, values, strict=True)},
        partition_bytes=partition_bytes,
        folder="/".join(filter(None, (prefix, path, f"bucket-{bucket}"))),
        total_buckets=int(str(records[0]["_TOTAL_BUCKETS"])) if records else -1,
        files=_in_order(files, schema),
        vectors=tuple(where for record in index for where in vector_ranges(record)),
        index_records=index,
        schemas=schemas,
    )


def _in_order(files: Iterable[PaimonDataFile], schema: PaimonSchema) -> tuple[PaimonDataFile, ...]:
    """By level and key; where order is kept, as readers read them, which sort stably (AppendOnlySplitGenerator)."""
    if keeps_order(schema):
        return tuple(sorted(files, key=lambda file: file.min_sequence))
    types = [field.type for field in schema.select(schema.trimmed_keys)]
    return tuple(sorted(files, key=lambda file: (file.level, sort_key(file.min_key, types), file.name)))


def data_file(record: Record, key_types: Sequence[PaimonType]) -> PaimonDataFile:
    """Decode a raw _FILE record (C/io/DataFileMeta.java)."""
    deletes = record.get("_DELETE_ROW_COUNT")
    inside(record)
    if not (record["_ROW_COUNT"] >= 0 and record["_FILE_SIZE"] >= 0 and 0 <= record["_LEVEL"] <= MAX_LEVEL):
        shown = f"{record['_ROW_COUNT']} rows, {record['_FILE_SIZE']} bytes, level {record['_LEVEL']}"
        raise CorruptMetadata(f"entry of {record['_FILE_NAME']}", "rows, bytes and a level that can be", shown)
    return PaimonDataFile(
        name=str(record["_FILE_NAME"]),
        bytes=int(record["_FILE_SIZE"]),
        rows=int(record["_ROW_COUNT"]),
        level=int(record["_LEVEL"]),
        min_key=decode_row(record["_MIN_KEY"], key_types),
        max_key=decode_row(record["_MAX_KEY"], key_types),
        min_sequence=int(record["_MIN_SEQUENCE_NUMBER"]),
        max_sequence=int(record["_MAX_SEQUENCE_NUMBER"]),
        schema_id=int(record["_SCHEMA_ID"]),
        delete_rows=deletes,
        created_ms=int(record.get("_CREATION_TIME") or 0),
        record=record,
    )


def _distinct(containers: Iterable[Container]) -> tuple[Schema, ...]:
    return tuple({json.dumps(c.schema): c.schema for c in containers}.values())
