"""What a command says when something happens that nobody planned for: one sentence, and a status that is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.drivers.memory_engine import MemoryEngine
from tests.formats.delta.lake import Lake
from tests.support.commands import said

from nightkeep.errors import DEBUG
from nightkeep.groups import one_operation
from nightkeep.running.rewrites import table_reading
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline, inline_exchange


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("nightkeep.policy.address.FORMATS", ("paimon", "delta", "iceberg", "memory"))
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    monkeypatch.setattr(Engine, "exchange", lambda engine: inline_exchange)
    for name in ("NIGHTKEEP_POLICY", "NIGHTKEEP_REPORTS", DEBUG):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    engine = MemoryEngine(f"{tmp_path}/t")
    engine.append("2026-11-01", range(10))
    engine.append("2026-11-01", range(10, 20))
    return f"memory:{tmp_path}/t"


def surprise(*arguments: object, **more: object) -> None:
    raise KeyError("no such thing\nand more of it " + "x" * 100_000)


VERBS = {
    "plan": "nightkeep.api.runs.run_operation",
    "sweep": "nightkeep.api.files.run_one",
    "expire": "nightkeep.api.files.run_one",
    "explain": "nightkeep.api.results.explain_text",
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_surprise_is_one_sentence_with_the_table_and_the_operation(
    table: str, verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VERBS[verb], surprise)
    told = said(capsys, verb, table)
    assert (told.status, told.out, told.err.count("\n")) == (1, "", 1)
    assert told.err.startswith(f"nightkeep: {table}: {verb}: KeyError: ") and len(told.err) < 1500


def test_its_traceback_is_there_for_who_asks(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(VERBS["plan"], surprise)
    monkeypatch.setenv(DEBUG, "")
    told = said(capsys, "--debug", "plan", table)
    assert told.status == 1 and "Traceback" in told.err and "in surprise" in told.err


def test_a_surprise_in_a_run_is_its_outcome_and_its_document_is_stored(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_reading, "plan_table", surprise)
    told = said(capsys, "run", table, "--operation", "optimize", "--json")
    assert (told.status, told.json["outcome"]) == (1, "failed")
    assert told.json["reason"].startswith("KeyError: ") and "Traceback" not in told.err
    assert len([*(tmp_path / "reports").glob("*/*.json")]) == 1


def test_a_surprise_in_the_check_keeps_what_was_published(
    table: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_operation, "check_after_commit", surprise)
    told = said(capsys, "run", table, "--operation", "optimize", "--json")
    assert (told.status, told.json["outcome"], told.json["committed_version"]) == (1, "failed", 4)
    assert told.json["reason"].startswith("published, but its check did not finish: KeyError")


def test_versions_that_are_not_there_are_slips_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "spark", surprise)
    lake = Lake(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    lake.append(pa.table({"id": [1]}))
    samples = Path(__file__).parents[2] / "samples" / "paimon" / "shop.db" / "customers"
    for address in (f"delta:{lake.folder}", f"paimon:{samples}"):
        for arguments in (["--version", "999"], ["--base", "999"], ["--version", "-5"]):
            told = said(capsys, "check", address, *arguments)
            assert (told.status, told.out, told.err.count("\n")) == (2, "", 1), told.err
            assert told.err.startswith(f"nightkeep: {arguments[0]}: expected a version that {address} has")
        told = said(capsys, "diff", address, "--version", "1", "--other", "999")
        assert told.status == 2 and "--other: expected a version" in told.err


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="expected /dev/full")
def test_a_full_disk_below_stdout_keeps_the_outcome(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    lake.append(pa.table({"id": [1]}))
    command = [sys.executable, "-m", "nightkeep", "plan", f"delta:{lake.folder}", "--reports", str(tmp_path / "r")]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 0
    assert "stdout cannot be written: No space left on device" in ended.stderr and "Traceback" not in ended.stderr
