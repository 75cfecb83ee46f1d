"""The table that the full form prints: a line for each fault that was survived."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

HEAD = ("fault", "what happened", "published once", "rows equal", "leftovers", "rerun", "seconds")
Line = tuple[str, ...]


@dataclass
class Lines:
    found: list[Line] = field(default_factory=list)

    def add(self, name: str, happened: str, once: str, rows: str, left: str, again: str, began: float) -> None:
        self.found.append((name, happened, once, rows, left, again, f"{time.monotonic() - began:.0f}"))

    def table(self) -> Iterator[str]:
        """As Markdown."""
        yield f"| {' | '.join(HEAD)} |"
        yield f"|{'---|' * len(HEAD)}"
        for line in self.found:
            yield f"| {' | '.join(line)} |"
