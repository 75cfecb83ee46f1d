"""Index manifest record -> the range of each data file's vector in its index file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import CorruptMetadata


@dataclass(frozen=True, slots=True)
class VectorRange:
    """The range of one data file's vector in an index file, from an index manifest.

    `offset` is that of the record. `length` is its size field for BITMAP32, but the whole record for BITMAP64.
    `cardinality` is the number of deleted rows, None if the writer did not record it.
    """

    data_file: str
    offset: int
    length: int
    cardinality: int | None


def vector_ranges(index: Record | None) -> tuple[VectorRange, ...]:
    if index is None:
        return ()
    items = index.get("_DELETIONS_VECTORS_RANGES") or []
    return tuple(VectorRange(item["f0"], item["f1"], item["f2"], item.get("_CARDINALITY")) for item in items)


def require_one_each(files: Iterable[Record]) -> None:
    """Raises CorruptMetadata for a data file with vectors in two of these files, or twice in one."""
    counts = Counter(where.data_file for record in files for where in vector_ranges(record))
    for name, count in counts.items():
        if count > 1:
            raise CorruptMetadata(f"index entries of {name}", "one deletion vector of a data file", str(count))
