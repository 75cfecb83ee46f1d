"""Expectations that a team has of the rows of its tables, as the policy writes them. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nightkeep.model import Address
from nightkeep.model.check_values import Evidence


class Severity(StrEnum):
    """Great Expectations' own."""

    CRITICAL = "critical"
    """A failure holds the table."""
    WARNING = "warning"
    """A failure is reported."""
    INFO = "info"
    """A failure is reported."""


class ExpectedOn(StrEnum):
    """The rows that expectations are asked of."""

    ALL = "all"
    CHANGED = "changed"
    """Those of the partitions, or buckets, that the commit changed."""


@dataclass(frozen=True, slots=True)
class OwnExpectation:
    """One expectation: Great Expectations' type and its arguments. `places`: where the policy writes it, by argument,
    and as a whole under an empty name."""

    type: str
    kwargs: Mapping[str, object]
    severity: Severity = Severity.CRITICAL
    description: str | None = None
    places: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """What results call it."""
        arguments = ", ".join(f"{name}={value!r:.80}" for name, value in self.kwargs.items())
        return self.description or f"{self.type}({arguments})"

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The columns that must be there for it to be asked, by argument."""
        if self.type in _ASKED_OF_COLUMNS:
            return {}
        named = {name: self.kwargs[name] for name in _OF_COLUMNS if name in self.kwargs}
        return {
            name: tuple(map(str, value)) if isinstance(value, list | tuple) else (str(value),)
            for name, value in named.items()
        }

    def __str__(self) -> str:
        return f"{self.severity} {self.name}"


_OF_COLUMNS = ("column", "column_A", "column_B", "column_list")
_ASKED_OF_COLUMNS = frozenset(
    {"expect_column_to_exist", "expect_table_columns_to_match_ordered_list", "expect_table_columns_to_match_set"}
)
"""Those that fail, as is asked of them, where a column is not there."""


@dataclass(frozen=True, slots=True)
class OwnRequest:
    """Which expectations to ask of which version.

    `commits`: version and parent of each commit of the run, oldest first; the last version is asked. A parent that is
    None is looked up; so is the latest version, without any commit.
    """

    address: Address
    expectations: tuple[OwnExpectation, ...]
    commits: tuple[tuple[int, int | None], ...] = ()
    on: ExpectedOn = ExpectedOn.ALL
    evidence: Evidence = Evidence.KEYS
