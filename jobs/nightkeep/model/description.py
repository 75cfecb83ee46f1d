"""What a table states of itself, whatever its version: its id, its properties, and who else manages it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TableDescription:
    """`id` stays when the table is renamed; None for a format without one.

    `managers` are sentences on services that compact or expire the table as well, each with the sign of it.
    """

    id: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    managers: tuple[str, ...] = ()


def is_on(properties: Mapping[str, str], name: str) -> bool:
    """Whether a property is set to anything but false. Engines spell true in several ways."""
    return properties.get(name, "false").strip().lower() not in ("false", "")
