"""EffectivePolicy -> the text of `nightkeep explain TABLE`: every value with its origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nightkeep.model import Clustering
from nightkeep.model.own_expectations import OwnExpectation
from nightkeep.policy.effective import EffectivePolicy
from nightkeep.policy.layers import flat
from nightkeep.policy.units import format_duration, format_size

# How whole numbers are printed. Every other whole number among the settings is a size.
_NUMBERS: Mapping[str, Callable[[int], str]] = {
    "sweep.older_than": format_duration,
    "sweep.purge_after": format_duration,
    "sweep.list_every": format_duration,
    "expire.older_than": format_duration,
    "expire.retain_last": str,
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting in force: its value as written in a policy, and its origin."""

    name: str
    value: str
    place: str
    layer: str


def settings_of(policy: EffectivePolicy) -> tuple[Setting, ...]:
    """Every setting in force. `place` is file and line, or empty."""
    return tuple(
        Setting(
            key, shown_value(key, value), "" if origin.file is None else f"{origin.file}:{origin.line}", origin.layer
        )
        for key, value in flat(policy.settings).items()
        for origin in (policy.origins[key],)
    )


def explain_text(policy: EffectivePolicy) -> str:
    """Aligned columns: setting, value, origin. Ends without a newline."""
    rows = [("setting", "value", "from", "layer")]
    rows += [(each.name, each.value, each.place, each.layer) for each in settings_of(policy)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[3]]) for row in rows]
    return "\n".join([f"{policy.address.name}  {policy.address}", "", *lines])


def shown_value(key: str, value: object) -> str:
    """A setting's value as people read it."""
    match value:
        case None:
            return "-"
        case bool():
            return str(value).lower()
        case int():
            return _NUMBERS.get(key, format_size)(value)
        case [OwnExpectation(), *_]:
            return f"{len(value)} expectations"
        case tuple():
            return ", ".join(map(str, value)) or "-"
        case Clustering():
            return f"{value} ({value.range_ids} range ids{', with noise' if value.noise else ''})"
        case _:
            return str(value)
