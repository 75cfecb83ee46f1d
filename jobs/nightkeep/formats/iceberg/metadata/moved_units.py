"""A staged snapshot -> the same, where files of older partition specs know where their rows went.

A run that moves files to the current spec names the new ones by the partition whose rows they have. Names only group:
the gate compares the rows of each group, and a file in no group is a fault. Pure, metadata only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.naming import unit_token_of
from nightkeep.formats.iceberg.metadata.positional_deletes import Identity
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.model import UnitKey
from nightkeep.model.run_names import unit_token


def with_moved(snapshot: IcebergSnapshot, keys: Sequence[UnitKey]) -> IcebergSnapshot:
    """The snapshot, in which units of older specs among `keys` have the files that it wrote of their rows."""
    current = snapshot.schema.default_spec_id
    older = {unit_token(key): key for key in keys if _spec_of(snapshot, key) not in (None, current)}
    if not older:
        return snapshot
    moved: dict[UnitKey, list[IcebergUnit]] = {}
    for unit in snapshot.units:
        files: dict[UnitKey, list[ContentFile]] = {}
        for file in unit.files:
            key = older.get(unit_token_of(file.name) or "")
            if key is not None and key != unit.key and file.snapshot_id == snapshot.version:
                files.setdefault(key, []).append(file)
        for key, own in files.items():
            moved.setdefault(key, []).append(replace(unit, files=tuple(own), is_moved=True))
    units = [replace(unit, moved=tuple(moved[unit.key])) if unit.key in moved else unit for unit in snapshot.units]
    return replace(snapshot, units=tuple(units))


def moved_files(units: Sequence[IcebergUnit]) -> frozenset[Identity]:
    """The files that a staged snapshot writes of the rows of these units in partitions of the current spec."""
    return frozenset(file.identity for unit in units for each in unit.moved for file in each.files)


def proven_units(snapshot: IcebergSnapshot) -> Sequence[IcebergUnit]:
    """The units as they are proven: a file that moved is proven with the rows of the unit that it came from."""
    moved = moved_files(snapshot.units)
    if not moved:
        return snapshot.units
    return [
        replace(unit, files=tuple(each for each in unit.files if each.identity not in moved)) for unit in snapshot.units
    ]


def _spec_of(snapshot: IcebergSnapshot, key: UnitKey) -> int | None:
    unit = snapshot.by_key.get(key)
    return None if unit is None else unit.spec_id
