"""A bucket of a table without keys -> its data files, each with its deletion vector. Pure, metadata only."""

from __future__ import annotations

from dataclasses import dataclass

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.metadata.vector_ranges import VectorRange


@dataclass(frozen=True, slots=True)
class AppendFile:
    """A live data file, and the range of its vector, None if it has none."""

    file: PaimonDataFile
    vector: VectorRange | None

    def __post_init__(self) -> None:
        deleted = None if self.vector is None else self.vector.cardinality
        if deleted is not None and not 0 <= deleted <= self.file.rows:
            raise CorruptMetadata(f"vector of {self.name}", f"0 to {self.file.rows} deleted rows", str(deleted))

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def bytes(self) -> int:
        return self.file.bytes

    @property
    def rows(self) -> int | None:
        """None if the vector's writer did not count what it deletes: then the file counts as worn, as in Java."""
        return None if self.vector is not None and self.vector.cardinality is None else self.file.rows

    @property
    def deleted_rows(self) -> int:
        return 0 if self.vector is None else self.vector.cardinality or 0

    @property
    def deletes(self) -> int:
        return int(self.vector is not None)


def append_files(bucket: Bucket) -> tuple[AppendFile, ...]:
    vectors = {where.data_file: where for where in bucket.vectors}
    return tuple(AppendFile(file, vectors.get(file.name)) for file in bucket.files)
