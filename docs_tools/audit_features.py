"""Features that no operation handles -> the table in docs/audit.md of what audits read of such tables.

`make feature-pages` writes it into the page, after its mark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docs_tools.paimon_features import EXAMPLES, Example, refusal

from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.metadata.features import FEATURES as DELTA
from nightkeep.formats.delta.metadata.features import DeltaFeature
from nightkeep.formats.iceberg.metadata.features import FEATURES as ICEBERG
from nightkeep.formats.paimon.reading.versions import refuse_unreadable
from nightkeep.model import Address

PAGE: Final = Path(__file__).parents[1] / "docs/audit.md"
MARK: Final = "<!-- From here on printed by `make feature-pages`. -->\n"
_HEAD: Final = """
| format | a table with | its rows |
|---|---|---|"""
_READ, _UNREAD = "compared", "not provable"
_OF_READERS: Final = f"{_UNREAD} where `readerFeatures` lists it, else {_READ}"


def document(page: str) -> str:
    """The page with the table of now. Raises ValueError for one without its mark."""
    before, mark, _ = page.partition(MARK)
    if not mark:
        raise ValueError(f"{PAGE.name}: expected the line {MARK.strip()}, found none")
    return f"{before}{mark}{_HEAD}\n" + "".join(f"| {kind} | {name} | {rows} |\n" for kind, name, rows in _lines())


def _lines() -> Iterator[tuple[str, str, str]]:
    """Format, feature, and what becomes of the rows of a table with it: those that are read first for each format."""
    paimon = {
        refused.feature.replace(" is not handled", "").replace(" are not handled", ""): _READ
        if is_readable(example)
        else _UNREAD
        for example in EXAMPLES
        if (refused := refusal(example)) is not None
    }
    delta = {f"`{name}` {known.where}".strip(): _of_delta(known) for name, known in DELTA.items() if known.refused}
    iceberg = {name: _READ if known.of_writers else _UNREAD for name, known in ICEBERG.items() if known.refused}
    for kind, features in (("Delta", delta), ("Iceberg", iceberg), ("Paimon", paimon)):
        for name, rows in sorted(features.items(), key=lambda item: (item[1], item[0].casefold())):
            yield kind, name, rows


def _of_delta(known: DeltaFeature) -> str:
    return _UNREAD if known.moves_commits else _OF_READERS


def is_readable(example: Example) -> bool:
    """Whether a reader of ours handles a table that no operation handles."""
    try:
        refuse_unreadable(Address("paimon", "/t", "t"), example.schema())
    except RefusedTable:
        return False
    return True


if __name__ == "__main__":
    sys.stdout.write(document(PAGE.read_text(encoding="utf-8")))
