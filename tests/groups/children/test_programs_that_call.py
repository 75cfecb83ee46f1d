"""Programs of every kind call the library, which starts processes: none of them runs the program again."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from tests.formats.delta.lake import Lake

from nightkeep.errors import UsageError
from nightkeep.groups.children.child_process import ChildProcess
from nightkeep.interpreter import interpreter
from nightkeep.other_readers.reader_process import OtherReader

SECONDS = 300
NAMES = ("one",)
SCRIPT = """\
import nightkeep
with open("ran.txt", "a") as ran:
    ran.write("ran\\n")
found = nightkeep.status(policy="tables.yaml")
print(*sorted(f"{each.name}={each.unread or each.metrics['files']:.0f}" for each in found))
"""
SWEEP = 'nightkeep.sweep("one", policy="tables.yaml")\n'
FOUND = "one=1"
NOTEBOOK = """\
import sys, __main__
del __main__.__file__, __main__.__spec__
cells, number = open(sys.argv[1]).read().split("\\n\\n"), 0
for cell in cells:
    number += 1
    exec(compile(cell, f"<ipython-input-{number}>", "exec"), vars(__main__))
"""
TASK = """\
import pendulum
from airflow.sdk import DAG, task
with DAG("calls", schedule=None, start_date=pendulum.datetime(2024, 1, 1)) as dag:
    @task
    def look():
        exec(open("script.py").read(), {"__name__": "task"})
    look()
if __name__ == "__main__":
    dag.test()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        lake = Lake(tmp_path / name, pa.schema({"id": pa.int64()}))
        lake.append(pa.table({"id": pa.array(range(10), pa.int64())}))
    tables = "".join(f'  - {{name: {name}, table: "delta:{tmp_path}/{name}"}}\n' for name in NAMES)
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables:\n{tables}")
    (tmp_path / "script.py").write_text(SCRIPT)
    # A module of this name in the working directory is the caller's as well.
    (tmp_path / "json.py").write_text("raise SystemExit('the module of the caller')\n")
    return tmp_path


def ran(folder: Path, command: Sequence[str], *, stdin: str = "", **environment: str) -> str:
    """The output of a program in the folder, which ran once."""
    environ = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run(
        command, cwd=folder, input=stdin, env=environ, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "ran.txt").read_text() == "ran\n"
    return done.stdout


@pytest.mark.slow
class TestProgramsOfPython:
    def test_a_script_without_a_guard(self, folder: Path) -> None:
        assert ran(folder, [sys.executable, "script.py"]).strip() == FOUND

    @pytest.mark.extended
    def test_a_script_that_sweeps_first(self, folder: Path) -> None:
        (folder / "script.py").write_text(SCRIPT.replace("found =", f"{SWEEP}found ="))
        assert ran(folder, [sys.executable, "script.py"]).strip() == FOUND
        assert len(list((folder / "reports").rglob("*sweep*.json"))) == 1

    @pytest.mark.extended
    def test_a_script_from_standard_input(self, folder: Path) -> None:
        assert ran(folder, [sys.executable, "-"], stdin=SCRIPT).strip() == FOUND

    def test_an_interactive_session(self, folder: Path) -> None:
        cell = SCRIPT.replace("    ran.write", "    _ = ran.write").replace("found =", "\nfound =")
        assert ran(folder, [sys.executable, "-i", "-q"], stdin=cell).strip() == FOUND

    def test_a_command(self, folder: Path) -> None:
        assert ran(folder, [sys.executable, "-c", SCRIPT]).strip() == FOUND

    @pytest.mark.extended
    def test_a_module(self, folder: Path) -> None:
        found = ran(folder, [sys.executable, "-m", "script"], PYTHONPATH=os.pathsep.join([*sys.path, str(folder)]))
        assert found.strip() == FOUND

    @pytest.mark.extended
    def test_cells_of_a_notebook(self, folder: Path) -> None:
        """As a kernel runs them: in a main module that has no file."""
        (folder / "kernel.py").write_text(NOTEBOOK)
        (folder / "cells.txt").write_text(SCRIPT.replace("found =", "\nfound ="))
        assert ran(folder, [sys.executable, "kernel.py", "cells.txt"]).strip() == FOUND

    @pytest.mark.extended
    def test_a_test_of_pytest(self, folder: Path) -> None:
        body = textwrap.indent(SCRIPT.replace("print(", f"assert '{FOUND}' == ' '.join("), "    ")
        body = body.replace("join(*sorted", "join(sorted")
        (folder / "test_caller.py").write_text(f"def test_status():\n{body}")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.", "test_caller.py"]
        assert "1 passed" in ran(folder, command)


