"""What was found at the places where tables are looked for, as a value and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TypedDict

from nightkeep.model import Address


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table that is there. `found_in` is the name of the place (policy.Discovery)."""

    name: str
    format: str
    location: str
    found_in: str

    @property
    def address(self) -> Address:
        return Address(self.format, self.location, self.name)


@dataclass(frozen=True, slots=True)
class FoundOther:
    """What a place names that is no table of ours, such as a view. `kind` states what it is."""

    name: str
    kind: str
    found_in: str


@dataclass(frozen=True, slots=True)
class Unlistable:
    """A place, or a part of it, whose tables are not known, and why."""

    name: str
    format: str
    found_in: str
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    """Tables in the order of the places, what could not be listed, and what is not ours.

    `located` are places of tables that the policy names by a metastore, by their addresses.
    """

    tables: tuple[FoundTable, ...] = ()
    unlistable: tuple[Unlistable, ...] = ()
    others: tuple[FoundOther, ...] = ()
    located: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @staticmethod
    def from_json(value: FoundJson) -> Found:
        """The inverse of `to_json`. Raises KeyError or TypeError for anything else."""
        return Found(
            tuple(FoundTable(**each) for each in value["tables"]),
            tuple(Unlistable(**each) for each in value["unlistable"]),
            tuple(FoundOther(**each) for each in value["others"]),
            dict(value["located"]),
        )


class FoundJson(TypedDict):
    """A Found as JSON holds it."""

    tables: list[Mapping[str, str]]
    unlistable: list[Mapping[str, str]]
    others: list[Mapping[str, str]]
    located: Mapping[str, str]
