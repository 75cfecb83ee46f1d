"""Edges between rooms -> the tables of docs/architecture.md. `python -m tests.support.rooms_page` writes them anew.

What is in a room is said on the page, by hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.project.test_architecture import EDGES, FORMAT_EDGES, PAGE, room_rows

SECTIONS = {"The rooms": EDGES, "The rooms of a format": FORMAT_EDGES}


def written(section: str, edges: Mapping[str, str]) -> str:
    """The section with a row for each room: rows that are there keep their place and their description."""
    rows = room_rows(section)
    names = [*(room for room in rows if room in edges), *(room for room in edges if room not in rows)]
    lines = []
    for room in names:
        allowed = ", ".join(f"`{each}`" for each in sorted(edges[room].split())) or "nothing"
        lines.append(f"| `{room}` | {rows[room][0] if room in rows else ''} | {allowed} |\n")
    return re.sub(r"(?:^\| `\w+` \|.*\n)+", lambda _: "".join(lines), section, count=1, flags=re.MULTILINE)


def main(page: Path = PAGE) -> None:
    text = page.read_text(encoding="utf-8")
    for heading, edges in SECTIONS.items():
        before, after = text.split(f"\n## {heading}\n")
        section, *more = re.split(r"(?=\n## )", after)
        text = "".join([before, f"\n## {heading}\n", written(section, edges), *more])
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
