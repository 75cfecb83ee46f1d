"""Vectors, position deletes and equality deletes -> the deleted positions of each data file.

Of data files only key columns are read, and only where deletes may match. An index of deleted keys and a batch of rows
are in memory at a time. Iceberg table spec, "Scan Planning", "Delete Formats".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.data.columns import IcebergFileReader
from nightkeep.formats.iceberg.data.partition_values import require_partition_values
from nightkeep.formats.iceberg.deletes.position_deletes import read_positions
from nightkeep.formats.iceberg.deletes.vectors import read_vectors
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.positional_deletes import Identity, positional_of
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergUnit
from nightkeep.formats.iceberg.rewrite.delete_matching import Probe, probes
from nightkeep.kernels.bitmap import Width, from_positions
from nightkeep.kernels.equality import EqualityIndex
from nightkeep.storage import Storage

INDEX_BYTES = 256 << 20
"""Bytes of deleted keys in Arrow memory. The index adds 40 bytes per key: with keys of two numbers, four times this."""

Deletes = tuple[ContentFile, ...]
_NONE = BitMap64()


@dataclass(frozen=True, slots=True)
class Marked:
    """A data file and the positional deletes that apply to it. They may have no row of it."""

    file: ContentFile
    held: Deletes


def marked_files(unit: IcebergUnit, files: Sequence[ContentFile]) -> tuple[Marked, ...]:
    """Each of these files of the unit, with the position deletes or the vector that apply to it.

    Data files with equal deletes share one tuple.
    """
    ordered = sorted(unit.positional, key=lambda delete: repr(delete.identity))
    place = {delete.identity: at for at, delete in enumerate(ordered)}
    held = positional_of(unit)
    interned: dict[frozenset[Identity], Deletes] = {}
    for file in files:
        if held[file.path] not in interned:
            interned[held[file.path]] = tuple(ordered[at] for at in sorted(place[each] for each in held[file.path]))
    return tuple(Marked(file, interned[held[file.path]]) for file in files)


def hidden(
    storage: Storage, unit: IcebergUnit, files: Sequence[ContentFile], *, index_bytes: int = INDEX_BYTES
) -> Mapping[str, BitMap64]:
    """The deleted positions of some of the unit's data files, by path; files without deleted rows are left out.

    Raises CorruptMetadata and MissingFile naming the delete file, also for positions beyond a file's rows.
    """
    held = positional_rows(storage, marked_files(unit, files))
    by_keys = equality_rows(storage, unit.schema, probes(unit, files), index_bytes=index_bytes)
    positions = {
        path: BitMap64.union(_NONE, _NONE, *rows.values(), by_keys.get(path, _NONE)) for path, rows in held.items()
    }
    return {path: rows for path, rows in positions.items() if rows}


def positional_rows(storage: Storage, targets: Sequence[Marked]) -> Mapping[str, Mapping[ContentFile, BitMap64]]:
    """By path of the data file, each of its vectors and position delete files with the positions that it deletes.

    Deletes without a position in the data file are left out. Every delete file is read once.
    """
    by_path: dict[str, dict[ContentFile, BitMap64]] = {target.file.path: {} for target in targets}
    files = {target.file.path: target.file for target in targets}
    vectors = {vector: target.file for target in targets for vector in target.held if vector.is_vector}
    for vector, rows in read_vectors(storage, ((vector, file.rows) for vector, file in vectors.items())):
        by_path[vectors[vector].path][vector] = rows
    for delete, paths in _by_delete(targets):
        for path, rows in read_positions(storage, delete, paths).items():
            _require_within(rows, delete, files[path])
            by_path[path][delete] = rows
    return by_path


def equality_rows(
    storage: Storage, schema: IcebergSchema, probes: Iterable[Probe], *, index_bytes: int = INDEX_BYTES
) -> Mapping[str, BitMap64]:
    """The positions that equality deletes delete, by path of the data file; files without any are left out.

    If the keys take more than `index_bytes`, they are looked up in several passes over the data files' key columns.
    """
    rows: dict[str, BitMap64] = {}
    for probe in probes:
        for newest, index in _indexes(storage, schema, probe, index_bytes):
            for file in (each for each in probe.files if each.sequence_number < newest):
                positions = _matches(storage, schema, file, probe.field_ids, index=index)
                if len(positions):
                    rows[file.path] = rows.get(file.path, _NONE) | BitMap64(from_positions(positions, Width.BITS_64))
    return rows


def _indexes(
    storage: Storage, schema: IcebergSchema, probe: Probe, index_bytes: int
) -> Iterator[tuple[int, EqualityIndex]]:
    """Yield indexes of deleted keys, each with the greatest sequence number of its keys."""
    pending: list[tuple[pa.Table, int]] = []
    held = 0
    for delete in probe.deletes:
        for keys in IcebergFileReader(storage, schema, delete).keys(probe.field_ids):
            pending.append((keys, delete.sequence_number))
            held += keys.nbytes
            if held >= index_bytes:
                yield max(number for _, number in pending), EqualityIndex.of(pending)
                pending, held = [], 0
    if pending:
        yield max(number for _, number in pending), EqualityIndex.of(pending)


def _matches(
    storage: Storage, schema: IcebergSchema, file: ContentFile, field_ids: Sequence[int], *, index: EqualityIndex
) -> npt.NDArray[np.int64]:
    require_partition_values(storage, schema, [file])
    start, matches = 0, [np.empty(0, np.int64)]
    for keys in IcebergFileReader(storage, schema, file).keys(field_ids):
        matches.append(start + index.hidden(keys, file.sequence_number))
        start += keys.num_rows
    if start != file.rows:
        raise CorruptMetadata(file.path, f"{file.rows} rows, as its manifest counts", str(start))
    return np.concatenate(matches)


def _by_delete(targets: Iterable[Marked]) -> Iterator[tuple[ContentFile, Set[str]]]:
    """Yield position delete files with the paths of the data files that they may apply to.

    Data files that share a tuple of deletes are handled together: there may be thousands of both.
    """
    alike: dict[int, tuple[Deletes, set[str]]] = {}
    for target in targets:
        alike.setdefault(id(target.held), (target.held, set()))[1].add(target.file.path)
    by_delete: dict[Identity, tuple[ContentFile, list[set[str]]]] = {}
    for held, paths in alike.values():
        for delete in (each for each in held if not each.is_vector):
            by_delete.setdefault(delete.identity, (delete, []))[1].append(paths)
    for delete, parts in by_delete.values():
        yield delete, parts[0] if len(parts) == 1 else set[str]().union(*parts)


def _require_within(rows: BitMap64, delete: ContentFile, file: ContentFile) -> None:
    if rows and rows.max() >= file.rows:
        raise CorruptMetadata(delete.path, f"positions below the {file.rows} rows of {file.path}", str(rows.max()))
