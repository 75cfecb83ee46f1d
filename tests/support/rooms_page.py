"""Edges between rooms -> the tables of docs/architecture.md. `python -m tests.support.rooms_page` writes them anew.

A room imports only rooms of rows below its own, so that no arrow goes back up. What is in a room is said on the page,
by hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.project.test_architecture import PAGE, TABLES, room_rows


def written(section: str, edges: Mapping[str, str]) -> str:
    """The section with a row for each room. Rows that are there keep their description, and their place if they can."""
    rows = room_rows(section)
    names = downwards([*(room for room in rows if room in edges), *(room for room in edges if room not in rows)], edges)
    lines = []
    for room in names:
        allowed = ", ".join(f"`{each}`" for each in sorted(edges[room].split())) or "nothing"
        lines.append(f"| `{room}` | {rows[room][0] if room in rows else ''} | {allowed} |\n")
    return re.sub(r"(?:^\| `[\w/]+` \|.*\n)+", lambda _: "".join(lines), section, count=1, flags=re.MULTILINE)


def downwards(names: Sequence[str], edges: Mapping[str, str]) -> list[str]:
    """The names in their order, but each before all that it imports."""
    left, ordered = list(names), list[str]()
    while left:
        imported = {each for name in left for each in edges[name].split()}
        ordered.append(next(name for name in left if name not in imported))
        left.remove(ordered[-1])
    return ordered


def main(page: Path = PAGE) -> None:
    text = page.read_text(encoding="utf-8")
    for heading, edges in TABLES.items():
        before, after = text.split(f"\n## {heading}\n")
        section, *more = re.split(r"(?=\n## )", after)
        text = "".join([before, f"\n## {heading}\n", written(section, edges), *more])
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
