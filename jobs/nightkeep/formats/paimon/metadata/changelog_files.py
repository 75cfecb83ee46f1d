"""A version's changelog manifest list -> the changelog files of each bucket, as streaming readers find them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from nightkeep.formats.paimon.metadata.entries import decoding, read_list, read_manifest
from nightkeep.formats.paimon.metadata.snapshot import PaimonDataFile, PaimonSnapshot, Place, data_file
from nightkeep.storage import Storage


def with_changelog(storage: Storage, snapshot: PaimonSnapshot) -> PaimonSnapshot:
    """The snapshot with the changelog files that its own commit wrote, in the order of their entries.

    Raises MissingFile for a list or a manifest that is gone, as after expiry.
    """
    name = snapshot.raw.get("changelogManifestList")
    if name is None:
        return snapshot
    metas = read_list(storage, str(name)).records
    entries = tuple(record for meta in metas for record in read_manifest(storage, meta).records)
    key_types = [field.type for field in snapshot.schema.select(snapshot.schema.trimmed_keys)]
    files: defaultdict[Place, list[PaimonDataFile]] = defaultdict(list)
    with decoding(f"manifest/{name}", "entries of changelog files"):
        for entry in entries:
            files[entry["_PARTITION"], entry["_BUCKET"]].append(data_file(entry["_FILE"], key_types))
    units = (replace(u, changelog=tuple(files[u.partition_bytes, int(u.key.bucket or 0)])) for u in snapshot.units)
    return replace(snapshot, units=tuple(units), changelog_entries=entries)
