"""Mutants of a function: each differs by one thing, messages and what is outside of functions stay."""

import ast
from pathlib import Path

import pytest
from tests.mutations.code_changes import Mutant, mutants, mutated

SOURCE = '''
"""Not 1 of the module."""
LIMIT = 1

class Kept:
    """Not 1 of the class."""
    size: int = 1

    def keep(self, rows: list[int], *, most: int = 1) -> list[int]:
        """Not 1 of the function."""
        if len(rows) > 7 and rows:
            raise ValueError(f"{len(rows) + 1}")
        return [row for row in rows if row]

def change(rows, other):
    def inner(row):
        return not row
    rows += other
    rows.clear()
    tell(reason=rows > other, text=rows or "no rows")
    return replace(rows, n=None, m=None)

def record(size):
    return {"size": size, **(size | max(
        size))}

def _reason(size):
    return "none" if size > 3 else f"{size}"
'''


@pytest.fixture
def found(tmp_path: Path) -> list[Mutant]:
    file = tmp_path / "module.py"
    file.write_text(SOURCE)
    return list(mutants(file))


def test_what_is_changed(found: list[Mutant]) -> None:
    assert [(each.function, each.line, each.was, each.now) for each in found] == [
        ("Kept.keep", 11, "len(rows) > 7 and rows", "len(rows) > 7 or rows"),
        ("Kept.keep", 11, "len(rows) > 7", "len(rows) >= 7"),
        ("Kept.keep", 11, "7", "8"),
        ("Kept.keep", 13, "for row in rows if row", "for row in rows"),
        ("change", 17, "not row", "row"),
        ("change", 18, "rows += other", "pass"),
        ("change", 19, "rows.clear()", "pass"),
        ("change", 20, "tell(reason=rows > other, text=rows or 'no rows')", "pass"),
        ("change", 21, "replace(rows, n=None, m=None)", "replace(rows, m=None)"),
        ("change", 21, "replace(rows, n=None, m=None)", "replace(rows, n=None)"),
        ("record", 24, "{'size': size, **size | max(size)}", "{**size | max(size)}"),
        ("record", 24, "size | max(size)", "size"),
        ("record", 24, "size | max(size)", "max(size)"),
        ("record", 24, "max(size)", "min(size)"),
    ]
    assert {each.lines for each in found if each.function == "record"} == {range(24, 26)}
    assert {each.lines for each in found if each.line == 11} == {range(11, 12)}, "of the condition alone"


def test_a_mutant_differs_by_its_change_alone(found: list[Mutant]) -> None:
    for mutant in found:
        before, after = (ast.unparse(tree).splitlines() for tree in (ast.parse(SOURCE), mutated(mutant)))
        assert len(before) == len(after)
        ((old, new),) = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
        assert mutant.was in old and mutant.now in new
