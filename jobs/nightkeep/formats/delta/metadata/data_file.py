"""An add action -> a live file, checked at its birth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.metadata.actions import Raw, long_value
from nightkeep.formats.delta.metadata.locations import storage_name
from nightkeep.formats.delta.metadata.struct_stats import row_count

_NO_TAGS: Final[Mapping[str, str]] = {}


class VectorStorage(StrEnum):
    """Where a deletion vector is (PROTOCOL.md, "Deletion Vector Descriptor Schema": storageType)."""

    RELATIVE = "u"
    ABSOLUTE = "p"
    INLINE = "i"


@dataclass(frozen=True, slots=True)
class Vector:
    """A deletion vector's descriptor: `place` is pathOrInlineDv, `bytes` the payload's size, `rows` its cardinality.

    `offset` is None for an inline vector, or means 0.
    """

    kind: VectorStorage
    place: str
    offset: int | None
    bytes: int
    rows: int

    def __post_init__(self) -> None:
        inline = self.kind is VectorStorage.INLINE
        if (inline and self.offset is not None) or min(self.offset or 0, self.bytes, self.rows) < 0:
            found = f"kind {self.kind}, offset {self.offset}, {self.bytes} bytes, {self.rows} rows"
            raise CorruptMetadata(
                f"deletion vector {self.place}", "no offset if it is inline, and nothing negative", found
            )

    @property
    def unique_id(self) -> str:
        """The id by which log replay distinguishes vectors of one file."""
        return f"{self.kind}{self.place}" + ("" if self.offset is None else f"@{self.offset}")

    @property
    def descriptor(self) -> Mapping[str, object]:
        """The JSON of an add action."""
        return {
            "storageType": self.kind.value,
            "pathOrInlineDv": self.place,
            "offset": self.offset,
            "sizeInBytes": self.bytes,
            "cardinality": self.rows,
        }


@dataclass(frozen=True, slots=True)
class DeltaDataFile:
    """A live file. `path` is the log's text (percent-encoded), `name` its name in storage, below the root.

    `rows` are physical rows, None where statistics are missing. `raw` is the whole add action, `stats` its JSON text.
    `raw` is not compared: checkpoints may write an action differently, for example its dataChange.
    """

    path: str
    name: str
    bytes: int
    rows: int | None
    vector: Vector | None
    stats: str | None
    tags: Mapping[str, str] = field(hash=False)
    raw: Mapping[str, object] = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.bytes < 0 or (self.rows is not None and self.deleted_rows > self.rows):
            found = f"{self.bytes} bytes, {self.deleted_rows} of {self.rows} rows deleted"
            raise CorruptMetadata(self.path, "a size, and no more deleted rows than rows", found)

    @property
    def identity(self) -> tuple[str, str | None]:
        """The key of log replay. Two versions with the same identity show the same rows of the file."""
        return (self.path, self.vector.unique_id if self.vector else None)

    @property
    def deleted_rows(self) -> int:
        return self.vector.rows if self.vector else 0

    @property
    def deletes(self) -> int:
        """The number of vectors: 0 or 1."""
        return 1 if self.vector else 0


def data_file(raw: Raw, *, root: str, has_vectors: bool, anywhere: bool = False) -> DeltaDataFile:
    """The file of an add. Raises CorruptMetadata, and RefusedTable for a file elsewhere unless it may be `anywhere`."""
    path, stats, tags = str(raw["path"]), raw.get("stats"), raw.get("tags")
    vector = vector_of(raw.get("deletionVector"))
    if vector and not has_vectors:
        # Readers do not agree on whether such a vector applies.
        raise CorruptMetadata(path, "no deletion vector, as the protocol lacks the feature", vector.unique_id)
    return DeltaDataFile(
        path=path,
        name=storage_name(path, root, anywhere=anywhere),
        bytes=long_value(raw, "size", subject=path),
        rows=row_count(str(stats)) if stats else None,
        vector=vector,
        stats=str(stats) if stats else None,
        tags={str(k): str(v) for k, v in tags.items()} if isinstance(tags, Mapping) and tags else _NO_TAGS,
        raw=raw,
    )


def vector_of(raw: object) -> Vector | None:
    """The vector of an action; None without one. Raises CorruptMetadata."""
    if not isinstance(raw, Mapping):
        return None
    kind = raw["storageType"]
    if kind not in set(VectorStorage):
        raise CorruptMetadata("deletion vector", f"a storageType of {', '.join(VectorStorage)}", repr(kind))
    return Vector(VectorStorage(kind), raw["pathOrInlineDv"], raw.get("offset"), raw["sizeInBytes"], raw["cardinality"])
