"""Columns that identify a row, where readers merge by none -> what the check may expect of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from nightkeep.checking.unit_fingerprints import UnitFacts
from nightkeep.errors import UsageError
from nightkeep.model import UnitKey, View
from nightkeep.spark.view import TableView


@dataclass(frozen=True, slots=True)
class CountedKeys:
    """Columns that identify a row where readers merge by none, and the units in which keys are counted.

    In the other units, a second row of a key that the commit brought is found by the number of rows and their sums. One
    that a kept file had before is not.
    """

    names: tuple[str, ...]
    units: tuple[UnitKey, ...]

    def coverage(self, relation: TableView, chosen: Sequence[UnitKey]) -> str:
        """A sentence on the share of `chosen` units in which keys are counted; empty for all, and without keys."""
        are_counted = bool(self.names) or (bool(relation.keys) and relation.published is View.RAW)
        few = are_counted and len(self.units) < len(chosen)
        return f"keys counted in {len(self.units)} of {len(chosen)} units" if few else ""


def declared_keys(relation: TableView, named: Sequence[str]) -> tuple[str, ...]:
    """The columns `named` by the policy, or those that the table declares; none where readers merge by keys anyhow.

    Raises UsageError for a name that is no column of the table.
    """
    if relation.keys:
        return ()
    columns = relation.schema.fieldNames()
    for name in named:
        if name not in columns:
            raise UsageError(f"check.keys: expected columns of the table ({', '.join(columns)}), found {name!r}")
    return tuple(named) or relation.declared_keys


def distinct_keys(before: UnitFacts, after: UnitFacts) -> int | None:
    """The number of keys that the rows of a unit should be; None where rows of the version before shared keys as well:
    nothing enforces such keys, and a rewrite keeps what is there."""
    return None if _is_shared(before) else after.keys


def shared(keys: Sequence[str], facts: Collection[UnitFacts]) -> str:
    """A sentence on the units whose rows shared `keys` before; empty if there are none."""
    found = [each for each in facts if keys and _is_shared(each)]
    rows = sum(each.content.rows - (each.keys or 0) for each in found)
    return f"in {len(found)} units, {rows:,} rows repeated {', '.join(keys)} before as well" if found else ""


def _is_shared(facts: UnitFacts) -> bool:
    return facts.keys is not None and facts.keys != facts.content.rows
