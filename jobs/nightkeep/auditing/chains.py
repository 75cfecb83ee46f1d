"""Commits that keep rows -> chains of them. Only the ends of a chain are compared: each of its files is read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nightkeep.protocol.past import PastCommit, RowClaim


@dataclass(frozen=True, slots=True)
class Chain:
    """Commits that follow each other and keep rows, and those that touch no files in between. `base` is the version
    that the first is built on. Both ends keep rows."""

    base: int
    commits: tuple[PastCommit, ...]

    @property
    def end(self) -> int:
        return self.commits[-1].version

    @property
    def time_ms(self) -> int:
        return max(commit.time_ms for commit in self.commits)

    @property
    def links(self) -> tuple[Chain, ...]:
        """A chain for each commit that keeps rows."""
        bases = [self.base, *(commit.version for commit in self.commits)]
        return tuple(
            Chain(base, (commit,))
            for base, commit in zip(bases, self.commits, strict=False)
            if commit.claim is RowClaim.KEEPS_ROWS
        )

    @property
    def rest(self) -> Chain | None:
        """The chain without its first commit that keeps rows; None if that is the only one."""
        links = self.links[1:]
        if not links:
            return None
        first = links[0]
        start = self.commits.index(first.commits[0])
        return Chain(first.base, self.commits[start:])


def chains_of(commits: Sequence[PastCommit]) -> Iterator[Chain]:
    """The longest chains, oldest first. A commit without a parent is in none: nothing was there to keep."""
    held: list[PastCommit] = []
    for commit in commits:
        follows = bool(held) and commit.parent == held[-1].version
        if held and (not follows or commit.claim is RowClaim.CHANGES_ROWS):
            yield _chain(held)
            held = []
        starts = commit.claim is RowClaim.KEEPS_ROWS and commit.parent is not None
        if starts or (held and commit.claim is RowClaim.TOUCHES_NO_FILES):
            held.append(commit)
    if held:
        yield _chain(held)


def _chain(held: Sequence[PastCommit]) -> Chain:
    last = max(place for place, commit in enumerate(held) if commit.claim is RowClaim.KEEPS_ROWS)
    base = held[0].parent
    assert base is not None
    return Chain(base, tuple(held[: last + 1]))
