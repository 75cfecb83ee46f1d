"""A sample of the files that a commit added -> what their bytes contradict of its manifests. Reads data files.

Of any writer: bounds may be wider than the values, statistics may be left out, and a file is read with the schema that
it was written with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.paimon.data.columns import PaimonFileReader
from nightkeep.formats.paimon.data.stored_rows import open_stored
from nightkeep.formats.paimon.deletes.bucket_vectors import decoded, index_path
from nightkeep.formats.paimon.metadata.entries import read_entries, read_index
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, parse_schema
from nightkeep.formats.paimon.metadata.snapshot import VECTORS_INDEX, Bucket, Schemas, bucket_at, read_schemas
from nightkeep.formats.paimon.metadata.snapshot_files import digest, parse_snapshot, snapshot_ids
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.formats.paimon.reading.changelog_faults import changelog_faults, reports_changes
from nightkeep.formats.paimon.reading.commit_faults import COMPACT, moved
from nightkeep.formats.paimon.reading.value_faults import value_faults
from nightkeep.formats.paimon.reading.versions import refuse_unreadable
from nightkeep.model import Address
from nightkeep.protocol.file_sample import SampleBudget, guarded, sampled_faults, size_faults
from nightkeep.protocol.past import FileSample
from nightkeep.storage import Storage


def file_faults(
    address: Address, storage: Storage, commits: Sequence[int], sample: FileSample
) -> Mapping[int, tuple[str, ...]]:
    """As `protocol.past.PastReading.file_faults`. None of a table with a feature that no reader of ours handles."""
    schemas = read_schemas(storage)
    newest = schemas[max(schemas)]
    try:
        refuse_unreadable(address, newest)
    except RefusedTable:
        return {}
    budget = SampleBudget(sample)
    look = partial(_of_commit, address, storage, schemas, budget)
    return sampled_faults(commits, budget, look, lambda version: digest(storage, version) is not None)


def schema_of(storage: Storage, raw: Mapping[str, object]) -> PaimonSchema:
    """The schema that a snapshot states."""
    name = f"schema/schema-{raw['schemaId']}"
    return parse_schema(storage.read(name), subject=name)


def _of_commit(
    address: Address, storage: Storage, schemas: Mapping[int, PaimonSchema], budget: SampleBudget, version: int
) -> Iterator[str]:
    name = f"snapshot/snapshot-{version}"
    raw = parse_snapshot(storage.read(name), subject=name)
    added, _ = moved([*read_entries(storage, str(raw["deltaManifestList"]))])
    newest = schemas[max(schemas)]
    for entry in budget.chosen([*added.values()]):
        yield from guarded(_of_entry(storage, schemas, newest, budget, entry))
    for record in budget.chosen(_new_indexes(storage, raw, version)):
        yield from guarded(_of_index(storage, Schemas(newest, schemas), record))
    stated = schemas.get(int(str(raw["schemaId"])), newest)
    if raw["commitKind"] == COMPACT and version - 1 in snapshot_ids(storage) and reports_changes(stated):
        yield from guarded(changelog_faults(address, storage, budget, version))


def _of_entry(
    storage: Storage, schemas: Mapping[int, PaimonSchema], newest: PaimonSchema, budget: SampleBudget, entry: Record
) -> Iterator[str]:
    """Raises MissingFile for a file that is not there."""
    stated = entry["_FILE"]["_SCHEMA_ID"]
    if stated not in schemas:
        yield f"{entry['_FILE']['_FILE_NAME']} is of schema {stated}, the table has {sorted(schemas)}"
        return
    # Names of folders, and what decides how rows are read, are options of the table as it is.
    written = replace(schemas[stated], options=newest.options)
    bucket = bucket_at(
        (entry["_PARTITION"], entry["_BUCKET"]), [entry], (), schemas=Schemas(written, {stated: written})
    )
    (file,) = bucket.files
    yield from size_faults(storage, bucket.path(file), file.bytes, path=bucket.path(file))
    if file.record.get("_WRITE_COLS") is None:
        reader = PaimonFileReader(storage, bucket, file)
        if file.rows and budget.takes(file.bytes):
            yield from (f"{bucket.path(file)} {fault}" for fault in value_faults(reader, bucket, file))


def _new_indexes(storage: Storage, raw: Mapping[str, object], version: int) -> Sequence[Record]:
    """The index files that the snapshot before does not have; none where it has expired."""
    name = f"snapshot/snapshot-{version - 1}"
    try:
        before = parse_snapshot(storage.read(name), subject=name).get("indexManifest") if version > 1 else None
        if raw.get("indexManifest") == before:
            return ()
        known = read_index(storage, before)
    except MissingFile:
        return ()
    own = read_index(storage, raw.get("indexManifest"))
    names = {record["_FILE_NAME"] for record in known.records} if known else set()
    return [record for record in own.records if record["_FILE_NAME"] not in names] if own else ()


def _of_index(storage: Storage, schemas: Schemas, record: Record) -> Iterator[str]:
    """What an index file contradicts of its entry, and vectors of their data files. A vector of a file that is not
    there hides nothing: Paimon up to 1.4 left such."""
    if record.get("_EXTERNAL_PATH") or record.get("_GLOBAL_INDEX"):
        return
    is_vector = record["_INDEX_TYPE"] == VECTORS_INDEX
    bucket = bucket_at((record["_PARTITION"], record["_BUCKET"]), [], (record,) if is_vector else (), schemas=schemas)
    path = index_path(bucket, str(record["_FILE_NAME"]))
    yield from size_faults(storage, path, record["_FILE_SIZE"], path=path)
    ranges = vector_ranges(record) if is_vector else ()
    if is_vector and record["_ROW_COUNT"] != len(ranges):
        yield f"{path} has {len(ranges)} vectors, its entry states {record['_ROW_COUNT']}"
    for where in ranges:
        ((name, positions),) = decoded(storage, bucket, str(record["_FILE_NAME"]), [where]).items()
        rows = _rows_of(storage, bucket, name)
        if rows is not None and positions and positions.max() >= rows:
            yield f"{path} deletes position {positions.max()} of {name}, which has {rows} rows"


def _rows_of(storage: Storage, bucket: Bucket, name: str) -> int | None:
    """None for a data file that is not there, or that cannot be read."""
    path = f"{bucket.folder}/{name}"
    try:
        return int(open_stored(storage.open(path), name, subject=path).starts[-1])
    except (MissingFile, RefusedTable, CorruptMetadata):
        return None