@pytest.mark.slow
@pytest.mark.extended
def test_a_task_of_airflow(folder: Path) -> None:
    (folder / "dag.py").write_text(TASK)
    (folder / "json.py").unlink()
    home = {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
    }
    environ = {**os.environ, **home}
    airflow = str(Path(sys.executable).with_name("airflow"))
    subprocess.run([airflow, "db", "migrate"], cwd=folder, env=environ, capture_output=True, check=True, timeout=300)
    assert FOUND in ran(folder, [sys.executable, "dag.py"], **home)


class TestProgramsThatAreNoPython:
    """What `sys.executable` names would run the program again, so nothing is started."""

    @pytest.fixture(params=["frozen", "embedded", "nameless"])
    def program(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.delenv("NIGHTKEEP_PYTHON", raising=False)
        path = {"frozen": "/opt/app/app-with-python", "embedded": "/usr/sbin/uwsgi", "nameless": ""}[request.param]
        monkeypatch.setattr(sys, "executable", path)
        if request.param == "frozen":
            monkeypatch.setattr(sys, "frozen", True, raising=False)
        return path

    def test_they_are_refused_by_name_before_anything_starts(self, program: str) -> None:
        expected = r"^NIGHTKEEP_PYTHON: expected the path of a Python that has Nightkeep, as a .*program .*is none"
        for start in (ChildProcess, interpreter, lambda: OtherReader.parse("duckdb")):
            with pytest.raises(UsageError, match=expected) as raised:
                start()
            assert program in str(raised.value)

    @pytest.mark.slow
    def test_a_python_of_their_environment_reads(self, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
        python = Path(os.__file__).parents[2] / "bin/python3"
        chosen = next((str(each) for each in [Path(sys.prefix) / "bin/python", python] if each.exists()), "")
        monkeypatch.setenv("NIGHTKEEP_PYTHON", chosen)
        with ChildProcess() as apart:
            assert apart.call("t", os.getpid) != os.getpid()


@pytest.mark.slow
@pytest.mark.parametrize(
    "program, found",
    [
        ("exit 3", "found that it ended with status 3"),
        ("kill -9 $$", "found that it was ended by SIGKILL"),
        ("printf '\\0\\0\\0\\0050.0.1' >&$6; sleep 60", "found version 0.0.1"),
        ("exec sleep 60", "found no answer within 2 seconds"),
    ],
)
def test_a_python_without_this_package_is_named(
    program: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/bash\n{program}\n")
    python.chmod(0o755)
    monkeypatch.setenv("NIGHTKEEP_PYTHON", str(python))
    monkeypatch.setenv("NIGHTKEEP_MAX_READING_SECONDS", "2")
    with ChildProcess() as apart, pytest.raises(UsageError) as raised:
        apart.call("t", os.getpid)
    assert str(raised.value).startswith(f"{python}: expected Nightkeep ") and str(raised.value).endswith(found)


@pytest.mark.slow
def test_a_python_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTKEEP_PYTHON", str(tmp_path / "none"))
    with ChildProcess() as apart, pytest.raises(UsageError, match=r"^NIGHTKEEP_PYTHON: expected a Python at .*none"):
        apart.call("t", os.getpid)
