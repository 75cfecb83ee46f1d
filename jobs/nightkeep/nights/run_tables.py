"""A policy -> the tables of one run. Where they are discovered, they are listed once, by the run's first task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from nightkeep.discovery import completed, find_tables, keep_found, kept_found, last_found, located_all, places_for
from nightkeep.errors import UsageError
from nightkeep.model.night import NightPlace
from nightkeep.places import is_address, is_kept, read_text
from nightkeep.policy import Discovery, PolicyFile, load_usable
from nightkeep.records import found_path, night_path


def find_all(policy: str, reports: str, prefix: str) -> PolicyFile:
    """The policy with every table that is there now, kept for the other tasks of the run with this prefix."""
    loaded = load_usable(policy)
    return _found(located_all(loaded), loaded.discoveries, reports, prefix)


def find_one(policy: str, reports: str, prefix: str, table: str) -> PolicyFile:
    """As `find_all`, but only with tables that may have this name, if the file does not list it."""
    loaded = load_usable(policy)
    return _found(loaded, places_for(loaded, (table,)), reports, prefix)


def run_policy(policy: str, reports: str, prefix: str) -> PolicyFile:
    """The policy with the tables that the run found."""
    loaded = load_usable(policy)
    try:
        return completed(loaded, kept_found(found_path(reports, prefix)))
    except FileNotFoundError:
        return loaded


def suggested(policy: str, reports: str) -> list[str]:
    """Names of tables for a form: those that the policy lists, and those that the last night found, where these are in
    local folders. A DAG file that is parsed asks no store: a store that is away, or whose credentials the DAG processor
    does not have, would leave its DAGs without a file that can be imported."""
    listed = [] if is_address(policy) else [table.name for table in load_usable(policy).tables]
    found = [table.name for table in last_found(reports, "nightly-").tables]
    return list(dict.fromkeys([*listed, *sorted(found)]))


class RunOrder(StrEnum):
    """The order of a run's tables."""

    FILE = "file"
    NIGHT = "night"
    """The worst first, where the policy has a budget: what it does not hold is kept for the jobs."""
    AUDITS = "audits"
    """Those first that were not audited for longest, where audits share a budget."""


def order_all(policy: PolicyFile, reports: str, prefix: str, order: RunOrder) -> PolicyFile:
    """The policy with its tables in the order of the run with this prefix. Opens every table for a night's budget."""
    from nightkeep.nights.orders import order_audits, order_night  # noqa: PLC0415 -- no DAG file needs what opens tables

    match order:
        case RunOrder.NIGHT:
            return order_night(policy, reports, prefix)
        case RunOrder.AUDITS:
            return order_audits(policy, reports)
    return policy


def tables_of_run(policy: str, reports: str, prefix: str, order: RunOrder) -> PolicyFile:
    """The policy with the tables of the run with this prefix, in their order. Both are looked for once: a run that goes
    on has those that it began with."""
    if is_kept(night_path(reports, prefix)):
        from nightkeep.nights.orders import in_places  # noqa: PLC0415 -- as in `order_all`

        return in_places(run_policy(policy, reports, prefix), night_places(reports, prefix))
    kept = is_kept(found_path(reports, prefix))
    found = run_policy(policy, reports, prefix) if kept else find_all(policy, reports, prefix)
    return order_all(found, reports, prefix, order)


def places_of(file: str | None) -> dict[str, NightPlace]:
    """The places of tables by name. Raises UsageError for a file that does not hold them."""
    if file is None:
        return {}
    try:
        if (text := read_text(file)) is None:
            raise FileNotFoundError(2, "no such file", file)
        places = [NightPlace(**each) for each in json.loads(text)]
    except (OSError, ValueError, TypeError) as failure:
        raise UsageError(f"--night: expected a file with the places of tables, found {failure}") from failure
    return {each.table: each for each in places}


def night_places(reports: str, prefix: str) -> dict[str, NightPlace]:
    """The places that are kept of the night with this prefix; none where it has no budget."""
    kept = night_path(reports, prefix)
    return places_of(kept) if is_kept(kept) else {}


def night_option(reports: str, prefix: str) -> list[str]:
    """The option of a job that names the order of its night, if it has one."""
    kept = night_path(reports, prefix)
    return ["--night", kept] if is_kept(kept) else []


def found_option(reports: str, prefix: str) -> list[str]:
    """The option of a job that names what the run found, if it looked for tables."""
    kept = found_path(reports, prefix)
    return ["--found", kept] if is_kept(kept) else []


def _found(loaded: PolicyFile, places: Sequence[Discovery], reports: str, prefix: str) -> PolicyFile:
    if not places:
        return loaded
    found = replace(find_tables(places), located=loaded.located)
    keep_found(reports, prefix, found)
    return completed(loaded, found)
