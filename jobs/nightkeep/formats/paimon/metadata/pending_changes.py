"""Rewrite of one bucket -> metadata changes for a commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nightkeep.encodings.avro_container import Record
from nightkeep.model import Intent


@dataclass(frozen=True, slots=True)
class BucketEdit:
    """The metadata changes of a bucket: raw _FILE records removed and added, and its new vector files.

    `index_record` replaces the vector file of a table with keys, None if it did not change. `index_removed` and
    `index_added` are for tables without keys: names of vector files that go, and entries of new ones. A unit of such a
    table may have several edits, of different files. The edits of one commit have one `intent`.

    `changelog` are raw _FILE records of the changelog files for streaming readers.
    """

    partition_bytes: bytes
    bucket: int
    total_buckets: int
    removed: tuple[Record, ...]
    added: tuple[Record, ...]
    index_record: Record | None
    changelog: tuple[Record, ...] = ()
    index_removed: frozenset[str] = frozenset()
    index_added: tuple[Record, ...] = ()
    intent: Intent = field(default_factory=Intent)

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes, as for a delete that finds no row."""
        files = self.removed or self.added or self.index_removed or self.index_added
        return not files and self.index_record is None

    def entries(self, kind: int, files: Sequence[Record]) -> Iterator[Record]:
        """Manifest entries of one kind, for raw _FILE records of this bucket."""
        for file in files:
            yield {
                "_VERSION": 2,
                "_KIND": kind,
                "_PARTITION": self.partition_bytes,
                "_BUCKET": self.bucket,
                "_TOTAL_BUCKETS": self.total_buckets,
                "_FILE": file,
            }
