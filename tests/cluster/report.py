"""The table that the full form prints: a line for each fault that was survived."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.cluster.lake import Tables

HEAD = ("fault", "what happened", "published once", "rows equal", "leftovers", "rerun", "seconds")


@dataclass(frozen=True)
class Line:
    """A fault that was survived. `left` are files that no version has."""

    name: str
    happened: str
    left: Sequence[str]
    seconds: float

    def cells(self, swept: bool) -> tuple[str, ...]:
        count = len(self.left)
        files = f"{count} staged file{'s' if count > 1 else ''}{', swept' if swept else ''}" if count else "none"
        return (self.name, self.happened, "yes", "yes", files, "green", f"{self.seconds:.0f}")


@dataclass
class Lines:
    """What a session found. `swept`: a weekly run has removed what was left."""

    found: list[Line] = field(default_factory=list)
    tables: list[Tables] = field(default_factory=list)
    swept: bool = False

    def add(self, name: str, happened: str, tables: Tables, began: float) -> None:
        self.found.append(Line(name, happened, tables.orphans(), time.monotonic() - began))

    def table(self) -> Iterator[str]:
        """As Markdown."""
        yield f"| {' | '.join(HEAD)} |"
        yield f"|{'---|' * len(HEAD)}"
        for line in self.found:
            yield f"| {' | '.join(line.cells(self.swept))} |"
