"""A policy with budgets -> the order of a night, as a file that the night's jobs read, and that of audits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from nightkeep.groups.night_plan import budgets_of, night_order
from nightkeep.groups.read_tables import statuses
from nightkeep.model.night import NightPlace
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
    return in_places(policy, {each.table: each for each in places})


def in_places(policy: PolicyFile, places: Mapping[str, NightPlace]) -> PolicyFile:
    """The policy with its tables in their places. Tables without work have none, and cost next to nothing, wherever
    they are."""
    last = len(places) + 1
    ranks = {name: each.place for name, each in places.items()}
    return replace(policy, tables=tuple(sorted(policy.tables, key=lambda each: ranks.get(each.name, last))))


def order_audits(policy: PolicyFile, reports: str) -> PolicyFile:
    """The policy with those tables first that were not audited for longest, where audits share a budget. Opens none."""
    if policy.audit_budget is None:
        return policy
    places = {table: n for n, table in enumerate(unaudited_first(reports, [each.name for each in policy.tables]))}
    return replace(policy, tables=tuple(sorted(policy.tables, key=lambda each: places[each.name])))
