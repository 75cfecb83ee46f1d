"""A bucket's deletion vectors: index file bytes <-> positions by data file.

A bucket of a table with keys has exactly one vector file. It is rewritten whole when any vector changes
(BucketedDvMaintainer.java). Readers take the last file that the index manifest names for the bucket. A table without
keys may have several in a partition, of different data files (append_vectors.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from pyroaring import BitMap64

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.deletes.vectors import BitmapKind, decode_vector, encode_vectors
from nightkeep.formats.paimon.metadata.entries import ADD
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.schema import option_bool
from nightkeep.formats.paimon.metadata.snapshot import VECTORS_INDEX, Bucket
from nightkeep.formats.paimon.metadata.vector_ranges import VectorRange, vector_ranges
from nightkeep.kernels.bitmap import Width, from_positions, positions
from nightkeep.storage import Storage

_WIDTH = {BitmapKind.BITMAP32: Width.BITS_32, BitmapKind.BITMAP64: Width.BITS_64}


def read_vectors(storage: Storage, bucket: Bucket) -> Mapping[str, BitMap64]:
    """Deleted positions by data file name, also for files that no longer exist."""
    vectors: dict[str, BitMap64] = {}
    for record in bucket.index_records:
        vectors |= decoded(storage, bucket, str(record["_FILE_NAME"]), vector_ranges(record))
    return vectors


def decoded(storage: Storage, bucket: Bucket, name: str, ranges: Sequence[VectorRange]) -> Mapping[str, BitMap64]:
    """Deleted positions by data file name, of these ranges of one vector file."""
    if not ranges:
        return {}
    path = index_path(bucket, name)
    data = storage.read(path)
    return {vector.data_file: BitMap64(decode_vector(data, vector, subject=path)) for vector in ranges}


def vector_file(
    storage: Storage, bucket: Bucket, vectors: Mapping[str, BitMap64], *, gone: Set[str], naming: PaimonNaming
) -> tuple[Record | None, str | None]:
    """Write the bucket's new vector file: (its raw index entry, its path), or (None, None) if nothing changed.

    `gone` are files that the rewrite replaces. They and files that no longer exist lose their entry. A bucket without
    vectors still gets a file, of one byte and with empty ranges, because only a new entry replaces the old one.
    """
    before = read_vectors(storage, bucket)
    live = {file.name for file in bucket.files} - gone
    if vectors == before and before.keys() <= live:
        return None, None
    kept = [(name, bitmap) for name, bitmap in sorted(vectors.items()) if name in live and bitmap]
    return write_vectors(storage, bucket, kept, naming=naming)


def write_vectors(
    storage: Storage, bucket: Bucket, vectors: Sequence[tuple[str, BitMap64]], *, naming: PaimonNaming
) -> tuple[Record, str]:
    """Write one vector file of these vectors by data file: its raw index entry, and its path."""
    kind = vector_kind(bucket)
    stored = [(name, from_positions(positions(bitmap), _WIDTH[kind])) for name, bitmap in vectors]
    data, ranges = encode_vectors(stored, kind)
    name = naming.index()
    path = index_path(bucket, name)
    storage.put(path, data)
    items = [{"f0": r.data_file, "f1": r.offset, "f2": r.length, "_CARDINALITY": r.cardinality} for r in ranges]
    record: Record = {
        "_VERSION": 1,
        "_KIND": ADD,
        "_PARTITION": bucket.partition_bytes,
        "_BUCKET": bucket.key.bucket,
        "_INDEX_TYPE": VECTORS_INDEX,
        "_FILE_NAME": name,
        "_FILE_SIZE": len(data),
        "_ROW_COUNT": len(ranges),
        "_DELETIONS_VECTORS_RANGES": items,
        "_EXTERNAL_PATH": None,
        "_GLOBAL_INDEX": None,
    }
    return record, path


def vector_kind(bucket: Bucket) -> BitmapKind:
    wide = option_bool(bucket.schemas.current, "deletion-vectors.bitmap64")
    return BitmapKind.BITMAP64 if wide else BitmapKind.BITMAP32


def index_path(bucket: Bucket, name: str) -> str:
    beside_data = option_bool(bucket.schemas.current, "index-file-in-data-file-dir")
    return f"{bucket.folder if beside_data else 'index'}/{name}"
