"""The place of a table in a night that has a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict


class NightPlaceJson(TypedDict):
    """A NightPlace as JSON holds it."""

    table: str
    place: int
    of: int
    taken: bool
    reason: str


@dataclass(frozen=True, slots=True)
class NightPlace:
    """The place of a table with work in the order of a night, from 1, and whether it is taken. `reason` states why."""

    table: str
    place: int
    of: int
    taken: bool
    reason: str

    def to_json(self) -> NightPlaceJson:
        return {"table": self.table, "place": self.place, "of": self.of, "taken": self.taken, "reason": self.reason}
