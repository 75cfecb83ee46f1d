"""Deletion vectors of a table without keys: vector files <-> positions by data file.

A partition may have several vector files, each for other data files. One that no longer fits is replaced by new files
with what is left of it (C/deletionvectors/append/AppendDeleteFileMaintainer.java). A fixed bucket has one vector file,
which is replaced as a whole (BucketedAppendDeleteFileMaintainer.java).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from pyroaring import BitMap64

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.deletes.bucket_vectors import decoded, write_vectors
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.schema import has_fixed_buckets, option_bytes
from nightkeep.formats.paimon.metadata.snapshot import Bucket
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.storage import Storage

DEFAULT_FILE_BYTES = 2 << 20
"""Default of deletion-vector.index-file.target-size."""


@dataclass(frozen=True, slots=True)
class VectorFiles:
    """The change of a bucket's vector files: names that go, raw entries of new files, and the paths of those."""

    removed: frozenset[str]
    added: tuple[Record, ...]
    paths: tuple[str, ...]


def vectors_of(storage: Storage, bucket: Bucket, names: Set[str]) -> Mapping[str, BitMap64]:
    """Deleted positions by data file, of these data files only. Reads only the vector files that have one of them."""
    vectors: dict[str, BitMap64] = {}
    for record in bucket.index_records:
        wanted = [where for where in vector_ranges(record) if where.data_file in names]
        vectors |= decoded(storage, bucket, str(record["_FILE_NAME"]), wanted)
    return vectors


def replace_vectors(
    storage: Storage, bucket: Bucket, fresh: Mapping[str, BitMap64], *, gone: Set[str], naming: PaimonNaming
) -> VectorFiles:
    """Replace the vector files that have a vector of a data file in `gone` or `fresh`.

    `fresh` are the new vectors of data files, which include what was deleted before. Data files in `gone`, and those
    that the bucket does not have, lose their vector. All other vectors of the replaced files are in the new ones.
    """
    changed = gone | fresh.keys()
    live = {file.name for file in bucket.files} - changed
    touched = [r for r in bucket.index_records if any(where.data_file in changed for where in vector_ranges(r))]
    if (touched or fresh) and has_fixed_buckets(bucket.schemas.current):
        touched = list(bucket.index_records)
    vectors = dict(fresh)
    for record in touched:
        kept = [where for where in vector_ranges(record) if where.data_file in live]
        vectors |= decoded(storage, bucket, str(record["_FILE_NAME"]), kept)
    stored = [(name, vector) for name, vector in sorted(vectors.items()) if vector and name not in gone]
    written = [write_vectors(storage, bucket, part, naming=naming) for part in _parts(bucket, stored)]
    removed = frozenset(str(record["_FILE_NAME"]) for record in touched)
    return VectorFiles(removed, tuple(record for record, _ in written), tuple(path for _, path in written))


def _parts(bucket: Bucket, vectors: Sequence[tuple[str, BitMap64]]) -> Iterator[list[tuple[str, BitMap64]]]:
    """The vectors in order, in parts for one file each. A part ends when it exceeds the target size."""
    most = option_bytes(bucket.schemas.current, "deletion-vector.index-file.target-size", DEFAULT_FILE_BYTES)
    assert most is not None
    most = sys.maxsize if has_fixed_buckets(bucket.schemas.current) else most
    part: list[tuple[str, BitMap64]] = []
    size = 0
    for name, vector in vectors:
        part.append((name, vector))
        size += len(vector.serialize())
        if size > most:
            yield part
            part, size = [], 0
    if part:
        yield part
