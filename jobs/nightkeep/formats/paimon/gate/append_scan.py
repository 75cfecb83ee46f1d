"""Bucket of a table without keys -> live positions, parts, and what readers see of it. For the gate.

Columns are found and vectors are read with the same code as in a rewrite. Live rows are computed separately: here
by position, where a rewrite filters batches.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata, naming
from nightkeep.formats.paimon.deletes.append_vectors import vectors_of
from nightkeep.formats.paimon.gate.scan import every_position
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.gate.proof_parts import PART_BYTES, proof_parts
from nightkeep.model import View
from nightkeep.protocol import Positions
from nightkeep.storage import Storage

PROMISE = "rows as their schema promises"


def survivors(storage: Storage, bucket: Bucket, view: View) -> Positions:
    """Live positions by file name: all rows but those in the file's vector. Both views are the same, as no row replaces
    another. Raises CorruptMetadata if a vector does not fit its file, or a footer's row count is not the manifest's."""
    with naming(bucket.key, PROMISE):
        vectors = vectors_of(storage, bucket, {file.name for file in bucket.files})
        return {file.name: _live(storage, bucket, file, vectors.get(file.name, BitMap64())) for file in bucket.files}


def _live(storage: Storage, bucket: Bucket, file: PaimonDataFile, hidden: BitMap64) -> BitMap64:
    every = every_position(storage, bucket, file)
    if hidden and hidden.max() >= file.rows:
        raise CorruptMetadata(bucket.path(file), f"deleted positions below its {file.rows} rows", str(hidden.max()))
    return every - hidden


def pieces(base: Bucket, candidate: Bucket, *, part_bytes: int = PART_BYTES) -> Sequence[tuple[Bucket, Bucket]]:
    """Pairs of parts of about equal size, as rows of different files are independent. A file of both sides is in the
    same part on both."""
    sizes = [{file.name: file.bytes for file in bucket.files} for bucket in (base, candidate)]
    parts = proof_parts(*sizes, part_bytes=part_bytes)
    if len(parts) == 1:
        return ((base, candidate),)
    return tuple((_part(base, names), _part(candidate, names)) for names in parts)


def shown(bucket: Bucket) -> frozenset[Hashable]:
    """The bucket's files with their vectors. A file with another vector is a different piece."""
    vectors = {
        where.data_file: (record["_FILE_NAME"], where)
        for record in bucket.index_records
        for where in vector_ranges(record)
    }
    return frozenset((file.name, file.bytes, vectors.get(file.name)) for file in bucket.files)


def _part(bucket: Bucket, names: frozenset[str]) -> Bucket:
    return replace(bucket, files=tuple(file for file in bucket.files if file.name in names))
