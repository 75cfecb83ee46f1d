"""Two sets of names that may be too large for one process: removal candidates and live files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from nightkeep.errors import EvidenceError
from nightkeep.protocol.table_files import Reach, Root, Sweeps, TableFiles, Unproven

_FIELDS: tuple[pa.Field[Any], ...] = (
    pa.field("name", pa.string(), nullable=False),
    pa.field("bytes", pa.int64(), nullable=False),
    pa.field("modified_ms", pa.int64(), nullable=False),
    pa.field("kind", pa.string(), nullable=False),
)
ORPHANS = pa.schema(_FIELDS)


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Files counted: how many, and their bytes."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: FileTotals) -> FileTotals:
        return FileTotals(self.files + other.files, self.bytes + other.bytes)


NO_FILES = FileTotals()
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class FileFault:
    """A file that metadata needs and says to have `told` bytes, if it does; the listing `found` others, or none."""

    name: str
    told: int | None
    found: int | None

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.name} is not there"
        return f"{self.name} has {self.found} bytes, metadata says {self.told}"


@dataclass(frozen=True, slots=True)
class SetCounts:
    """What one look found, by number. A listed file is live, young, an orphan, or of no kind we know.

    `missing` are live files that a reader needs and that were not listed although their root was there before the
    listing began, `resized` such as have another size than metadata says; `examples` names some of either. Files in
    the quarantine and in other tables' folders are not counted at all. Where only some names were asked for, orphans
    of other names are `listed` and no more. `doubled`: orphans that may be a live file by another name, one with the
    same last part and size that was not listed itself; `doubles` names some, with that name. `needed` counts names that
    readers of roots need, listed or not; `unproven` is what the roots gave no evidence of, `doubted` are files that
    would be orphans but for that.
    """

    listed: FileTotals
    live: FileTotals
    young: FileTotals
    unknown: FileTotals
    orphans: FileTotals
    by_kind: dict[str, FileTotals]
    missing: int
    resized: int
    examples: tuple[FileFault, ...]
    doubled: int = 0
    doubles: tuple[str, ...] = ()
    needed: int = 0
    unproven: tuple[Unproven, ...] = ()

    doubted: FileTotals = NO_FILES

    @property
    def not_evident(self) -> tuple[Unproven, ...]:
        """What nothing proves to be whole, and may be all that keeps one of these files from being needed."""
        return tuple(each for each in self.unproven if (self.doubted if each.kinds else self.orphans).files)


def total(counts: Sequence[SetCounts]) -> SetCounts:
    """What the parts of one look counted, together; its examples are the first of all."""
    kinds = sorted({kind for each in counts for kind in each.by_kind})
    return SetCounts(
        listed=_sum(each.listed for each in counts),
        live=_sum(each.live for each in counts),
        young=_sum(each.young for each in counts),
        unknown=_sum(each.unknown for each in counts),
        orphans=_sum(each.orphans for each in counts),
        by_kind={kind: _sum(each.by_kind.get(kind, NO_FILES) for each in counts) for kind in kinds},
        missing=sum(each.missing for each in counts),
        resized=sum(each.resized for each in counts),
        examples=tuple(sorted((example for each in counts for example in each.examples), key=str)[:EXAMPLES]),
        doubled=sum(each.doubled for each in counts),
        doubles=tuple(sorted(double for each in counts for double in each.doubles)[:EXAMPLES]),
        needed=sum(each.needed for each in counts),
        unproven=tuple(dict.fromkeys(reason for each in counts for reason in each.unproven)),
        doubted=_sum(each.doubted for each in counts),
    )


def _sum(tallies: Iterable[FileTotals]) -> FileTotals:
    return sum(tallies, NO_FILES)


class Witness:
    """What roots told of themselves beside files: gathered over one look, compared root by root."""

    def __init__(self) -> None:
        self._unproven: dict[Unproven, None] = {}
        self._names: dict[str, str] = {}

    @property
    def unproven(self) -> tuple[Unproven, ...]:
        return tuple(self._unproven)

    @property
    def doubted(self) -> frozenset[str]:
        """Kinds of files that are left alone."""
        return frozenset().union(*(each.kinds for each in self._unproven))

    def hear(self, reach: Reach) -> None:
        """Raises EvidenceError where two metadata files have one content: one of them was lost under a copy."""
        self._unproven |= dict.fromkeys(reach.unproven)
        for name, digest in reach.contents:
            other = self._names.setdefault(digest, name)
            if other != name:
                raise EvidenceError(name, "content of its own", f"that of {other}")


class TooManyNames(Exception):
    """More names than these sets can hold; nothing was decided."""


class Sets(Protocol):
    """One look at one table. Candidates first, live names after them, then the difference."""

    def list(self, territory: TableFiles) -> None:
        """Candidates are the files of the territory; they are listed once, now."""

    def reached(self, table: Sweeps, roots: Sequence[Root]) -> None:
        """Candidates are what these roots reach, inside of the territory, and that the store still has."""

    def live(self, table: Sweeps, roots: Sequence[Root], *, expected: bool) -> None:
        """Add what `roots` reach to the live names. `expected`: they were there before the listing began."""

    def settle(self, *, cutoff_ms: int | None, named: tuple[str, ...] = ()) -> SetCounts:
        """The difference: candidates modified before `cutoff_ms` (None: whenever) and not live; `named`: only those
        whose name contains one of these. May be called again, after more names became live."""

    def orphans(self) -> Iterator[pa.RecordBatch]:
        """ORPHANS as settled, by name; may be called again."""

    def close(self) -> None: ...
