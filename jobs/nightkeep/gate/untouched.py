"""Two versions -> faults for units that differ, but that the commit should not have touched."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

from nightkeep.model import UnitKey

U = TypeVar("U")


def stray_changes(
    before: Mapping[UnitKey, U],
    after: Mapping[UnitKey, U],
    touched: Collection[UnitKey],
    is_same: Callable[[U | None, U | None], bool],
) -> Iterator[str]:
    """Faults for untouched units that changed. `is_same` gets None for a unit that a version does not list."""
    for key in sorted((before.keys() | after.keys()) - set(touched)):
        if not is_same(before.get(key), after.get(key)):
            yield f"{key}: changed, though no unit of it was worked on"
