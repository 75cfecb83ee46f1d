"""The place of a table in a night that has a budget."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class NightPlace:
    """The place of a table with work in the order of a night, from 1, and whether it is taken. `reason` states why."""

    table: str
    place: int
    of: int
    taken: bool
    reason: str

    def to_json(self) -> dict[str, object]:
        return asdict(self)
