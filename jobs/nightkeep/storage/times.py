"""Times by several clocks (writer, store, our own) -> one time. A time ahead of now is not used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nightkeep.errors import MissingFile
from nightkeep.storage.verbs import Storage, spelled

TICK_MS: Final = 2_000
"""File systems store times in steps of up to two seconds. Clocks that differ by no more count as equal."""


def not_ahead(now_ms: int, storage: Storage, name: str) -> int:
    """`now_ms` by our clock; if that is ahead of the store's, the time by the store's clock.

    The store's clock is read from the file `name`, which was written after `now_ms`. Raises MissingFile if it does not
    exist.
    """
    status = storage.stat(name)
    if status is None:
        raise MissingFile(spelled(storage, name), "there, as it was just written", "no such file")
    return now_ms if now_ms <= status.modified_ms + TICK_MS else status.modified_ms


def happened_ms(now_ms: int, times: Iterable[int]) -> int:
    """When something happened: the first of `times` that is not ahead of `now_ms`, else `now_ms`.

    `times` are in order of preference; those after the chosen one are not computed."""
    return next((time_ms for time_ms in times if time_ms <= now_ms), now_ms)
