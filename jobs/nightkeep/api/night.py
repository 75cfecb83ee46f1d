"""A policy with budgets -> the order of a night, as a file that the night's jobs read, and that of audits."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from nightkeep.groups.night_plan import budgets_of, night_order
from nightkeep.groups.read_tables import statuses
from nightkeep.places import write_file
from nightkeep.policy import PolicyFile
from nightkeep.records import night_path
from nightkeep.records.audit_marks import unaudited_first


def order_night(policy: PolicyFile, reports: str, prefix: str) -> PolicyFile:
    """The policy with its tables in the order of the night, which is kept for the jobs of the run with this prefix.

    Opens every table once, in child processes, without Spark. Without a budget it opens none, and the order is that of
    audits.
    """
    budgets = budgets_of(policy)
    if not budgets:
        return order_audits(policy, reports)
    places = night_order(
        statuses([policy.of_table(each) for each in policy.tables], reports, now=datetime.now(UTC)), budgets
    )
    write_file(night_path(reports, prefix), json.dumps([each.to_json() for each in places], indent=2) + "\n")
    ranks = {each.table: each.place for each in places}
    # Tables without work cost next to nothing, wherever they are.
    return replace(policy, tables=tuple(sorted(policy.tables, key=lambda each: ranks.get(each.name, len(ranks) + 1))))


def order_audits(policy: PolicyFile, reports: str) -> PolicyFile:
    """The policy with those tables first that were not audited for longest, where audits share a budget. Opens none."""
    if policy.audit_budget is None:
        return policy
    places = {table: n for n, table in enumerate(unaudited_first(reports, [each.name for each in policy.tables]))}
    return replace(policy, tables=tuple(sorted(policy.tables, key=lambda each: places[each.name])))
