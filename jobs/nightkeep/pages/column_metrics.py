"""metrics.extra -> what each column gained or lost by the new order of rows. Pure; knows no HTML.

    skipping  {column: {"before": share, "after": share}}   files that a query of 1 % of the column's range skips
    overlap   {column: {"before": x, "after": y}}           files that hold a value of the column, on average
    delete_files  {"before": {kind: count}, "after": ...}   delete files that readers apply, of formats that have them

A document may hold anything under these names; values of another form are not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightkeep.records.document import SESSION_SECONDS, Metrics

SHOWN = ("skipping", "overlap")
DRAWN = (
    "file_sizes_before",
    "file_sizes_after",
    "levels_before",
    "levels_after",
    *SHOWN,
    "delete_files",
    SESSION_SECONDS,
)
"""Figures of a document that a page shows in a form of its own."""


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """A figure before and after; None if it was not measured."""

    before: float | None
    after: float | None

    @property
    def gain(self) -> float:
        return 0.0 if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """Both figures of one column; None if the document has none."""

    column: str
    skipping: BeforeAfter | None
    overlap: BeforeAfter | None

    @property
    def loses(self) -> bool:
        """Whether queries on the column skip less, in whole percents as the page shows them, and open no fewer files.

        Of fewer files a smaller share is skipped: where fewer may hold a value than before, no reader loses."""
        opens_fewer = self.overlap is not None and round(self.overlap.gain, 1) < 0
        if self.skipping is not None:
            return round(self.skipping.gain, 2) < 0 and not opens_fewer
        return self.overlap is not None and round(self.overlap.gain, 1) > 0


def column_changes(extra: Mapping[str, object]) -> tuple[ColumnChange, ...]:
    """One value for each column that a figure names, in the order of the document."""
    skipping, overlap = (_changes(extra.get(name)) for name in SHOWN)
    return tuple(ColumnChange(name, skipping.get(name), overlap.get(name)) for name in {**skipping, **overlap})


def skipping_beside(metrics: Metrics) -> tuple[tuple[str, float, float | None], ...]:
    """Column, the share of files that was expected to be skipped, and the share that is; None if none was measured."""
    expected = {} if metrics.predicted is None else metrics.predicted.skipping
    found = _changes(metrics.extra.get("skipping"))
    return tuple((name, share, found[name].after if name in found else None) for name, share in expected.items())


def delete_files(extra: Mapping[str, object]) -> str:
    """Kinds of delete files that existed before or after: `equality 32 -> 0, position 32 -> 40`. Empty without any."""
    stored = extra.get("delete_files")
    sides = [stored.get(side) for side in ("before", "after")] if isinstance(stored, Mapping) else []
    counts = [side for side in sides if isinstance(side, Mapping)]
    if len(counts) < 2:
        return ""
    pairs = {
        str(kind): (_number(counts[0].get(kind)), _number(counts[1].get(kind))) for kind in {**counts[0], **counts[1]}
    }
    return ", ".join(
        f"{kind} {before or 0:,.0f} -> {after or 0:,.0f}" for kind, (before, after) in pairs.items() if before or after
    )


def losers(changes: Sequence[ColumnChange]) -> str:
    """The names of the columns that lose: `ts, note`."""
    return ", ".join(change.column for change in changes if change.loses)


def show_share(share: float) -> str:
    return f"{share:.0%}"


def show_overlap(files: float) -> str:
    return f"{files:,.1f}"


def _changes(value: object) -> dict[str, BeforeAfter]:
    if not isinstance(value, Mapping):
        return {}
    known = {
        str(name): BeforeAfter(_number(sides.get("before")), _number(sides.get("after")))
        for name, sides in value.items()
        if isinstance(sides, Mapping)
    }
    return {name: change for name, change in known.items() if change != BeforeAfter(None, None)}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
