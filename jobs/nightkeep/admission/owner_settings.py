"""A table's own properties -> what its owner asks of Nightkeep. Gentler only: never more is done, and nothing sooner.

nightkeep.pause, nightkeep.window, nightkeep.expire.older_than, nightkeep.expire.retain_last and
nightkeep.sweep.older_than are written as in tables.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.model.description import TableDescription
from nightkeep.policy import EffectivePolicy, Window, parse_duration, parse_window

PREFIX: Final = "nightkeep."


@dataclass(frozen=True, slots=True)
class OwnerSettings:
    """What the owner asks for; None for what it does not. Ages are in milliseconds."""

    pause: str | None = None
    window: Window | None = None
    expire_older_than: int | None = None
    expire_retain_last: int | None = None
    sweep_older_than: int | None = None


def owner_of(policy: EffectivePolicy, description: TableDescription) -> OwnerSettings:
    """What the owner asks for, of a table that is to be changed. Raises RefusedTable as `owner_settings`, and if
    another service compacts or expires the table as well, unless the policy knows it."""
    if description.managers and policy.settings.other_managers == "unknown":
        raise RefusedTable(
            policy.address.name,
            f"it is managed by {' and '.join(description.managers)} as well",
            "turn that off, or set other_managers: known in the policy",
        )
    return owner_settings(policy, description)


def owner_settings(policy: EffectivePolicy, description: TableDescription) -> OwnerSettings:
    """Raises RefusedTable for a property that cannot be understood, and for an unknown one: it may restrict runs."""
    name, found = policy.address.name, dict[str, object]()
    for key, text in description.properties.items():
        if not key.startswith(PREFIX):
            continue
        field = key.removeprefix(PREFIX).replace(".", "_")
        if field not in _PARSERS or key != _KEYS[field]:
            known = ", ".join(_KEYS.values())
            raise RefusedTable(name, f"its property {key} is not known", f"set one of {known}, or remove it")
        try:
            found[field] = _PARSERS[field](text)
        except ValueError as failure:
            feature = f"its property {key}: expected {failure.args[0]}, found {text!r}"
            raise RefusedTable(name, feature, "correct or remove the property") from failure
    return OwnerSettings(**found)  # type: ignore[arg-type]


def longest(*values: int | None) -> int | None:
    """The largest of the values that are set."""
    return max((value for value in values if value is not None), default=None)


def _pause(text: str) -> str | None:
    return None if text.strip().lower() == "false" else text.strip() or "no reason given"


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise ValueError("a whole number, at least 1")
    return int(text)


_PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "pause": _pause,
    "window": parse_window,
    "expire_older_than": parse_duration,
    "expire_retain_last": _count,
    "sweep_older_than": parse_duration,
}
_KEYS: Final = {field.name: PREFIX + field.name.replace("_", ".", 1) for field in fields(OwnerSettings)}
