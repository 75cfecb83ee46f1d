"""Manifest files <-> entries. Reading fills in inherited values; writing leaves them out, to be inherited.

Iceberg table spec, "Manifests", "Sequence Number Inheritance", "First Row ID Inheritance"; ManifestReader.java,
ManifestWriter.java, InheritableMetadataFactory.java.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata, kind_of
from nightkeep.formats.iceberg.metadata.avro import AvroLayout, codec_of, read_records, write_records
from nightkeep.formats.iceberg.metadata.content_files import (
    Entry,
    FileContent,
    Manifest,
    ManifestContent,
    NewFile,
    Status,
)
from nightkeep.formats.iceberg.metadata.field_summaries import field_summaries
from nightkeep.formats.iceberg.metadata.file_records import FileDecoder, FileEncoder
from nightkeep.formats.iceberg.metadata.locations import name_in, require_in
from nightkeep.formats.iceberg.metadata.manifest_schema import entry_names, entry_schema, partition_types
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.storage import Storage


def read_manifest(storage: Storage, manifest: Manifest, schema: IcebergSchema) -> list[Entry]:
    """Every entry of a manifest in order, DELETED ones too, with values inherited from `manifest`.

    Fields are matched by id: manifests of any writer and of format versions 1 to 3 can be read. `raw` of a data file
    has the assigned first_row_id. Raises MissingFile, RefusedTable for files of another scheme, and CorruptMetadata
    naming the manifest for bytes or values that are invalid and for entry counts other than the list's.
    """
    names = entry_names(schema, manifest.spec_id)
    decoder = FileDecoder.of(manifest, schema)
    entries, next_row_id = [], manifest.first_row_id
    for record in read_records(storage.read(manifest.name), names, subject=manifest.path):
        status, file = _status(manifest, record), record.get("data_file")
        if not isinstance(file, dict):
            raise CorruptMetadata(manifest.path, "a data_file in every entry", kind_of(file))
        if next_row_id is None:
            # Without a first row id in the list, ids in the manifest do not count (ManifestReader.idAssigner): the
            # table was upgraded.
            file["first_row_id"] = None
        elif file.get("first_row_id") is None and status is not Status.DELETED:
            file["first_row_id"] = next_row_id
            next_row_id += decoder.rows(file)
        entries.append(decoder.entry(status, record))
        require_in(storage, entries[-1].file.path)
    _require_counts(manifest, entries)
    return entries


def write_manifest(
    storage: Storage,
    location: str,
    entries: Sequence[Entry | NewFile],
    *,
    schema: IcebergSchema,
    spec_id: int,
    content: ManifestContent,
    snapshot_id: int,
    sequence_number: int,
) -> Manifest:
    """Write a manifest of the commit with this snapshot id and sequence number. Returns its entry for the list.

    New files are ADDED. They inherit the commit's file sequence number, and its data sequence number unless they have
    one. An entry that was read is written as EXISTING with its own snapshot id and numbers. If its status is DELETED,
    it is written as deleted by this commit. Files keep every field of `raw`. The returned manifest has no
    first_row_id: the list assigns it.

    Raises ValueError for no entries, a file of another spec or content, an entry deleted by an earlier snapshot
    (callers drop those) and values that Avro cannot store; OSError if the file exists.
    """
    if not entries:
        raise ValueError(f"{location}: expected entries, found none")
    for entry in entries:
        _require_fit(location, entry, spec_id, content)
    encoder = FileEncoder.of(schema, spec_id)
    later = schema.format_version > 1
    records = (_of_version(_record(entry, encoder, snapshot_id), has_numbers=later) for entry in entries)
    data = write_records(records, _layout(schema, spec_id, content))
    name = name_in(storage, location)
    storage.put(name, data)
    partitions = [_partition(entry) for entry in entries]
    return Manifest(
        path=location,
        name=name,
        bytes=len(data),
        spec_id=spec_id,
        content=content,
        sequence_number=sequence_number,
        min_sequence_number=min((_live_sequence(e, sequence_number) for e in entries), default=sequence_number),
        snapshot_id=snapshot_id,
        **_counts(entries),
        key_metadata=None,
        partitions=field_summaries(partition_types(schema, spec_id), partitions),
    )


_COUNTED: Final = {Status.ADDED: "added", Status.EXISTING: "existing", Status.DELETED: "deleted"}
_METADATA_CONTENT: Final = {ManifestContent.DATA: "data", ManifestContent.DELETES: "deletes"}


def _require_counts(manifest: Manifest, entries: Sequence[Entry]) -> None:
    """Raises CorruptMetadata for other counts than the list's: a file truncated between two blocks is valid Avro."""
    statuses = Counter(entry.status for entry in entries)
    found = {name: statuses[status] for status, name in _COUNTED.items()}
    expected = {name: getattr(manifest, f"{name}_files") for name in found}
    if found != expected:
        texts = [", ".join(f"{count} {name}" for name, count in counts.items()) for counts in (expected, found)]
        raise CorruptMetadata(manifest.path, f"{texts[0]} files as its manifest list counts", texts[1])


