"""A policy file -> the same with the places of tables that are named by a metastore, as it has them now."""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.errors import NightkeepError, Unreachable
from nightkeep.model import Address
from nightkeep.policy import PolicyFile, UnusableTable
from nightkeep.policy.address import metastore_address


def located_all(policy: PolicyFile) -> PolicyFile:
    """The policy file with the places of all tables that it lists. A name without a table of its format is a fault.

    Names stay where a metastore does not answer: such a table cannot be opened, and fails by name."""
    return _located(policy, [each.address for each in policy.tables])


def located_some(policy: PolicyFile, names: Sequence[str]) -> PolicyFile:
    """As `located_all`, for tables with these names or addresses alone, whether the file lists them or not."""
    addressed = [address for address in map(metastore_address, names) if address is not None]
    places = {each.location for each in addressed}
    listed = [each.address for each in policy.tables if each.name in names or each.address.location in places]
    return _located(policy, [*listed, *addressed])


def _located(policy: PolicyFile, asked: Sequence[Address]) -> PolicyFile:
    """Each table is asked for once, whether an entry or an address names it."""
    named = {str(each): each for each in asked if metastore_address(str(each)) and str(each) not in policy.located}
    if not named:
        return policy
    from nightkeep.metastores.locating import located as located_table  # noqa: PLC0415 -- clients of metastores

    located, faults = dict[str, str](), dict[str, str]()
    for text, address in named.items():
        try:
            located[text] = located_table(address).location
        except Unreachable:
            # Not a fault of the policy: the run of the table asks again, and reports it.
            continue
        except NightkeepError as failure:
            faults[text] = str(failure)
    listed = {str(each.address): each.name for each in policy.tables}
    unknown = [
        UnusableTable(listed.get(text, text), named[text].format, fault, named[text]) for text, fault in faults.items()
    ]
    return policy.with_locations(located, unknown)
