"""Deletes of a unit -> which of them apply to each data file, by path, partition and sequence number. Pure.

Iceberg table spec, "Scan Planning"; Java's DeleteFileIndex. Bounds of columns are not considered here: the planner
prunes by them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.partition import identity


@dataclass(frozen=True, slots=True)
class DeleteIndex:
    """Deletes of one unit, ordered by sequence number. Look up data files of that unit only.

    Each delete in `equality` applies to all data files with a smaller sequence number; there is no index by data file.
    """

    vectors: Mapping[str, ContentFile]
    of_file: Mapping[str, tuple[ContentFile, ...]]
    of_partition: tuple[ContentFile, ...]
    equality: tuple[ContentFile, ...]

    def vector_of(self, file: ContentFile) -> ContentFile | None:
        """The vector of a data file, or None. Raises CorruptMetadata if it is older than the file, as readers do."""
        vector = self.vectors.get(file.path)
        if vector is not None and vector.sequence_number < file.sequence_number:
            expected = f"a sequence number from {file.sequence_number} on, as of {file.path}"
            raise CorruptMetadata(f"deletion vector in {vector.path}", expected, str(vector.sequence_number))
        return vector

    def positions_of(self, files: Iterable[ContentFile]) -> Iterator[tuple[ContentFile, Set[str]]]:
        """Yield each position delete file with the paths of the data files that it may apply to.

        It may have no row for some of these data files. Data files with a vector are left out. A delete with the
        sequence number of the data file applies to it: one commit added both. The yielded set is reused and grows:
        copy it to keep it.
        """
        bare = sorted((file for file in files if self.vector_of(file) is None), key=_sequence)
        for file in bare:
            yield from ((delete, {file.path}) for delete in _from(self.of_file.get(file.path, ()), file))
        paths: set[str] = set()
        older = 0
        for delete in self.of_partition:
            start, older = older, bisect_right(bare, delete.sequence_number, key=_sequence)
            paths.update(file.path for file in bare[start:older])
            if paths:
                yield delete, paths


def index_deletes(positional: Iterable[ContentFile], equality: Iterable[ContentFile]) -> DeleteIndex:
    """The index of a unit's deletes.

    Raises CorruptMetadata for two vectors of one data file, or one that names none.
    """
    files = tuple(positional)
    positions = sorted((file for file in files if not file.is_vector), key=_order)
    of_file: dict[str, list[ContentFile]] = {}
    for file in positions:
        if file.referenced is not None:
            of_file.setdefault(file.referenced, []).append(file)
    return DeleteIndex(
        vectors=vectors_by_target(file for file in files if file.is_vector),
        of_file={path: tuple(files) for path, files in of_file.items()},
        of_partition=tuple(file for file in positions if file.referenced is None),
        equality=tuple(sorted(equality, key=_order)),
    )


def vectors_by_target(vectors: Iterable[ContentFile]) -> Mapping[str, ContentFile]:
    """The vectors by path of their data file. Raises CorruptMetadata for two of one file, or one that names none."""
    by_path: dict[str, ContentFile] = {}
    for vector in vectors:
        if vector.referenced is None:
            raise CorruptMetadata(f"deletion vector in {vector.path}", "the data file it is of", "none")
        other = by_path.setdefault(vector.referenced, vector)
        if other is not vector:
            raise CorruptMetadata(f"{vector.referenced}", "one deletion vector", f"{other.path} and {vector.path}")
    return by_path


def require_targets(files: Mapping[str, ContentFile], deletes: Iterable[ContentFile]) -> None:
    """Raises CorruptMetadata if a positional delete and its live data file are in different partitions.

    Java refuses to read such a table (DeleteFileIndex.validatePartitionMatch). Such a delete would be in no unit's
    scope. `files` are the table's live data files by path.
    """
    for delete in deletes:
        target = files.get(delete.referenced or "")
        if target is None or delete.content is not FileContent.POSITION_DELETES:
            continue
        same = identity(delete.spec_id, delete.partition) == identity(target.spec_id, target.partition)
        if not same and (delete.is_vector or delete.sequence_number >= target.sequence_number):
            expected, found = ((each.spec_id, each.partition) for each in (target, delete))
            raise CorruptMetadata(
                f"deletes in {delete.path}", f"the partition of {target.path}, {expected}", str(found)
            )


def _from(deletes: Sequence[ContentFile], file: ContentFile) -> Sequence[ContentFile]:
    return deletes[bisect_left(deletes, file.sequence_number, key=_sequence) :]


def _sequence(file: ContentFile) -> int:
    return file.sequence_number


def _order(file: ContentFile) -> tuple[int, str, int]:
    return (file.sequence_number, file.path, file.content_offset or 0)
