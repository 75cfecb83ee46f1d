"""Candidates for removal and live files -> the difference. Either set may be too large for one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from nightkeep.errors import EvidenceError
from nightkeep.protocol.table_files import OpenFiles, OpenRoot, Reach, SomeSource, TableFiles, Unproven

_FIELDS: tuple[pa.Field[Any], ...] = (
    pa.field("name", pa.string(), nullable=False),
    pa.field("bytes", pa.int64(), nullable=False),
    pa.field("modified_ms", pa.int64(), nullable=False),
    pa.field("kind", pa.string(), nullable=False),
)
ORPHANS = pa.schema(_FIELDS)


@dataclass(frozen=True, slots=True)
class FileTotals:
    """A number of files, and their bytes."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: FileTotals) -> FileTotals:
        return FileTotals(self.files + other.files, self.bytes + other.bytes)


NO_FILES = FileTotals()
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class FileFault:
    """A needed file that is missing or has another size. `stated`: bytes by metadata, None if not stated there.
    `found`: bytes by the listing, None for a missing file."""

    name: str
    stated: int | None
    found: int | None

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.name} is not there"
        return f"{self.name} has {self.found} bytes, metadata states {self.stated}"


@dataclass(frozen=True, slots=True)
class SetCounts:
    """The counts of one survey. A listed file is live, young, unknown (of no recognized kind), doubted, or an orphan.

    Files in quarantine and in other tables' folders are not counted. If only some names were asked for, orphans with
    other names count as `listed` only.

    `missing`: files that a reader needs and that were not listed, although their root existed before the listing.
    `resized`: files whose size differs from metadata. `examples` names some of both.
    `doubled`: orphans that may be a live file under another name: one with the same last component and size, not listed
    itself. `doubles` names some of them, with that name.
    `needed`: names that readers of roots need, listed or not.
    `unproven`: the lists for which the roots gave no evidence. `doubted`: files that are no orphans only because of it.
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
        """The unproven lists that matter here: a complete one might name one of these files."""
        return tuple(reason for reason in self.unproven if (self.doubted if reason.kinds else self.orphans).files)


def total(counts: Sequence[SetCounts]) -> SetCounts:
    """The sum of the counts of all parts of a survey. Its examples are the first of all examples."""
    kinds = sorted({kind for part in counts for kind in part.by_kind})
    return SetCounts(
        listed=_sum(part.listed for part in counts),
        live=_sum(part.live for part in counts),
        young=_sum(part.young for part in counts),
        unknown=_sum(part.unknown for part in counts),
        orphans=_sum(part.orphans for part in counts),
        by_kind={kind: _sum(part.by_kind.get(kind, NO_FILES) for part in counts) for kind in kinds},
        missing=sum(part.missing for part in counts),
        resized=sum(part.resized for part in counts),
        examples=tuple(sorted((example for part in counts for example in part.examples), key=str)[:EXAMPLES]),
        doubled=sum(part.doubled for part in counts),
        doubles=tuple(sorted(double for part in counts for double in part.doubles)[:EXAMPLES]),
        needed=sum(part.needed for part in counts),
        unproven=tuple(dict.fromkeys(reason for part in counts for reason in part.unproven)),
        doubted=_sum(part.doubted for part in counts),
    )


def _sum(tallies: Iterable[FileTotals]) -> FileTotals:
    return sum(tallies, NO_FILES)


class Witness:
    """What roots state besides files, collected over one survey and compared root by root."""

    def __init__(self) -> None:
        self._unproven: dict[Unproven, None] = {}
        self._names: dict[str, str] = {}

    @property
    def unproven(self) -> tuple[Unproven, ...]:
        return tuple(self._unproven)

    @property
    def doubted(self) -> frozenset[str]:
        """Kinds of files that are not removed."""
        return frozenset().union(*(reason.kinds for reason in self._unproven))

    def add(self, reach: Reach[SomeSource]) -> None:
        """Add what a root states. Raises EvidenceError if two metadata files have the same content: a copy has replaced
        one of them."""
        self._unproven |= dict.fromkeys(reach.unproven)
        for name, digest in reach.contents:
            other = self._names.setdefault(digest, name)
            if other != name:
                raise EvidenceError(name, "content of its own", f"that of {other}")


class TooManyNames(Exception):
    """There are more names than these sets can hold; nothing was decided."""


class Sets(Protocol):
    """One survey of one table: first the candidates, then the live names, then the difference."""

    def list(self, table_files: TableFiles) -> None:
        """Make all files of the table_files candidates. Lists them once, now."""

    def reached(self, table: OpenFiles, roots: Sequence[OpenRoot]) -> None:
        """Make the files that these roots reach candidates, if they are in the table_files and still exist."""

    def live(self, table: OpenFiles, roots: Sequence[OpenRoot], *, expected: bool) -> None:
        """Add the files that `roots` reach to the live names. `expected`: the roots existed before the listing."""

    def settle(self, *, cutoff_ms: int | None, named: tuple[str, ...] = ()) -> SetCounts:
        """Compute the difference: candidates that are not live and were modified before `cutoff_ms` (None: any time).

        With `named`, only candidates whose name contains one of these texts count. May be called again after more live
        names.
        """

    def orphans(self) -> Iterator[pa.RecordBatch]:
        """The orphans of the last `settle` (schema ORPHANS), sorted by name. May be called again."""

    def close(self) -> None: ...
