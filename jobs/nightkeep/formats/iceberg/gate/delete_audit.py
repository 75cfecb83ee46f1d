"""Parent and candidate -> faults of deletes: a wrong scope, duplicates, deletes removed too early, invalid bytes.

Spec, "Scan Planning", "Deletion Vectors" and "Position Delete Files".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pyiceberg.types import LongType, StringType
from pyroaring import BitMap64

from nightkeep.formats.iceberg.data.stored_columns import footer_of, open_columns
from nightkeep.formats.iceberg.deletes.position_deletes import POSITION_FIELD, read_positions
from nightkeep.formats.iceberg.deletes.vectors import read_vectors
from nightkeep.formats.iceberg.gate.footer_audit import part_faults
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent
from nightkeep.formats.iceberg.metadata.conversions import to_bytes
from nightkeep.formats.iceberg.metadata.file_formats import WRITTEN
from nightkeep.formats.iceberg.metadata.file_records import PATH_FIELD
from nightkeep.formats.iceberg.metadata.partition import identity
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.model import UnitKey
from nightkeep.storage import Storage

_NEVER_SET: Final = {
    False: ("equality_ids", "sort_order_id", "key_metadata", "first_row_id", "content_offset", "content_size_in_bytes"),
    True: ("equality_ids", "sort_order_id", "key_metadata", "first_row_id", "split_offsets", "column_sizes"),
}
"""What no entry of position deletes has, by whether they are a vector."""


def delete_faults(parent: IcebergSnapshot, candidate: IcebergSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    """Faults that metadata shows; no delete file is read."""
    for unit in candidate.units:
        yield from _vector_faults(unit)
    yield from _target_faults(parent, candidate)
    yield from _equality_faults(parent, candidate, touched)


def _vector_faults(unit: IcebergUnit) -> Iterator[str]:
    """Faults for two vectors of one data file: Spark and DuckDB refuse such a table."""
    times = Counter(file.referenced for file in unit.positional if file.is_vector)
    yield from (f"{path}: {count} deletion vectors, expected one" for path, count in times.items() if count > 1)


def _target_faults(parent: IcebergSnapshot, candidate: IcebergSnapshot) -> Iterator[str]:
    """Faults unless every new delete has the spec and partition of its data file: Spark refuses others."""
    before = {file.identity for unit in parent.units for file in unit.positional}
    for unit in candidate.units:
        data = {file.path: file for file in unit.files}
        for delete in (each for each in unit.positional if each.identity not in before):
            target = data.get(delete.referenced or "")
            if target is None:
                yield f"{delete.path}: of {delete.referenced}, which is no live file of {unit.key}"
            elif delete.sequence_number < target.sequence_number:
                yield f"{delete.path}: sequence number {delete.sequence_number}, older than its data file"
    if candidate.schema.has_row_lineage:
        news = (each for unit in candidate.units for each in unit.positional if each.identity not in before)
        yield from (f"{each.path}: a position delete file, expected a vector" for each in news if not each.is_vector)


def _equality_faults(parent: IcebergSnapshot, candidate: IcebergSnapshot, touched: Sequence[UnitKey]) -> Iterator[str]:
    """Faults for new equality deletes, and for deletes removed too early.

    A delete may be removed if every older data file in its scope is gone or in a partition that is proven.
    """
    before, after = (_equality(side) for side in (parent, candidate))
    yield from (f"{path}: new equality deletes, expected none" for path in sorted(after.keys() - before.keys()))
    proven = set(touched)
    for path in sorted(before.keys() - after.keys()):
        delete = before[path]
        for unit in _scope(parent, delete):
            if unit.key in proven or unit.key not in candidate.by_key:
                continue
            left = [file.path for file in unit.files if file.sequence_number < delete.sequence_number]
            if left:
                yield f"{path}: equality deletes are gone, {left[0]} in {unit.key} still needs them"
        yield from _newer_faults(candidate, delete, path)


def _newer_faults(candidate: IcebergSnapshot, delete: ContentFile, path: str) -> Iterator[str]:
    """Faults for a removed delete that is newer than a rewritten data file in its scope: it must still apply."""
    for unit in _scope(candidate, delete):
        for file in unit.files:
            if file.snapshot_id == candidate.version and file.sequence_number < delete.sequence_number:
                yield f"{path}: equality deletes are gone, the new {file.path} is older than they are"


def _equality(snapshot: IcebergSnapshot) -> dict[str, ContentFile]:
    files = (file for unit in snapshot.units for file in unit.equality)
    return {
        file.path: file for file in (*files, *(s for s in snapshot.stray if s.content is FileContent.EQUALITY_DELETES))
    }


def _scope(snapshot: IcebergSnapshot, delete: ContentFile) -> Iterable[IcebergUnit]:
    if snapshot.schema.is_global(delete.spec_id):
        return snapshot.units
    place = identity(delete.spec_id, delete.partition)
    return [unit for unit in snapshot.units if identity(unit.spec_id, unit.values) == place]


def new_delete_faults(storage: Storage, unit: IcebergUnit, deletes: Iterable[ContentFile]) -> Iterator[str]:
    """Faults in the bytes of deletes: positions must exist in the one data file, and match the manifest's count."""
    data = {file.path: file for file in unit.files}
    vectors: list[tuple[ContentFile, int | None]] = []
    for delete in deletes:
        target = data.get(delete.referenced or "")
        if target is None:
            yield f"{delete.path}: of {delete.referenced}, which is no live file of {unit.key}"
        elif delete.is_vector:
            vectors.append((delete, target.rows))
        elif _is_written(delete):
            yield from _position_faults(storage, delete, target)
        yield from _stated_faults(delete)
    sizes = {(vector.path, vector.bytes) for vector, _ in vectors}
    yield from (f"{path}: its vectors state several sizes of it" for path in _twice(path for path, _ in sizes))
    # read_vectors itself checks sizes, checksums, cardinalities and positions.
    for vector, positions in read_vectors(storage, vectors):
        if not positions:
            yield f"{vector.path}: a vector without positions, expected none"
        else:
            yield from _metric_faults(vector, positions)


