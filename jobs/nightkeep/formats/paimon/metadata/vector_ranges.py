"""Index manifest record -> the range of each data file's vector in its index file."""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.encodings.avro_container import Record


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
