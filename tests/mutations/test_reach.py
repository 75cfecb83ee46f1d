"""Which tests reach a line: those that run it, and those that ask for a shared fixture that ran it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHANGED = """
def kept(number):
    if number > 1:
        return "many"
    return "few"
"""
TESTS = """
import pytest
from changed import kept

@pytest.fixture(scope="module")
def many():
    return kept(2)

def test_many(many):
    assert many == "many"

def test_many_again(many):
    assert many == "many"

def test_few():
    assert kept(1) == "few"

def test_failing():
    assert kept(1) == "many"

def test_nothing():
    pass
"""
RUN = """
import json
from pathlib import Path
import pytest
from tests.mutations.reach import ReachedLines

class Told:
    def pytest_runtestloop(self, session):
        lines = ReachedLines([Path("changed.py")])
        session.config.pluginmanager.register(lines)
        reach = lines.run(session)
        tests = {n: reach.of(Path("changed.py"), range(n, n + 1)) for n in range(1, 6)}
        found = {n: sorted(session.items[at].name for at in places) for n, places in tests.items()}
        Path("found.json").write_text(json.dumps(found))
        return True

pytest.main(["-q", "-p", "no:cacheprovider", "test_it.py"], plugins=[Told()])
"""


@pytest.mark.slow
def test_lines_are_reached_by_those_that_run_them_or_share_a_fixture_that_does(tmp_path: Path) -> None:
    for name, text in (("changed.py", CHANGED), ("test_it.py", TESTS)):
        (tmp_path / name).write_text(text)
    here = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), here])}
    subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, env=environment, check=True, stdout=subprocess.DEVNULL)
    every = ["test_few", "test_many", "test_many_again"]
    assert json.loads((tmp_path / "found.json").read_text()) == {
        "1": [],
        "2": [],
        "3": every,
        "4": ["test_many", "test_many_again"],
        "5": ["test_few"],
    }
