"""The table that the full form prints: a line for each fault that was survived."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.cluster.lake import Tables

HEAD = ("fault", "what happened", "published once", "rows equal", "leftovers", "rerun", "seconds")


@dataclass(frozen=True)
class Line:
    """A fault that was survived. `staged` are files that no version has, `results` those of a task that was killed."""

    name: str
    happened: str
    staged: int
    results: int
    seconds: float

    def cells(self, swept: bool) -> tuple[str, ...]:
        left = []
        if self.staged:
            left.append(f"{self.staged} staged file{'s' if self.staged > 1 else ''}{', swept' if swept else ''}")
        if self.results:
            left.append(f"{self.results} of a result, removed after 30 days")
        return (self.name, self.happened, "yes", "yes", "; ".join(left) or "none", "green", f"{self.seconds:.0f}")


@dataclass
class Lines:
    """What a session found. `swept`: a weekly run has removed what was left."""

    found: list[Line] = field(default_factory=list)
    tables: list[Tables] = field(default_factory=list)
    swept: bool = False

    def add(self, name: str, happened: str, tables: Tables, began: float, results: int = 0) -> None:
        self.found.append(Line(name, happened, len(tables.orphans()), results, time.monotonic() - began))

    def table(self) -> Iterator[str]:
        """As Markdown."""
        yield f"| {' | '.join(HEAD)} |"
        yield f"|{'---|' * len(HEAD)}"
        for line in self.found:
            yield f"| {' | '.join(line.cells(self.swept))} |"
