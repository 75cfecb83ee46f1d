"""What a rewrite did to one bucket, as a commit will say it."""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.encodings.avro_container import Record


@dataclass(frozen=True, slots=True)
class BucketEdit:
    """A bucket's change to metadata: raw _FILE records removed and added, and its new vector file, if it changed."""

    partition_bytes: bytes
    bucket: int
    total_buckets: int
    removed: tuple[Record, ...]
    added: tuple[Record, ...]
    index_record: Record | None
