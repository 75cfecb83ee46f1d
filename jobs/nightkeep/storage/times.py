"""Times by several clocks: what a writer says, what the store shows, and now. A clock that is ahead tells nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nightkeep.errors import MissingFile
from nightkeep.storage.verbs import Storage, spelled

TICK_MS: Final = 2_000
"""File systems tell times in steps of up to two seconds; clocks so near are equal."""


def not_ahead(now_ms: int, storage: Storage, name: str) -> int:
    """`now_ms` by our clock, or by the store's, of which `name`, written since, tells, where ours is ahead of it.

    Raises MissingFile where there is no such file.
    """
    status = storage.stat(name)
    if status is None:
        raise MissingFile(spelled(storage, name), "there, as it was just written", "no such file")
    return now_ms if now_ms <= status.modified_ms + TICK_MS else status.modified_ms


def happened_ms(now_ms: int, times: Iterable[int]) -> int:
    """When something happened: the first of `times`, best first, that is not ahead of `now_ms`, which it is at the
    latest. Those after it are not asked for."""
    return next((each for each in times if each <= now_ms), now_ms)
