"""Manifest list files <-> manifests, in the order of the list (Iceberg table spec, "Manifest Lists")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from nightkeep.encodings.avro_codecs import CODECS
from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata, kind_of, reason_of
from nightkeep.formats.iceberg.metadata.avro import AvroLayout, Names, read_records, write_records
from nightkeep.formats.iceberg.metadata.content_files import Manifest, ManifestContent
from nightkeep.formats.iceberg.metadata.locations import name_in, require_in, storage_name
from nightkeep.formats.iceberg.metadata.manifest_schema import list_names, list_schema
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, integer
from nightkeep.storage import Storage


def read_manifest_list(storage: Storage, location: str) -> tuple[Manifest, ...]:
    """The manifests of a snapshot.

    Lists of format version 1 have no content and no sequence numbers: they default to data and 0. Counts of files and
    rows that the list lacks are taken from the manifests. Raises MissingFile, CorruptMetadata naming the list if it
    cannot be parsed, RefusedTable for manifests of another scheme.
    """
    return parse_manifest_list(storage, location, storage.read(name_in(storage, location)))


def parse_manifest_list(storage: Storage, location: str, data: bytes) -> tuple[Manifest, ...]:
    """The manifests of the list at `location`, whose bytes are `data`. Raises as `read_manifest_list`."""
    records = read_records(data, list_names(), subject=location)
    manifests = tuple(_manifest(record, location) for record in records)
    for manifest in manifests:
        require_in(storage, manifest.path)
    if len({manifest.path for manifest in manifests}) != len(manifests):
        raise CorruptMetadata(location, "every manifest once", "one of them twice")
    return tuple(_counted(storage, each) if each.added_files == _UNCOUNTED else each for each in manifests)


def embedded_manifests(storage: Storage, snapshot: Raw, *, subject: str) -> tuple[Manifest, ...]:
    """The manifests that the JSON of a snapshot of format version 1 names, without a list: all of spec 0, as in Java
    (BaseSnapshot.cacheManifests). Raises as `read_manifest_list`."""
    paths = snapshot.get("manifests")
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise CorruptMetadata(f"{subject}: manifests of a snapshot", "a list of locations", kind_of(paths))
    number = integer(snapshot, "snapshot-id", subject=subject)
    record = {"manifest_length": 0, "partition_spec_id": 0, "added_snapshot_id": number}
    named = [_manifest({"manifest_path": path, **record}, subject) for path in paths]
    for manifest in named:
        require_in(storage, manifest.path)
    return tuple(_counted(storage, manifest) for manifest in named)


@dataclass(frozen=True, slots=True)
class WrittenManifestList:
    """A written list. `manifests` have the row ids that the list assigned; `next_row_id` is the first unused id."""

    manifests: tuple[Manifest, ...]
    next_row_id: int | None


def write_manifest_list(
    storage: Storage,
    location: str,
    manifests: Sequence[Manifest],
    *,
    format_version: int,
    snapshot_id: int,
    parent_id: int | None,
    sequence_number: int,
    next_row_id: int | None,
) -> WrittenManifestList:
    """Write the list of a snapshot's manifests. `next_row_id` is the table's current one, None before version 3.

    In version 3 a data manifest without row ids gets the next ones, as many as it has added and existing rows; others
    keep theirs (spec, "First Row ID Assignment"). Raises ValueError for a version and row ids that do not match,
    OSError if the file exists.
    """
    if (format_version >= _LINEAGE) != (next_row_id is not None):
        raise ValueError(f"{location}: expected row ids from version {_LINEAGE} on, found {next_row_id}")
    metadata = {
        "snapshot-id": str(snapshot_id),
        # Java writes "null" for a snapshot without a parent.
        "parent-snapshot-id": "null" if parent_id is None else str(parent_id),
        **({"sequence-number": str(sequence_number)} if format_version > 1 else {}),
        **({} if next_row_id is None else {"first-row-id": str(next_row_id)}),
        "format-version": str(format_version),
    }
    assigned = []
    for manifest in manifests:
        if next_row_id is not None and manifest.content is ManifestContent.DATA and manifest.first_row_id is None:
            manifest = replace(manifest, first_row_id=next_row_id)
            next_row_id += manifest.added_rows + manifest.existing_rows
        assigned.append(manifest)
    records = [_record(manifest, format_version) for manifest in assigned]
    layout = AvroLayout(list_schema(format_version), list_names(), CODECS["deflate"], metadata)
    storage.put(name_in(storage, location), write_records(records, layout))
    return WrittenManifestList(tuple(assigned), next_row_id)


_LINEAGE: Final = 3
_UNCOUNTED: Final = -1
_COUNTS: Final = {
    "added_files": "added_files_count",
    "existing_files": "existing_files_count",
    "deleted_files": "deleted_files_count",
    "added_rows": "added_rows_count",
    "existing_rows": "existing_rows_count",
    "deleted_rows": "deleted_rows_count",
}
_STATUSES: Final = ("existing", "added", "deleted")
_SUMMARY: Final = ("contains_null", "contains_nan", "lower_bound", "upper_bound")


def _manifest(record: Record, location: str) -> Manifest:
    def number(name: str, default: int | None = None) -> int:
        value = record.get(name)
        value = default if value is None else value
        if type(value) is not int or value < min(default or 0, 0):
            raise CorruptMetadata(location, f"a {name} of 0 or more in every line", kind_of(value))
        return value

    path = record.get("manifest_path")
    if not isinstance(path, str) or not path:
        raise CorruptMetadata(location, "a manifest_path in every line", kind_of(path))
    content, first_row_id = number("content", 0), record.get("first_row_id")
    if content not in (0, 1):
        raise CorruptMetadata(location, "content 0 or 1 in every line", str(content))
    counted = all(record.get(name) is not None for name in _COUNTS.values())
    return Manifest(
        path=path,
        name=storage_name(path),
        bytes=number("manifest_length"),
        spec_id=number("partition_spec_id"),
        content=ManifestContent(content),
        sequence_number=number("sequence_number", 0),
        min_sequence_number=number("min_sequence_number", 0),
        snapshot_id=number("added_snapshot_id"),
        **{name: number(stored) if counted else _UNCOUNTED for name, stored in _COUNTS.items()},
        partitions=_summaries(record.get("partitions"), location),
        key_metadata=record.get("key_metadata"),
        first_row_id=None if first_row_id is None else number("first_row_id"),
    )


def _summaries(summaries: object, location: str) -> tuple[Record, ...] | None:
    if summaries is None:
        return None
    if not isinstance(summaries, list) or not all(isinstance(each, dict) for each in summaries):
        raise CorruptMetadata(location, "partitions as a list of summaries", kind_of(summaries))
    return tuple({name: each.get(name) for name in _SUMMARY} for each in summaries)


def _counted(storage: Storage, manifest: Manifest) -> Manifest:
    names = {"status": "status", "data_file": "data_file", "record_count": "record_count"}
    by_id = Names({0: "status", 2: "data_file", 103: "record_count"}, names)
    counts = dict.fromkeys(_COUNTS, 0)
    for record in read_records(storage.read(manifest.name), by_id, subject=manifest.path):
        try:
            status = _STATUSES[record["status"]]
            counts[f"{status}_rows"] += record["data_file"]["record_count"]
        except (LookupError, TypeError) as failure:
            raise CorruptMetadata(
                manifest.path, "status and record_count in every entry", reason_of(failure)
            ) from failure
        counts[f"{status}_files"] += 1
    return replace(
        manifest,
        added_files=counts["added_files"],
        existing_files=counts["existing_files"],
        deleted_files=counts["deleted_files"],
        added_rows=counts["added_rows"],
        existing_rows=counts["existing_rows"],
        deleted_rows=counts["deleted_rows"],
    )


def _record(manifest: Manifest, format_version: int) -> Record:
    record: Record = {
        "manifest_path": manifest.path,
        "manifest_length": manifest.bytes,
        "partition_spec_id": manifest.spec_id,
        "content": manifest.content.value,
        "sequence_number": manifest.sequence_number,
        "min_sequence_number": manifest.min_sequence_number,
        "added_snapshot_id": manifest.snapshot_id,
        **{stored: getattr(manifest, name) for name, stored in _COUNTS.items()},
        "partitions": None if manifest.partitions is None else [dict(each) for each in manifest.partitions],
        "key_metadata": manifest.key_metadata,
    }
    if format_version >= _LINEAGE:
        record["first_row_id"] = manifest.first_row_id
    if format_version == 1:
        for name in ("content", "sequence_number", "min_sequence_number"):
            del record[name]
    return record
