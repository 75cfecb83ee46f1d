"""Rows that readers see of two sides of a unit -> those at the same place on both, and those of one side alone.

Files are never changed, so a row at the same place of the same file is the same row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyroaring import BitMap64

Positions = Mapping[str, BitMap64]
"""Row ordinals (0-based, physical) by data file name."""


@dataclass(frozen=True, slots=True)
class ComparedPositions:
    """The positions of `both` sides, and those that only the one `before` or `after` has."""

    both: Positions
    before: Positions
    after: Positions


def compare_positions(before: Positions, after: Positions) -> ComparedPositions:
    both = {name: before[name] & after[name] for name in before.keys() & after.keys()}
    return ComparedPositions(both, _without(before, both), _without(after, both))


def _without(positions: Positions, others: Positions) -> Positions:
    return {name: bitmap - others[name] if name in others else bitmap for name, bitmap in positions.items()}
