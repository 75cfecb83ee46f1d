"""Metadata that ends the process which reads it ends one table's night: the others of its group have theirs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from tests.formats.delta.lake import Lake
from tests.support.commands import said

from nightkeep.commands.job import check_job, run_job, sweep_job
from nightkeep.errors import CorruptMetadata, ReaderEnded, RefusedTable
from nightkeep.groups.children.child_process import ChildProcess
from nightkeep.records import load_document
from nightkeep.redaction import HIDDEN, learn, redact
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline, inline_exchange

pytestmark = pytest.mark.slow

SECONDS = 60
POLICY = """\
version: 1
defaults: {{check: {{enabled: false}}, operations: [optimize]}}
tables:
  - {{name: first, table: "delta:{folder}/first"}}
  - {{name: crash, table: "iceberg:crash/db.t"}}
  - {{name: leave, table: "iceberg:leave/db.t"}}
  - {{name: sleep, table: "iceberg:sleep/db.t"}}
  - {{name: swell, table: "iceberg:swell/db.t"}}
  - {{name: fail, table: "iceberg:fail/db.t"}}
  - {{name: last, table: "delta:{folder}/last"}}
"""
DEADLY = ("crash", "leave", "sleep", "swell", "fail")
EXPECTED = "expected its metadata to be read"
REASONS = {
    "crash": f"ReaderEnded: crash: {EXPECTED}, found that the process which read it was ended by SIGSEGV",
    "leave": f"ReaderEnded: leave: {EXPECTED}, found that the process which read it ended with status 3",
    "sleep": f"ReaderEnded: sleep: {EXPECTED} within 40 seconds (NIGHTKEEP_MAX_READING_SECONDS), found no end of it; "
    "the process that read it was ended",
    "swell": "its metadata takes more than the limit of 1073741824 bytes of memory, of the process that reads metadata "
    "(NIGHTKEEP_MAX_MEMORY_BYTES); set NIGHTKEEP_MAX_MEMORY_BYTES higher, or give the process more",
    "fail": "RuntimeError: Odd: it is odd",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A policy of tables whose catalogs do something to who reads them, between two as they should be."""
    folder = tmp_path_factory.mktemp("group")
    for name in ("first", "last"):
        lake = Lake(folder / name, pa.schema({"id": pa.int64()}))
        for start in (0, 10):
            lake.append(pa.table({"id": pa.array(range(start, start + 10), pa.int64())}))
    (folder / "tables.yaml").write_text(POLICY.format(folder=folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "mapper", lambda engine: inline)
        patch.setattr(Engine, "exchange", lambda engine: inline_exchange)
        patch.setenv("NIGHTKEEP_MAX_MEMORY_BYTES", str(1 << 30))
        patch.setenv("NIGHTKEEP_MAX_READING_SECONDS", "40")
        for name in DEADLY:
            patch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__PY_CATALOG_IMPL", f"tests.support.deadly_catalogs.{name}")
        yield folder


def arguments(folder: Path, *tables: str) -> list[str]:
    names = {"policy": "tables.yaml", "reports": "reports", "result": "result.json"}
    paths = [part for name, file in names.items() for part in (f"--{name}", str(folder / file))]
    return [*paths, "--tables", ",".join(tables), "--run-id-prefix", "night-1"]


def children() -> list[psutil.Process]:
    """Processes that read for this one; a zombie is one, too."""
    found = []
    for process in psutil.Process().children():
        try:
            found += [process] if "nightkeep-reader" in " ".join(process.cmdline()) or _is_zombie(process) else []
        except psutil.NoSuchProcess:
            continue
    return found


def _is_zombie(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_ZOMBIE)


@pytest.fixture(scope="module")
def entries(folder: Path) -> list[dict[str, Any]]:
    """What the job says, which ends as if nothing were: with status 0."""
    assert run_job(arguments(folder, "first", *DEADLY, "last"), operations=()) == 0
    assert not children()
    found: list[dict[str, Any]] = json.loads((folder / "result.json").read_text())
    return found


@pytest.mark.extended
class TestGroup:
    """Tables that end who reads them, each in its way."""

    def test_each_is_named_with_what_it_did_and_the_others_are_maintained(self, entries: list[dict[str, Any]]) -> None:
        outcomes = {"first": "verified", **dict.fromkeys(DEADLY, "failed"), "swell": "refused", "last": "verified"}
        assert {entry["table"]: entry["outcome"] for entry in entries} == outcomes
        assert {entry["table"]: entry["reason"] for entry in entries} == {"first": None, **REASONS, "last": None}

    def test_each_has_its_document_and_its_line_on_the_page(
        self, folder: Path, entries: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        documents = [load_document(entry["document"]) for entry in entries]
        assert [document.reason for document in documents] == [entry["reason"] for entry in entries]
        told = said(capsys, "report", "--reports", str(folder / "reports"), "--out", str(folder / "pages"))
        pages = "".join(path.read_text() for path in (folder / "pages").rglob("*.html"))
        assert told.status == 0 and "SIGSEGV" in pages
        assert all(entry["table"] in pages for entry in entries)

    def test_a_check_of_the_run_goes_on_as_well(self, folder: Path, entries: list[dict[str, Any]]) -> None:
        assert check_job(arguments(folder, "first", "crash", "last")) == 0
        found = json.loads((folder / "result.json").read_text())
        assert [(entry["table"], entry["outcome"]) for entry in found] == [
            ("first", "verified"),
            ("crash", "failed"),
            ("last", "verified"),
        ]

    def test_a_sweep_goes_on_as_well(self, folder: Path) -> None:
        assert sweep_job(arguments(folder, "first", "crash", "last")) == 0
        found = json.loads((folder / "result.json").read_text())
        assert [(entry["table"], entry["operation"], entry["outcome"]) for entry in found] == [
            ("first", "sweep", "unchanged"),
            ("crash", "sweep", "failed"),
            ("last", "sweep", "unchanged"),
        ]
        assert found[1]["reason"] == REASONS["crash"]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
    def test_a_reader_ends_with_its_driver(self, folder: Path, number: signal.Signals) -> None:
        """Also one that is deaf, and after a signal that the driver cannot handle."""
        script = (
            "import sys; from nightkeep.commands.job import run_job; sys.exit(run_job(sys.argv[1:], operations=()))"
        )
        told = arguments(folder, "sleep")
        paths = os.pathsep.join(filter(None, [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")]))
        environ = {**os.environ, "PYTHONPATH": paths}
        with subprocess.Popen([sys.executable, "-c", script, *told], env=environ, stderr=subprocess.DEVNULL) as driver:
            try:
                reader = _deaf_child(psutil.Process(driver.pid))
                driver.send_signal(number)
                assert driver.wait(SECONDS) != 0
            finally:
                driver.kill()
        assert not psutil.wait_procs([reader], timeout=SECONDS)[1]


def _wait_for_end(child: psutil.Process) -> None:
    """Without taking its status, which whoever started it is to find."""
    deadline = time.monotonic() + SECONDS
    while not _is_zombie(child):
        assert time.monotonic() < deadline, f"{child}: expected its end in {SECONDS} s"
        time.sleep(0.01)


def _deaf_child(driver: psutil.Process) -> psutil.Process:
    """The child of a driver once it ignores SIGTERM."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for process in driver.children():
            status = Path(f"/proc/{process.pid}/status").read_text()
            ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
            if "nightkeep-reader" in " ".join(process.cmdline()) and ignored & 1 << (signal.SIGTERM - 1):
                return process
        time.sleep(0.1)
    raise AssertionError(f"expected a child that ignores SIGTERM, found none in {SECONDS} s")


class TestApart:
    """One child, and another after its death."""

    def test_one_child_does_what_is_asked_until_it_dies(self) -> None:
        with ChildProcess() as apart:
            first = apart.call("t", os.getpid)
            assert first not in (os.getpid(), None) and apart.call("t", os.getpid) == first
            with pytest.raises(ReaderEnded, match=r"^t: .* was ended by SIGABRT$"):
                apart.call("t", os.abort)
            assert apart.call("t", os.getpid) != first
        assert not children()

    def test_a_child_that_died_between_two_tables_is_nobodys_fault(self) -> None:
        with ChildProcess() as apart:
            first = apart.call("t", os.getpid)
            os.kill(first, signal.SIGKILL)
            _wait_for_end(psutil.Process(first))
            assert apart.call("t", os.getpid) != first

    @pytest.mark.few(1)
    @pytest.mark.parametrize(
        "failure",
        [
            RefusedTable("t", "a feature", "leave it"),
            CorruptMetadata("f", "one", "another"),
            KeyError("k"),
            FileNotFoundError(2, "no such file", "f"),
        ],
    )
    def test_what_is_raised_comes_back_as_itself(self, failure: Exception) -> None:
        with ChildProcess() as apart, pytest.raises(type(failure)) as raised:
            apart.call("t", partial(_raise, failure))
        assert str(raised.value) == str(failure)
        assert "in _raise" in str(raised.value.__cause__)

    def test_a_secret_that_the_child_learns_is_known_here(self) -> None:
        secret = "a-word-of-the-child"
        with ChildProcess() as apart:
            apart.call("t", partial(learn, {"password": secret}))
        assert redact(f"found {secret}") == f"found {HIDDEN}"


def _raise(failure: Exception) -> None:
    raise failure
