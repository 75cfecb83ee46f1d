"""Lists of elements per key, held as flat arrays that ascend by key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nightkeep.kernels.arrow_buffers import Rows
from nightkeep.kernels.merge import Flags

_NONE = -1


@dataclass(frozen=True, slots=True)
class Elements:
    """Elements of some keys: `owner` ascends and is the place of the key among them. `items` has a line per element:
    its place in the column, and then for each field of a nested row the element that its value is taken from, -1 for
    null. Elements of one owner are in order."""

    owner: Rows
    items: Rows

    @classmethod
    def none(cls, width: int) -> Elements:
        return cls(np.zeros(0, np.int64), np.zeros((0, width), np.int64))

    def where(self, kept: Flags) -> Elements:
        return Elements(self.owner[kept], self.items[kept])

    def counts(self, owners: int) -> Rows:
        """How many elements each owner has."""
        return np.bincount(self.owner, minlength=owners).astype(np.int64)

    def of(self, owners: Rows) -> Elements:
        """Those of `owners`, which are unique, by their place among them."""
        first, after = (np.searchsorted(self.owner, owners, side) for side in ("left", "right"))
        places, lines = spread(first.astype(np.int64), (after - first).astype(np.int64))
        return Elements(places, self.items[lines])

    def without(self, owners: Rows) -> Elements:
        return self.where(~np.isin(self.owner, owners))

    def followed_by(self, other: Elements) -> tuple[Elements, Flags]:
        """For each owner, its elements here and then those of `other`, with flags for the latter."""
        owner = np.concatenate([self.owner, other.owner])
        late = np.arange(len(owner)) >= len(self.owner)
        order = np.argsort(owner, kind="stable")
        return Elements(owner[order], np.concatenate([self.items, other.items])[order]), late[order]


def spread(starts: Rows, counts: Rows) -> tuple[Rows, Rows]:
    """For each range of `counts` numbers from `starts`: the index of the range, once per number, and the numbers."""
    places = np.repeat(np.arange(len(starts)), counts)
    before = np.cumsum(counts) - counts
    return places, np.arange(len(places)) + np.repeat(starts - before, counts)


def turn_within(groups: Rows) -> Rows:
    """For each row, how many rows with the same number in `groups` come before it."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = np.diff(ordered, prepend=_NONE) != 0
    starts = np.flatnonzero(first)
    turns = np.empty(len(groups), np.int64)
    turns[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))
    return turns
