"""A policy in force and the table's format -> PolicyError for a setting that could never have an effect.

Layers do not know the format of the tables that they are for, so this is checked once they are merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from nightkeep.errors import PolicyError
from nightkeep.model import Address, Operation
from nightkeep.model.sweep_rules import floor_ms
from nightkeep.policy.layers import Origin
from nightkeep.policy.settings import Settings, suited
from nightkeep.policy.units import format_duration
from nightkeep.policy.when import METRICS, could_hold

HANDLED: Final[Mapping[str, tuple[Operation, ...]]] = MappingProxyType(
    {
        "paimon": (Operation.UPGRADE, Operation.OPTIMIZE, Operation.AUDIT),
        "delta": (Operation.PERSIST_DELETES, Operation.OPTIMIZE, Operation.AUDIT),
        "iceberg": (Operation.PERSIST_DELETES, Operation.OPTIMIZE, Operation.AUDIT),
    }
)
"""Every operation that a policy can ask for of a format's tables."""

_EQUALITY: Final = frozenset({"equality_files", "equality_deletes"})
_LEVELS: Final = frozenset({"level0_files", "level0_bytes", "level0_rows", "level0_age_ms", "sorted_runs"})
MISSING_METRICS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"paimon": _EQUALITY, "delta": _EQUALITY | _LEVELS | {"manifests"}, "iceberg": _LEVELS}
)
"""Metrics that no table of a format has."""


def require_fit(address: Address, settings: Settings, origins: Mapping[str, Origin]) -> None:
    """Raises PolicyError with a line per setting that does not fit the table's format."""
    faults = [
        f"{origins[key].file}:{origins[key].line}: {key}: {fault}"
        for key, fault in (
            ("sweep.older_than", _young(address, settings)),
            ("operations", _unhandled(address, settings, origins["operations"])),
            ("when", _never(address, settings, origins["when"])),
            ("respec", _without_specs(address, settings, origins["respec"])),
        )
        if fault is not None
    ]
    if faults:
        raise PolicyError("\n".join(faults))


def metrics_of_format(table_format: str) -> frozenset[str]:
    """The metrics that tables of a format may have."""
    return frozenset(METRICS) - MISSING_METRICS.get(table_format, frozenset())


def _young(address: Address, settings: Settings) -> str | None:
    floor, age = floor_ms(address.format), settings.sweep.older_than
    if age >= floor:
        return None
    return f"expected at least {format_duration(floor)} for {_table(address)}, found {format_duration(age)}"


def _unhandled(address: Address, settings: Settings, origin: Origin) -> str | None:
    """A fault for operations that the format has not. A layer for tables of several formats may name some of them."""
    handled, asked = HANDLED.get(address.format), settings.operations
    if handled is None or asked is None:
        return None
    other = [each for each in asked if each not in handled]
    if not other or (len(other) < len(asked) and not _is_own(origin)):
        return None
    return f"expected operations for {_table(address)} ({_listed(handled)}), found {_listed(other)}"


def _without_specs(address: Address, settings: Settings, origin: Origin) -> str | None:
    """A fault for moves between partition specs, which Iceberg alone has. A layer may be for tables of all formats."""
    if not settings.respec or address.format == "iceberg" or not (_is_own(origin) or origin.file is None):
        return None
    return f"expected a table of iceberg, which has partition specs, found {_table(address)}"


def _never(address: Address, settings: Settings, origin: Origin) -> str | None:
    """A fault for a condition that no health of a table of this format fulfils, and for one of no operation of it."""
    if settings.when is None or origin.file is None:
        return None
    operations = settings.operations or suited(address.format)
    named = [operation for operation, _ in settings.when.operations]
    if named and _is_own(origin) and not set(named) <= set(operations):
        return f"expected operations that are run on {_table(address)} ({_listed(operations)}), found {_listed(named)}"
    known = metrics_of_format(address.format)
    for operation in map(Operation, operations):
        condition = settings.when.of(operation)
        if condition is not None and not could_hold(condition, known):
            return f"expected metrics for {_table(address)}, found {condition}, which never holds for this format"
    return None


def _is_own(origin: Origin) -> bool:
    """Whether a value is from the table's own entry."""
    return origin.layer.startswith("table ")


def _table(address: Address) -> str:
    return f"{address.name}, a table of {address.format}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
