"""Each worker begins with the files of its engine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = """\
import os, pathlib, pytest

@pytest.fixture(scope="session")
def {fixture}():
    pass

@pytest.mark.parametrize("n", range(4))
def test_engine({fixture}, n):
    with pathlib.Path("ran").open("a") as ran:
        ran.write(f"{fixture} {{os.environ['PYTEST_XDIST_WORKER']}}\\n")
"""
ENGINES = {"delta_spark": "gw0", "iceberg_java": "gw1", "airflow_database": "gw2"}


CONFTEST = """\
from tests.support.options import pytest_addoption
from tests.support.workers import pytest_collection_modifyitems, pytest_xdist_make_scheduler
"""


@pytest.mark.slow
def test_each_engine_begins_in_a_worker_of_its_own_and_the_third_starts_none(tmp_path: Path) -> None:
    for fixture in ENGINES:
        for number in range(3):
            (tmp_path / f"test_{fixture}_{number}.py").write_text(ENGINE.format(fixture=fixture))
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    options = ("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "-q", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert len(ran) == 9 * 4
    assert ENGINES.items() <= {(name, worker) for name, worker in ran}
    assert {name for name, worker in ran if worker == "gw2"} == {"airflow_database"}
