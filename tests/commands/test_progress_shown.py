"""What a command prints while it works: a line a stage on a pipe, moving lines on a terminal, nothing if quiet."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests.commands.test_app import Shell, shell

from nightkeep.commands import progress_shown
from nightkeep.commands.progress_shown import line_of, shown_progress
from nightkeep.progress import Stage, in_stage, note, task_counter

__all__ = ["shell"]


ROOT = Path(__file__).parents[2]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    text = io.StringIO()
    monkeypatch.setattr(
        progress_shown, "Console", lambda **_: Console(file=text, force_terminal=True, width=100, color_system=None)
    )
    yield text


@pytest.mark.slow
def test_a_run_on_a_pipe_prints_a_line_for_each_stage_and_its_answer_alone_on_stdout(shell: Shell) -> None:
    said = shell.call("run", shell.table, "--no-check", "--json")
    lines = said.err.splitlines()
    named = [line.partition(";")[0] for line in lines if ", stage " in line and " optimize: " in line]
    assert named == [
        f"{shell.table} optimize: {stage}, stage {number} of 5"
        for number, stage in enumerate(("plan", "rewrite", "verify", "publish"), 1)
    ]
    assert said.json["outcome"] == "verified"
    assert "expected" in next(line for line in lines if ": rewrite" in line)


@pytest.mark.slow
def test_a_quiet_run_and_a_command_that_only_reads_print_nothing(shell: Shell) -> None:
    assert shell.call("run", shell.table, "--no-check", "--quiet").err == ""
    assert shell.call("plan", shell.table).err == ""


def test_a_line_has_the_place_of_the_stage_and_what_is_known_of_its_time() -> None:
    assert line_of(Stage("t", "sweep", "act")) == "t sweep: act"
    known = Stage("t", "optimize", "rewrite", 2, 5, 0.42, 1234.5)
    assert line_of(known) == "t optimize: rewrite, stage 2 of 5; 0.4 s so far, about 1,234 s expected"


def test_a_stage_that_comes_again_is_one_line_on_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress(quiet=False):
        for _ in range(3):
            with in_stage(Stage("a[b]", "optimize", "rewrite")):
                note("a note of [bold]any[/bold] text")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["a[b] optimize: rewrite", *["a note of [bold]any[/bold] text"] * 3]


def test_a_first_stage_that_ends_at_once_goes_unsaid(capsys: pytest.CaptureFixture[str]) -> None:
    plan, rewrite = Stage("t", "optimize", "plan", 1, 5), Stage("t", "optimize", "rewrite", 2, 5)
    with shown_progress(quiet=False):
        with suppress(ValueError), in_stage(plan):
            raise ValueError("a slip")
        with in_stage(replace(plan, table="u")):
            pass
        with in_stage(replace(rewrite, table="u")):
            pass
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["u optimize: plan, stage 1 of 5", "u optimize: rewrite, stage 2 of 5"]


def test_a_first_stage_that_takes_long_is_said_while_it_lasts(capsys: pytest.CaptureFixture[str]) -> None:
    said, deadline = "", time.monotonic() + 30
    with shown_progress(quiet=False), in_stage(Stage("t", "optimize", "plan", 1, 5)):
        while not said and time.monotonic() < deadline:
            time.sleep(0.05)
            said += capsys.readouterr().err
    assert said == "t optimize: plan, stage 1 of 5\n"


def test_a_terminal_has_a_bar_once_the_number_of_tasks_is_known(terminal: io.StringIO) -> None:
    plan, rewrite = Stage("t[x]", "optimize", "plan", 1, 5), Stage("t[x]", "optimize", "rewrite", 2, 5, 0, 9)
    with shown_progress(quiet=False), in_stage(plan), in_stage(rewrite):
        counter = task_counter(4)
        assert counter is not None
        counter(2)
        note("a note")
    text = terminal.getvalue()
    assert "t[x] optimize: rewrite 2 of 5" in text and "of about 9 s" in text and "a note" in text
    # What moved is removed at the end.
    assert "\x1b[2K" in text.rpartition("rewrite 2 of 5")[2]


@pytest.mark.slow
def test_what_spark_prints_is_in_a_file_which_is_named_where_the_command_does_not_end_well(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "samples/delta/shop.db/clicks", tmp_path / "clicks")
    (tmp_path / "logs").mkdir()
    words = [sys.executable, "-m", "nightkeep", "run", f"delta:{tmp_path}/clicks", "--reports", str(tmp_path / "r")]
    environ = {**os.environ, "TMPDIR": str(tmp_path / "logs"), "PYTHONPATH": str(ROOT / "jobs")}
    done = subprocess.run(words, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert "starting Spark" in lines and all("stage " in line or line == "starting Spark" for line in lines), lines
    assert not [*(tmp_path / "logs").glob("nightkeep-spark-*")]
    shutil.copytree(ROOT / "samples/delta/shop.db/clicks", tmp_path / "damaged")
    for file in (tmp_path / "damaged").glob("day=*/*.parquet"):
        file.write_bytes(b"PAR1")
    done = subprocess.run(
        [*words[:4], f"delta:{tmp_path}/damaged", *words[5:]], env=environ, capture_output=True, text=True
    )
    assert done.returncode == 1
    (log,) = (tmp_path / "logs").glob("nightkeep-spark-*")
    assert done.stderr.splitlines()[-1] == f"what Spark printed is in {log}" and "Spark" in log.read_text()
