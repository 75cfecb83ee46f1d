"""The table of sabotage in docs/proof.md lists every kind that tests define, as `make sabotage` printed it."""

from pathlib import Path

from tests.sabotage.detectors import BROKEN, CAUGHT, COLUMNS, MISSED, NOT_ASKED
from tests.sabotage.kinds import every_kind
from tests.sabotage.table import lines

PAGE = Path(__file__).parents[2] / "docs/proof.md"
GATE = 2
"""The columns of the gate."""


def test_the_page_lists_every_kind_and_the_gate_catches_all() -> None:
    table = PAGE.read_text(encoding="utf-8").split("\n## Sabotage\n")[1]
    rows = [[cell.strip() for cell in row.split(" | ")] for row in table.splitlines() if row.startswith("| ")]
    marks = [tuple(cell.rstrip(" |") for cell in row[1:]) for row in rows[1:-1] if not row[0].startswith("| **")]
    kinds = every_kind()
    assert len(marks) == len(kinds)
    assert all(set(found) <= {CAUGHT, BROKEN, MISSED, NOT_ASKED} for found in marks)
    assert all(found[:GATE] == (CAUGHT, CAUGHT) for found in marks)
    assert [row[0] for row in rows] == [
        line.split(" | ")[0] for line in lines(dict(zip(kinds, marks, strict=True))) if line.startswith("| ")
    ]
    assert len(rows[0]) == len(COLUMNS) + 1


def test_a_kind_has_a_name_of_its_own() -> None:
    kinds = every_kind()
    assert len({(kind.group, kind.name) for kind in kinds}) == len(kinds) > 200
