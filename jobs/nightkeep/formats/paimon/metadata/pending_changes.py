"""Rewrite of one bucket -> metadata changes for a commit."""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.encodings.avro_container import Record


@dataclass(frozen=True, slots=True)
class BucketEdit:
    """The metadata changes of a bucket: raw _FILE records removed and added, and its new vector file, if changed."""

    partition_bytes: bytes
    bucket: int
    total_buckets: int
    removed: tuple[Record, ...]
    added: tuple[Record, ...]
    index_record: Record | None
