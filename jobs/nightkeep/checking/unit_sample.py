"""Units of two versions and a budget of bytes -> the units to read. Pure, metadata only."""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.model import UnitKey
from nightkeep.spark.view import TableVersion


def sample(
    touched: Sequence[UnitKey], base: TableVersion, target: TableVersion, budget: int | None
) -> tuple[UnitKey, ...]:
    """As many units as the budget of bytes allows, at least one. Each version starts at another unit."""
    if budget is None or bytes_of(touched, base, target) <= budget:
        return tuple(touched)
    # Multiples of the golden ratio spread evenly, whatever the step from one checked version to the next.
    start = (target.number * _GOLDEN % (1 << 64) * len(touched)) >> 64
    chosen: list[UnitKey] = []
    for key in (*touched[start:], *touched[:start]):
        if chosen and bytes_of([*chosen, key], base, target) > budget:
            break
        chosen.append(key)
    return tuple(sorted(chosen))


_GOLDEN = 0x9E3779B97F4A7C15


def bytes_of(units: Sequence[UnitKey], *versions: TableVersion) -> int:
    held = (version.units.get(unit) for unit in units for version in versions)
    return sum(state.bytes for state in held if state is not None)
