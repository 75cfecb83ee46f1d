"""Packages against the ranges of a wheel, whose metadata is a real one in a folder on the path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nightkeep.readiness.finding import Readiness
from nightkeep.readiness.packages import find_packages, find_python, installed_version

METADATA = """Metadata-Version: 2.4
Name: nightkeep
Version: 0.1.0
Requires-Python: {python}
Requires-Dist: polars>=1
Requires-Dist: pyarrow<1
Requires-Dist: not-installed-anywhere>=3
Requires-Dist: only-on-another-system; sys_platform == 'none'
Requires-Dist: pyspark<4,>=3.5; extra == 'spark'
Requires-Dist: pandas>=2; extra == 'spark'
"""


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The metadata of an installed wheel, found before that of this environment."""
    folder = tmp_path / "site" / "nightkeep-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(METADATA.format(python=">=3.11,<3.14"))
    monkeypatch.setattr(sys, "path", [str(folder.parent), *sys.path])
    return folder / "METADATA"


def test_each_package_out_of_its_range_is_a_row(wheel: Path) -> None:
    old, none = find_packages()
    assert (old.check, old.status, old.expected) == ("packages", Readiness.FAILED, "pyarrow<1")
    assert old.found == f"pyarrow {installed_version('pyarrow')}"
    assert (none.status, none.subject, none.found) == (Readiness.MISSING, "not-installed-anywhere", "none")
    assert none.remedy == 'pip install "nightkeep" installs it'


def test_an_extra_has_rows_of_its_own(wheel: Path) -> None:
    (spark,) = find_packages("spark")
    assert (spark.check, spark.status, spark.subject) == ("extra spark", Readiness.FAILED, "pyspark")
    assert spark.remedy == 'pip install "nightkeep[spark]" installs it'


def test_what_is_brought_along_stands_in_place_of_what_is_installed(wheel: Path) -> None:
    (found,) = find_packages("spark", {"pyspark": "3.5.8"})
    assert (found.status, found.found) == (Readiness.PASSED, "2 packages")
    (old,) = find_packages("spark", {"pyspark": "3.4.1"})
    assert (old.status, old.found) == (Readiness.FAILED, "pyspark 3.4.1")


def test_python_is_compared_with_the_range_of_the_wheel(wheel: Path) -> None:
    assert find_python().status is Readiness.PASSED
    wheel.write_text(METADATA.format(python="<3.11"))
    found = find_python()
    assert (found.status, found.expected) == (Readiness.FAILED, "Python <3.11") and found.stops_every_run


def test_a_package_that_is_only_on_the_path_states_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "brought_along").mkdir()
    (tmp_path / "brought_along/__init__.py").write_text("raise ImportError('imported')\n")
    (tmp_path / "brought_along/version.py").write_text("__version__: str = '3.5.8+vendor'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installed_version("brought-along") == "3.5.8+vendor"
    assert installed_version("not-installed-anywhere") is None
