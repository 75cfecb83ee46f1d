"""What a format provides of the newest versions: who committed each, as metadata that is small or known states it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from nightkeep.protocol.past import RowClaim
from nightkeep.protocol.work import Snapshot

S_contra = TypeVar("S_contra", bound=Snapshot, contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenVersion:
    """A version, and its commit as it states itself. `kind` is the format's own word, such as COMPACT, `author` who
    made it. `application`: the job or query, where another text than the author names it. `ours`: it carries the mark
    of this program. `time_ms`: in milliseconds since 1970, None if it states none."""

    version: int
    kind: str
    author: str
    claim: RowClaim
    ours: bool
    application: str | None = None
    time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class WrittenSince:
    """Versions, the newest first, and how many more there are, or were before they expired."""

    newest: tuple[WrittenVersion, ...]
    more: int = 0


class ReadsWriters(Protocol[S_contra]):
    """Reads who committed the versions after `since` up to `newest`, of these at most the `most` newest ones.

    Reads nothing if `since` is the newest version. Raises EvidenceError for metadata that cannot be read.
    """

    def __call__(self, newest: S_contra, *, since: int, most: int) -> WrittenSince: ...


def numbered_versions(
    read: Callable[[Iterable[int]], Iterable[WrittenVersion | None]], *, newest: int, since: int, most: int
) -> WrittenSince:
    """Versions of a format that counts them. `read` has None for one that has expired. A table that was made anew, or
    went back, may count from below `since`: then nothing is known to be new."""
    numbers = range(newest, max(since, newest - most), -1)
    found = tuple(each for each in read(numbers) if each is not None)
    return WrittenSince(found, max(0, newest - since) - len(found))
