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
    return replace(rows, n=None, m=None)
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
        ("change", 20, "replace(rows, n=None, m=None)", "replace(rows, m=None)"),
        ("change", 20, "replace(rows, n=None, m=None)", "replace(rows, n=None)"),
    ]


def test_a_mutant_tells_that_it_was_reached(found: list[Mutant]) -> None:
    for mutant in found:
        tree = mutated(mutant, "reached.append(True)")
        changed = ast.unparse(tree)
        assert changed.count("reached.append(True)") == 1
        assert mutant.now in changed
        called = next(
            node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in mutant.function
        )
        assert ast.unparse(called.body[0]) == "reached.append(True)"
