"""A question about each of many folders -> its answers, several at a time, as a store may take a request for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import quote

from nightkeep.errors import EvidenceError, RefusedTable

T = TypeVar("T")

_THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why a store did not answer."""

    why: str


def answers_of(folders: Sequence[str], ask: Callable[[str], T]) -> Iterator[tuple[str, T | NoAnswer]]:
    """Each folder with what `ask` returns for it, or with the failure of the store."""

    def answer(folder: str) -> T | NoAnswer:
        try:
            return ask(folder)
        except (EvidenceError, RefusedTable, OSError) as failure:
            return NoAnswer(str(failure))

    with ThreadPoolExecutor(_THREADS) as threads:
        yield from zip(folders, threads.map(answer, folders), strict=True)


def location_of(location: str, folder: str) -> str:
    """The location of a folder below another location, spelled in the same way."""
    name = quote(folder) if location.startswith("file:") else folder
    return f"{location.rstrip('/')}/{name}" if folder else location
