"""Columns that a policy names for its check, and those of a table -> RefusedTable for one that the table has not."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from nightkeep.errors import RefusedTable
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenTable, Snapshot


def require_expected_columns(policy: EffectivePolicy, table: OpenTable, base: Snapshot) -> None:
    """Only the table has its columns, so that an unknown one is found when it is planned and not in the policy."""
    named = [*_named(policy)]
    if not named or table.reading is None:
        return
    names = table.reading.columns(base).names
    for place, column in named:
        if column not in names:
            nearest = difflib.get_close_matches(column, names, n=1)
            raise RefusedTable(
                policy.address.name,
                f"{place}: expected a column of the table, found {column!r}",
                f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(names)}",
            )


def _named(policy: EffectivePolicy) -> Iterator[tuple[str, str]]:
    """Columns, each with the place in the policy that names it."""
    yield from (("check.keys", column) for column in policy.settings.check.keys)
    asked = policy.own_request(())
    for each in () if asked is None else asked.expectations:
        for argument, columns in each.columns.items():
            yield from ((each.places.get(argument, each.name), column) for column in columns)
