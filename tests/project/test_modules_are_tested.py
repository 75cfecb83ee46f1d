"""Modules that decide about rows and files, and which test module imports each."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECIDES = re.compile(r"nightkeep\.((kernels|stages|clustering|gate)|formats\.\w+\.(gate|rewrite))\.\w+")

# Trees of all tests would take seconds.
IMPORT = re.compile(r"^from (nightkeep[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)

WITHOUT_A_TEST = {
    "nightkeep.formats.delta.rewrite.tuning": "Constants.",
    "nightkeep.formats.delta.rewrite.rewrite": "Hands each task to the module that does it.",
    "nightkeep.formats.iceberg.gate.gate": "A record of functions; test_contract.py calls each through a table.",
    "nightkeep.formats.memory.gate.gate": "A record of functions; test_contract.py calls each through a table.",
    "nightkeep.formats.iceberg.rewrite.rewrite": "Hands each task to the module that does it.",
    "nightkeep.formats.iceberg.rewrite.manifest_work": "test_optimize.py plans through the table.",
}
"""Modules that no test imports, each with the reason."""


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "jobs").with_suffix("").parts)


MODULES = {
    name
    for path in (ROOT / "jobs/nightkeep").rglob("*.py")
    if DECIDES.fullmatch(name := module_name(path)) and path.stem != "__init__"
}


@cache
def imported_by_tests() -> frozenset[str]:
    """Names that test modules import; what support code imports is not tested by that."""
    found = set[str]()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for package, names in IMPORT.findall(path.read_text(encoding="utf-8")):
            found |= {package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))}
    return frozenset(found)


def mirrored(name: str) -> Path:
    """Where a test module of this module's name is, which may run it through the tables of its format."""
    *room, module = name.split(".")[1:]
    return ROOT.joinpath("tests", *room, f"test_{module}.py")


def is_tested(name: str) -> bool:
    return name in imported_by_tests() or mirrored(name).is_file()


@pytest.mark.parametrize("name", sorted(MODULES - WITHOUT_A_TEST.keys()))
def test_a_module_that_decides_has_a_test(name: str) -> None:
    assert is_tested(name), f"{name}: expected {mirrored(name).relative_to(ROOT)}, or another test that imports it"


def test_the_exceptions_are_still_needed() -> None:
    assert WITHOUT_A_TEST.keys() <= MODULES
    assert not [name for name in WITHOUT_A_TEST if is_tested(name)]
