"""A commit's changelog manifest list -> the changelog files of each bucket, as streaming readers find them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.entries import ADD, decoding, read_entries
from nightkeep.formats.paimon.metadata.snapshot import (
    Bucket,
    PaimonDataFile,
    PaimonSnapshot,
    Place,
    Schemas,
    bucket_at,
    data_file,
)
from nightkeep.storage import Storage

_LIST = "changelogManifestList"


def with_changelog(storage: Storage, snapshot: PaimonSnapshot) -> PaimonSnapshot:
    """The snapshot with the changelog files that its own commit wrote, in the order of their entries.

    Raises MissingFile for a list or a manifest that is gone, as after expiry.
    """
    entries = _entries(storage, snapshot.raw)
    if not entries:
        return snapshot
    key_types = [field.type for field in snapshot.schema.select(snapshot.schema.trimmed_keys)]
    files: defaultdict[Place, list[PaimonDataFile]] = defaultdict(list)
    with decoding(f"manifest/{snapshot.raw[_LIST]}", "entries of changelog files"):
        for entry in entries:
            files[entry["_PARTITION"], entry["_BUCKET"]].append(data_file(entry["_FILE"], key_types))
    units = (replace(u, changelog=tuple(files[u.partition_bytes, int(u.key.bucket or 0)])) for u in snapshot.units)
    return replace(snapshot, units=tuple(units), changelog_entries=entries)


def changelog_buckets(storage: Storage, raw: Mapping[str, object], schemas: Schemas) -> tuple[Bucket, ...]:
    """The changelog files of a snapshot's commit, as buckets that have no other files; their order is that of entries.

    Raises as `with_changelog`, and CorruptMetadata for an entry that removes a file.
    """
    records: defaultdict[Place, list[Record]] = defaultdict(list)
    types = [field.type for field in schemas.current.select(schemas.current.trimmed_keys)]
    subject = f"manifest/{raw.get(_LIST)}"
    with decoding(subject, "entries of changelog files"):
        for entry in _entries(storage, raw):
            if entry["_KIND"] != ADD:
                raise CorruptMetadata(subject, "files that are added", f"{entry['_FILE']['_FILE_NAME']} removed")
            records[entry["_PARTITION"], entry["_BUCKET"]].append(entry)
        return tuple(
            replace(
                bucket_at(place, entries, (), schemas=schemas),
                files=tuple(data_file(entry["_FILE"], types) for entry in entries),
            )
            for place, entries in records.items()
        )


def _entries(storage: Storage, raw: Mapping[str, object]) -> tuple[Record, ...]:
    name = raw.get(_LIST)
    return () if name is None else tuple(read_entries(storage, str(name)))
