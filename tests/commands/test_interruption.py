"""Commands, a job script and a program of the library, as processes that a signal ends at several moments."""

from __future__ import annotations

import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

import nightkeep

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WITHIN = 10.0
"""Seconds that the end may take: five, and as many for a machine that has other work."""
PATIENCE = 300.0
NIGHTKEEP = (sys.executable, "-m", "nightkeep")


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    err: str

    def sentence(self) -> str:
        """The last line of stderr, the only one about the signal."""
        assert "Traceback" not in self.err and "Exception" not in self.err and " ERROR " not in self.err, self.err
        *_, last = self.err.splitlines()
        assert self.err.count("interrupted by") == 1 and "interrupted by" in last, self.err
        return last


class Program:
    """A process in a session of its own: whatever it starts is in that session."""

    def __init__(self, folder: Path, *command: str, **environment: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTKEEP")}
        environ = {
            **inherited,
            "NIGHTKEEP_REPORTS": str(folder / "reports"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **environment,
        }
        self._err = folder / "stderr"
        with self._err.open("wb") as err, (folder / "stdout").open("wb") as out:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def wait_for(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not what():
            assert self.process.poll() is None and time.monotonic() < deadline, self._err.read_text()
            time.sleep(0.005)

    def listens(self) -> bool:
        """Whether it has a handler for SIGTERM."""
        state = Path(f"/proc/{self.process.pid}/status").read_text()
        caught = next(line.split()[1] for line in state.splitlines() if line.startswith("SigCgt"))
        return bool(int(caught, 16) & 1 << (signal.SIGTERM - 1))

    def ended(self, *numbers: int) -> Ended:
        """How it ends after the signals, in time, with nothing left of what it started."""
        begun = time.monotonic()
        for number in numbers:
            self.process.send_signal(number)
            time.sleep(0.02)
        status = self.process.wait(WITHIN)
        while left := self.started():
            assert time.monotonic() - begun < WITHIN, left
            time.sleep(0.05)
        return Ended(status, self._err.read_text())

    def started(self) -> list[str]:
        found = list[str]()
        for entry in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                if os.getsid(int(entry.name)) == self.process.pid and int(entry.name) != self.process.pid:
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return [each for each in found if each]

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def running(folder: Path, *command: str, **environment: str) -> Iterator[Program]:
    program = Program(folder, *command, **environment)
    try:
        yield program
    finally:
        program.kill()


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "samples/delta/shop.db/clicks", tmp_path / "clicks")
    return tmp_path / "clicks"


@dataclass(frozen=True, slots=True)
class Silent:
    """A catalog that takes connections and never answers."""

    server: socket.socket

    @property
    def environment(self) -> dict[str, str]:
        uri = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        return {"PYICEBERG_CATALOG__SILENT__TYPE": "rest", "PYICEBERG_CATALOG__SILENT__URI": uri}

    def asked(self) -> bool:
        """Whether a child process waits for its answer."""
        return bool(select.select([self.server], [], [], 0)[0])


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Silent]:
    """With a policy of three of its tables."""
    names = "".join(f"  - {{name: t{n}, table: 'iceberg:silent/db.t{n}'}}\n" for n in range(3))
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables:\n{names}")
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield Silent(server)


def rows(table: Path) -> list[str]:
    return sorted(map(str, nightkeep.read(f"delta:{table}").read_all().to_pylist()))


def versions(table: Path) -> int:
    return len([*(table / "_delta_log").glob("*.json")])


def document(folder: Path) -> dict[str, object]:
    files = [*(folder / "reports").glob("*/*.json")]
    return dict(json.loads(files[0].read_text())) if files else {}


def test_a_run_that_rewrites_publishes_nothing(clicks: Path, tmp_path: Path) -> None:
    before, count = rows(clicks), versions(clicks)
    with running(tmp_path, *NIGHTKEEP, "run", f"delta:{clicks}", "--operation", "optimize") as program:
        program.wait_for(lambda: [*clicks.rglob("*nk-*")])
        ended = program.ended(signal.SIGTERM)
    said = ended.sentence()
    assert ended.status == 143 and said.startswith(f"nightkeep: interrupted by SIGTERM: delta:{clicks} optimize: ")
    assert "nothing was published; a sweep removes" in said
    assert versions(clicks) == count and rows(clicks) == before
    assert document(tmp_path)["committed_version"] is None


def test_a_check_is_left_to_the_command_that_the_sentence_names(clicks: Path, tmp_path: Path) -> None:
    before, count = rows(clicks), versions(clicks)
    with running(tmp_path, *NIGHTKEEP, "run", f"delta:{clicks}", "--operation", "optimize") as program:
        program.wait_for(lambda: document(tmp_path).get("committed_version"))
        ended = program.ended(signal.SIGINT)
    said, left = ended.sentence(), document(tmp_path)
    assert ended.status == 130 and f"version {count} was published and is proven; its check is left" in said
    assert (left["outcome"], left["committed_version"]) == ("failed", count)
    assert rows(clicks) == before
    _, *again = shlex.split(said.rpartition("; to go on: ")[2])
    environ = {**os.environ, "NIGHTKEEP_REPORTS": str(tmp_path / "reports")}
    done = subprocess.run([*NIGHTKEEP, *again, "--json"], env=environ, capture_output=True, text=True, timeout=PATIENCE)
    found = json.loads(done.stdout)
    assert (done.returncode, found["run_id"], found["expectations"]["status"]) == (0, left["run_id"], "passed")
    assert versions(clicks) == count + 1


def test_a_second_signal_ends_it_at_once(clicks: Path, tmp_path: Path) -> None:
    with running(tmp_path, *NIGHTKEEP, "run", f"delta:{clicks}", "--operation", "optimize", "--no-check") as program:
        program.wait_for(lambda: "starting Spark" in (tmp_path / "stderr").read_text())
        ended = program.ended(signal.SIGINT, signal.SIGINT)
    assert ended.status == 130 and "interrupted by SIGINT" in ended.sentence()


@pytest.mark.extended
def test_a_job_states_how_many_documents_it_has_stored(clicks: Path, tmp_path: Path) -> None:
    shutil.copytree(clicks, tmp_path / "other")
    tables = "".join(f"  - {{name: {name}, table: 'delta:{tmp_path}/{name}'}}\n" for name in ("clicks", "other"))
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables:\n{tables}")
    given = ["--policy", "tables.yaml", "--tables", "clicks,other", "--run-id-prefix", "n", "--reports", "reports"]
    with running(tmp_path, sys.executable, str(ROOT / "jobs/optimize.py"), *given) as program:
        program.wait_for(lambda: any(versions(tmp_path / name) > 17 for name in ("clicks", "other")))
        ended = program.ended(signal.SIGTERM)
    assert ended.status == 143 and ended.sentence().startswith("optimize.py: interrupted by SIGTERM: ")
    assert rows(clicks) == rows(tmp_path / "other")
    # Threads that were cut short leave the documents as they are: no failure of a table that has none.
    found = [json.loads(path.read_text()) for path in (tmp_path / "reports").glob("*/*.json")]
    assert {str(each["reason"]) for each in found} <= {
        "None",
        "ended before it was done; the same run, started again, looks for what it published",
    }


def test_a_sweep_names_the_list_of_what_it_deletes(clicks: Path, tmp_path: Path) -> None:
    before = rows(clicks)
    orphans = [clicks / f"part-{n:05}-left-over.c000.snappy.parquet" for n in range(20_000)]
    for orphan in orphans:
        orphan.touch()
        os.utime(orphan, (0, time.time() - 40 * 86_400))
    asked = ("sweep", f"delta:{clicks}", "--delete", "--max-share", "1", "--no-check")
    with running(tmp_path, *NIGHTKEEP, *asked) as program:
        # A look at one of the first to go costs nothing: on a busy machine the sweep would end during a listing.
        program.wait_for(lambda: not orphans[0].exists())
        ended = program.ended(signal.SIGINT)
    said, listed = ended.sentence(), document(tmp_path)["orphans_file"]
    assert ended.status == 130 and f"some of its files may be gone, which are listed in {listed}" in said
    assert 0 < sum(orphan.exists() for orphan in orphans) < len(orphans) and rows(clicks) == before


@pytest.mark.extended
def test_a_status_ends_while_a_catalog_is_silent(tmp_path: Path, silent: Silent) -> None:
    with running(tmp_path, *NIGHTKEEP, "status", "--policy", "tables.yaml", **silent.environment) as program:
        program.wait_for(silent.asked)
        ended = program.ended(signal.SIGINT)
    assert ended.status == 130
    assert ended.sentence() == (
        "nightkeep: interrupted by SIGINT: it changes nothing; to go on: nightkeep status --policy tables.yaml"
    )


def test_a_command_ends_while_it_is_imported(tmp_path: Path) -> None:
    with running(tmp_path, *NIGHTKEEP, "status") as program:
        program.wait_for(program.listens)
        ended = program.ended(signal.SIGINT)
    assert ended.status == 130 and "interrupted by SIGINT: it had not started" in ended.sentence()


def test_a_program_of_the_library_gets_its_own_exception(tmp_path: Path, silent: Silent) -> None:
    script = (
        "import os, nightkeep\n"
        "try:\n"
        "    nightkeep.status(policy='tables.yaml')\n"
        "except KeyboardInterrupt:\n"
        "    open('children', 'w').write(open(f'/proc/self/task/{os.getpid()}/children').read())\n"
    )
    with running(tmp_path, sys.executable, "-c", script, **silent.environment) as program:
        program.wait_for(silent.asked)
        ended = program.ended(signal.SIGINT)
    assert (ended.status, ended.err, (tmp_path / "children").read_text()) == (0, "", "")
