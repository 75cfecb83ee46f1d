"""The quick suite holds what it promises: nothing in it starts a process."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.drivers import fixtures
from tests.support import quick, workers
from tests.support.quick import LEFT_OUT, Guard

TESTS = Path(__file__).parents[1]


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> Guard:
    """A guard of its own, which hears what Python announces from now on."""
    heard = Guard()
    sys.addaudithook(heard.hear)
    return heard


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run(["java", "-version"], check=False),
        lambda: os.system("java -version"),
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
    ],
)
def test_a_process_is_refused(guard: Guard, start: object) -> None:
    assert callable(start)
    guard.running = "some test"
    try:
        with pytest.raises(pytest.fail.Exception, match="expected no process in the quick suite, found"):
            start()
    finally:
        guard.running = None


def test_fixtures_of_engines_are_known() -> None:
    source = Path(fixtures.__file__).read_text()
    started = set(re.findall(r'@pytest.fixture\(scope="session"\)\ndef (\w+)', source))
    assert started | {"airflow_database", "cluster", "spark"} == quick.PROCESSES
    assert workers.NEEDED.keys() - {"slow"} <= quick.PROCESSES


def test_what_is_left_out_is_there() -> None:
    assert [room for room in LEFT_OUT if not (TESTS / room).is_dir()] == []


@pytest.mark.extended
@pytest.mark.slow
def test_a_test_that_starts_a_jvm_fails_in_the_quick_suite_alone(tmp_path: Path) -> None:
    (tmp_path / "test_jvm.py").write_text(
        "import subprocess\n"
        "def test_java():\n"
        "    try:\n"
        "        subprocess.run(['java', '-version'], check=False)\n"
        "    except Exception:\n"
        "        pass\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.conftest",
        "-c",
        "/dev/null",
    ]
    outcomes = {}
    for options in ((), ("--quick",)):
        done = subprocess.run(
            [*command, *options, str(tmp_path)],
            cwd=TESTS.parent,
            env={**os.environ, "PYTHONPATH": ".:jobs:plugins"},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        outcomes[options] = done
    assert outcomes[()].returncode == 0, outcomes[()].stdout
    quick_one = outcomes["--quick",]
    assert quick_one.returncode == 1 and "expected no process in the quick suite, found 'java'" in quick_one.stdout
