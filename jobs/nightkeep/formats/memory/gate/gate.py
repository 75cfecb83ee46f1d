"""Store -> live rows and faults of a table in memory, for the gate. Every file is read again."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import pyarrow as pa
from pyroaring import BitMap64

from nightkeep.formats.memory.metadata.snapshot import (
    STORES,
    MemoryFile,
    MemorySnapshot,
    MemoryUnit,
    Store,
    deleted_positions,
    from_ipc,
)
from nightkeep.kernels.bitmap import positions as ascending
from nightkeep.model import Address, UnitKey, View
from nightkeep.protocol import Bound, Gate, Positions, Show


def gate_of(table: Address) -> Gate[MemorySnapshot, MemoryUnit]:
    """The gate's functions, bound to the address because a store cannot be pickled."""
    return Gate(
        survivors=Bound(survivors, table),
        rows=Bound(rows, table),
        pieces=pieces,
        unit_faults=Bound(unit_faults, table),
        faults=version_faults,
        shown=shown,
    )


def survivors(table: Address, unit: MemoryUnit, view: View) -> Positions:
    """Live positions by file name: all that are not deleted. Both views are the same, because there is no key."""
    store = STORES[table.location]
    return {file.name: BitMap64(range(file.rows)) - deleted_positions(store, file) for file in unit.files}


def rows(table: Address, unit: MemoryUnit, positions: Positions) -> Iterator[pa.RecordBatch]:
    for file in unit.files:
        if positions.get(file.name):
            table_rows = from_ipc(STORES[table.location].read(file.name))
            yield from table_rows.take(ascending(positions[file.name])).to_batches()


def pieces(base: MemoryUnit, candidate: MemoryUnit) -> Sequence[tuple[MemoryUnit, MemoryUnit]]:
    """One pair: a unit in memory is small."""
    return ((base, candidate),)


def unit_faults(
    table: Address, base: MemoryUnit, candidate: MemoryUnit, positions: Positions, show: Show
) -> tuple[str, ...]:
    """Faults of a unit. Reads every file, which is cheap in memory. Other formats read only new files."""
    for batch in rows(table, candidate, positions):
        show(batch)
    return tuple(fault for file in candidate.files for fault in _file_faults(STORES[table.location], file))


def version_faults(parent: MemorySnapshot, candidate: MemorySnapshot, touched: Sequence[UnitKey]) -> tuple[str, ...]:
    """Faults of the version. `rows` was counted from edits, so it shows a file that was lost or written twice."""
    before, after = parent.by_key, candidate.by_key
    strays = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    held = sum(file.live_rows for unit in candidate.units for file in unit.files)
    return (
        *(f"{key}: changed, though nothing of it was worked on" for key in sorted(set(strays) - set(touched))),
        *([f"{candidate.rows} rows claimed, files hold {held}"] if held != candidate.rows else []),
        *([f"{candidate.rows} rows, {parent.rows} before"] if candidate.rows != parent.rows else []),
    )


def shown(unit: MemoryUnit) -> frozenset[Hashable]:
    """The unit's files. A file with other deletes is a different piece."""
    return frozenset(unit.files)


def _file_faults(store: Store, file: MemoryFile) -> Iterator[str]:
    held = (len(store.read(file.name)), from_ipc(store.read(file.name)).num_rows)
    if held != (file.bytes, file.rows):
        yield f"{file.name}: {held[0]} bytes and {held[1]} rows, metadata states {file.bytes} and {file.rows}"
    deleted = deleted_positions(store, file)
    if len(deleted) != file.deleted_rows or (deleted and deleted.max() >= file.rows):
        yield f"{file.deleted}: {len(deleted)} positions, expected {file.deleted_rows} below {file.rows}"
