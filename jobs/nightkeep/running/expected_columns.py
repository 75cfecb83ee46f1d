"""The expectations of a policy and a table's columns -> RefusedTable for a column that the table has not."""

from __future__ import annotations

import difflib

from nightkeep.errors import RefusedTable
from nightkeep.policy import EffectivePolicy
from nightkeep.protocol import OpenTable, Snapshot


def require_expected_columns(policy: EffectivePolicy, table: OpenTable, base: Snapshot) -> None:
    """Only the table tells its columns, so that an unknown one is found when it is planned and not in the policy."""
    asked = policy.own_request(())
    if asked is None or table.reading is None:
        return
    names = table.reading.columns(base).names
    for each in asked.expectations:
        for argument, columns in each.columns.items():
            for column in columns:
                if column not in names:
                    nearest = difflib.get_close_matches(column, names, n=1)
                    place = each.places.get(argument, each.name)
                    raise RefusedTable(
                        policy.address.name, f"{place}: expected a column of the table, found {column!r}",
                        f"did you mean {nearest[0]}?" if nearest else f"it has {', '.join(names)}",
                    )  # fmt: skip
