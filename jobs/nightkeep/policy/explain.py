"""EffectivePolicy -> the text of `nightkeep explain TABLE`: every value, and where it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nightkeep.model import Clustering
from nightkeep.policy.effective import EffectivePolicy, flat
from nightkeep.policy.units import format_duration, format_size

# Every other whole number among the settings is a size.
_NUMBERS: Mapping[str, Callable[[int], str]] = {
    "sweep.older_than": format_duration,
    "sweep.purge_after": format_duration,
    "expire.older_than": format_duration,
    "expire.retain_last": str,
}


def explain_text(policy: EffectivePolicy) -> str:
    """Aligned columns: setting, value, origin. Ends without a newline."""
    rows = [("setting", "value", "from", "layer")]
    for key, value in flat(policy.settings).items():
        origin = policy.origins[key]
        place = "" if origin.file is None else f"{origin.file}:{origin.line}"
        rows.append((key, _shown(key, value), place, origin.layer))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[3]]) for row in rows]
    return "\n".join([f"{policy.address.name}  {policy.address}", "", *lines])


def _shown(key: str, value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return str(value).lower()
        case int():
            return _NUMBERS.get(key, format_size)(value)
        case tuple():
            return ", ".join(map(str, value))
        case Clustering():
            return f"{value} ({value.range_ids} range ids{', with noise' if value.noise else ''})"
        case _:
            return str(value)
