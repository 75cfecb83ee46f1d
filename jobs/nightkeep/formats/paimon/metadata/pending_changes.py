"""Rewrite of one bucket -> metadata changes for a commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nightkeep.encodings.avro_container import Record


@dataclass(frozen=True, slots=True)
class BucketEdit:
    """The metadata changes of a bucket: raw _FILE records removed and added, and its new vector file, if changed.

    `changelog` are raw _FILE records of the files that tell streaming readers what changed.
    """

    partition_bytes: bytes
    bucket: int
    total_buckets: int
    removed: tuple[Record, ...]
    added: tuple[Record, ...]
    index_record: Record | None
    changelog: tuple[Record, ...] = ()

    def entries(self, kind: int, files: Sequence[Record]) -> Iterator[Record]:
        """Manifest entries of one kind, for raw _FILE records of this bucket."""
        for file in files:
            yield {
                "_VERSION": 2, "_KIND": kind, "_PARTITION": self.partition_bytes, "_BUCKET": self.bucket,
                "_TOTAL_BUCKETS": self.total_buckets, "_FILE": file,
            }  # fmt: skip