def _status(manifest: Manifest, record: Record) -> Status:
    value = record.get("status")
    if type(value) is not int or value not in (0, 1, 2):
        raise CorruptMetadata(manifest.path, "a status of 0, 1 or 2", kind_of(value))
    return Status(value)


def _require_fit(location: str, entry: Entry | NewFile, spec_id: int, content: ManifestContent) -> None:
    file = entry if isinstance(entry, NewFile) else entry.file
    if file.spec_id != spec_id or (file.content is FileContent.DATA) != (content is ManifestContent.DATA):
        found = f"{file.path} of spec {file.spec_id}, content {file.content.name}"
        raise ValueError(f"{location}: expected files of spec {spec_id} for {content.name}, found {found}")


def _record(entry: Entry | NewFile, encoder: FileEncoder, snapshot_id: int) -> Record:
    if isinstance(entry, NewFile):
        return {
            "status": Status.ADDED.value,
            "snapshot_id": snapshot_id,
            "sequence_number": entry.sequence_number,
            "file_sequence_number": None,
            "data_file": encoder.record(entry.raw),
        }
    deleted = entry.status is Status.DELETED
    if deleted and entry.snapshot_id != snapshot_id:
        raise ValueError(
            f"{entry.file.path}: expected no deletion but that of {snapshot_id}, found {entry.snapshot_id}"
        )
    return {
        "status": (Status.DELETED if deleted else Status.EXISTING).value,
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.file.sequence_number,
        # A lost file sequence number stays null, as in Java.
        "file_sequence_number": entry.file.file_sequence_number if entry.file.is_dated else None,
        "data_file": encoder.record(entry.file.raw),
    }


def _of_version(record: Record, *, has_numbers: bool) -> Record:
    """The record without the sequence numbers that format version 1 has not."""
    if has_numbers:
        return record
    return {name: value for name, value in record.items() if name not in ("sequence_number", "file_sequence_number")}


def _partition(entry: Entry | NewFile) -> tuple[object, ...]:
    return entry.file.partition if isinstance(entry, Entry) else entry.partition


def _live_sequence(entry: Entry | NewFile, commit: int) -> int:
    """The data sequence number of a live entry. For a deleted one the commit's: the minimum then ignores it."""
    if isinstance(entry, NewFile):
        return commit if entry.sequence_number is None else entry.sequence_number
    return commit if entry.status is Status.DELETED else entry.file.sequence_number


def _counts(entries: Sequence[Entry | NewFile]) -> dict[str, int]:
    counts = {f"{name}_{what}": 0 for name in _COUNTED.values() for what in ("files", "rows")}
    for entry in entries:
        if isinstance(entry, NewFile):
            name, rows = "added", entry.rows
        else:
            name, rows = "deleted" if entry.status is Status.DELETED else "existing", entry.file.rows
        counts[f"{name}_files"] += 1
        counts[f"{name}_rows"] += rows
    return counts


def _layout(schema: IcebergSchema, spec_id: int, content: ManifestContent) -> AvroLayout:
    fields = [field.model_dump(mode="json", by_alias=True) for field in schema.spec(spec_id).fields]
    metadata = {
        "schema": schema.current.model_dump_json(),
        "schema-id": str(schema.current.schema_id),
        "partition-spec": json.dumps(fields),
        "partition-spec-id": str(spec_id),
        "format-version": str(schema.format_version),
        **({"content": _METADATA_CONTENT[content]} if schema.format_version > 1 else {}),
    }
    avro, names = entry_schema(schema, spec_id), entry_names(schema, spec_id)
    return AvroLayout(avro, names, codec_of(schema.properties), metadata)
