"""A policy file and what was found -> a policy file of all tables. An entry of the file wins over what is found."""

from __future__ import annotations

import os
from collections.abc import Sequence

from nightkeep.discovery.find_tables import find_tables
from nightkeep.discovery.found import Found, FoundTable
from nightkeep.discovery.located_policy import located_some
from nightkeep.model import Address
from nightkeep.policy import Discovery, PolicyFile, TablePolicy, UnusableTable
from nightkeep.policy.address import is_address, is_name, same_place


def completed(policy: PolicyFile, found: Found) -> PolicyFile:
    """The policy file with the tables that were found and that it does not list, by name or by place.

    Of two tables with one name none is usable. A table that two places hold is the first one's. Places whose tables
    are not known are unusable too: they fail by name.
    """
    policy = policy.with_locations(found.located, ())
    origins = {each.name: each.origin for each in policy.discoveries}
    new = _unlisted(policy, [table for table in found.tables if table.found_in in origins])
    named: dict[str, list[FoundTable]] = {}
    for table in new:
        named.setdefault(table.name, []).append(table)
    tables = [
        TablePolicy(table.address, None, origins[table.found_in], table.found_in)
        for table in new
        if is_name(table.name) and len(named[table.name]) == 1
    ]
    unusable = [_misnamed(same) for name, same in named.items() if len(same) > 1 or not is_name(name)]
    unknown = [UnusableTable(each.name, each.format, each.why, None, each.found_in) for each in found.unlistable]
    return policy.with_tables(tables, [*unusable, *unknown])


def knowing(policy: PolicyFile, names: Sequence[str]) -> PolicyFile:
    """The policy file, with the discovered tables that may have one of these names, and with the locations of the
    tables that a metastore names.

    Nothing is listed if the file itself has all names that are no addresses.
    """
    places, located = places_for(policy, names), located_some(policy, names)
    return completed(located, find_tables(places)) if places else located


def places_for(policy: PolicyFile, names: Sequence[str]) -> tuple[Discovery, ...]:
    """Where tables with these names may be found, if the file itself does not have them."""
    known = {each.name for each in policy.tables} | {each.name for each in policy.unusable}
    asked = [name for name in names if name not in known and not is_address(name)]
    return tuple(place for place in policy.discoveries if any(place.may_name(name) for name in asked))


def _unlisted(policy: PolicyFile, found: Sequence[FoundTable]) -> list[FoundTable]:
    """Tables that the policy file does not list, each once."""
    names = {each.name for each in policy.tables} | {each.name for each in policy.unusable}
    addresses = [*(each.address for each in policy.tables), *(each.address for each in policy.unusable)]
    places = {_place(address) for address in addresses if address is not None}
    new = list[FoundTable]()
    for table in found:
        place = _place(table.address)
        if table.name not in names and place not in places:
            new.append(table)
        places.add(place)
    return new


def _place(address: Address) -> tuple[str, str]:
    """As `same_place`, also for a path through symbolic links."""
    kind, location = same_place(address)
    return (kind, os.path.realpath(location)) if location.startswith("/") else (kind, location)


def _misnamed(tables: Sequence[FoundTable]) -> UnusableTable:
    first = tables[0]
    if len(tables) == 1:
        fault = f"{first.found_in}: expected a name of one line that is no address, found {first.name!r}"
        return UnusableTable(f"{first.found_in}: {first.name!r}", first.format, fault, first.address, first.found_in)
    places = " and ".join(str(table.address) for table in tables[:2])
    fault = f"{first.name}: expected one table of this name, found {len(tables)}: {places}; set name: in discover"
    return UnusableTable(first.name, first.format, fault, None, first.found_in)
