"""metrics.extra -> what each column of a table gained or lost by the new order of its rows. Pure; knows no HTML.

    skipping  {column: {"before": share, "after": share}}   files that a query of 1 % of the column's range skips
    overlap   {column: {"before": x, "after": y}}           files that hold a value of the column, on average
    delete_files  {"before": {kind: count}, "after": ...}   delete files that readers apply, of formats that have them

A document may hold anything under these names: what is neither is not shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SHOWN = ("skipping", "overlap")


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """A figure before and after, None where it was not measured."""

    before: float | None
    after: float | None

    @property
    def gain(self) -> float:
        return 0.0 if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """Both figures of one column, None where the document has none."""

    column: str
    skipping: BeforeAfter | None
    overlap: BeforeAfter | None

    @property
    def loses(self) -> bool:
        """Whether queries on the column read more than before: as far as people see it, in whole percents."""
        if self.skipping is not None:
            return round(self.skipping.gain, 2) < 0
        return self.overlap is not None and round(self.overlap.gain, 1) > 0


def column_changes(extra: Mapping[str, object]) -> tuple[ColumnChange, ...]:
    """One for each column that either figure names, in the order they are named."""
    skipping, overlap = (_changes(extra.get(name)) for name in SHOWN)
    return tuple(ColumnChange(name, skipping.get(name), overlap.get(name)) for name in {**skipping, **overlap})


def delete_files(extra: Mapping[str, object]) -> str:
    """`equality 32 -> 0, position 32 -> 40`: the kinds of which there were or are any; empty for no such figure."""
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
    """`ts, note`: the columns that lose."""
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