def _stated_faults(delete: ContentFile) -> Iterator[str]:
    unwanted = sorted(name for name in _NEVER_SET[delete.is_vector] if delete.raw.get(name) not in (None, [], ()))
    if unwanted:
        yield f"{delete.path}: {', '.join(unwanted)}, expected none of positions"
    if not _is_written(delete):
        yield f"{delete.path}: of format {delete.format}, expected {' or '.join(WRITTEN)}"


def _is_written(delete: ContentFile) -> bool:
    """Whether positions are in a format that is written. Properties may have changed since the plan."""
    return delete.is_vector or delete.format in WRITTEN


def _twice(paths: Iterable[str]) -> list[str]:
    return [path for path, times in Counter(paths).items() if times > 1]


def _position_faults(storage: Storage, delete: ContentFile, target: ContentFile) -> Iterator[str]:
    by_file = read_positions(storage, delete)
    columns = open_columns(storage, delete.name, delete.format, subject=delete.path)
    yield from (f"{delete.path}: {fault}" for fault in part_faults(footer_of(columns), delete))
    if set(by_file) != {target.path}:
        yield f"{delete.path}: positions of {sorted(by_file)}, expected of {target.path} alone"
        return
    (positions,) = by_file.values()
    if len(positions) != delete.rows or not len(positions):
        yield f"{delete.path}: {len(positions)} positions, the manifest states {delete.rows}"
    elif positions.max() >= target.rows:
        yield f"{delete.path}: position {positions.max()}, expected below {target.rows}"
    else:
        yield from _metric_faults(delete, positions)


def _metric_faults(delete: ContentFile, positions: BitMap64) -> Iterator[str]:
    """Faults of what a manifest states of the two columns. By it, pyiceberg leaves out deletes of other data files."""
    path = to_bytes(StringType(), delete.referenced)
    for name, end in (("lower_bounds", positions.min()), ("upper_bounds", positions.max())):
        stated = (delete.bound(name, PATH_FIELD), delete.bound(name, POSITION_FIELD))
        expected = (path, to_bytes(LongType(), end))
        if any(held not in (None, one) for held, one in zip(stated, expected, strict=True)):
            yield f"{delete.path}: {name} {stated}, expected {expected}"
    for name, count in (("value_counts", delete.rows), ("null_value_counts", 0)):
        counts = {delete.count(name, PATH_FIELD), delete.count(name, POSITION_FIELD)} - {None, count}
        if counts:
            yield f"{delete.path}: {name} {counts}, expected {count}"
