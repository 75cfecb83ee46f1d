"""Sets of names in the memory of one process: Arrow columns, compared as a whole."""

from __future__ import annotations

from nightkeep.sweep.sets import Sets

__all__ = ["InlineSets", "Sets"]


class InlineSets:
    """The Sets without Spark. Raises TooManyNames for more than `limit` names."""

    def __init__(self, *, limit: int = 4_000_000) -> None:
        self._limit = limit
