"""Two versions -> units that differ though none of their files was worked on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

from nightkeep.model import UnitKey

U = TypeVar("U")


def stray_changes(
    before: Mapping[UnitKey, U], after: Mapping[UnitKey, U], touched: Collection[UnitKey],
    is_same: Callable[[U | None, U | None], bool],
) -> Iterator[str]:  # fmt: skip
    """`is_same` gets None for a unit that a version no longer lists, as it ran empty, or does not list yet."""
    for key in sorted((before.keys() | after.keys()) - set(touched)):
        if not is_same(before.get(key), after.get(key)):
            yield f"{key}: changed, though no unit of it was worked on"
