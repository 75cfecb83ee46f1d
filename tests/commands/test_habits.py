"""What users of any command line try: short help, completion, near misses, a quiet run, no colour."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.commands import said

from nightkeep.commands.command_group import MEANT
from nightkeep.commands.command_table import COMMANDS
from nightkeep.discovery import Found, FoundTable, keep_found
from nightkeep.model import Operation, Outcome
from nightkeep.records import CommitResult, RunDocument, store

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 27, 2, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tables.yaml").write_text(
        "version: 1\ntables:\n"
        "  - {name: lake.clicks, table: 'delta:clicks'}\n"
        "  - {name: shop.orders, table: 'paimon:o'}\n"
    )
    monkeypatch.setenv("NIGHTKEEP_POLICY", str(tmp_path / "tables.yaml"))
    return tmp_path


def test_each_command_has_short_help_and_the_options_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    for each in COMMANDS:
        shown = said(capsys, each.name, "-h")
        assert shown.status == 0 and f"Example: nightkeep {each.example.split()[0]}" in shown.out
        assert {"--json", "--verbose", "-v", "--quiet", "-q"} <= {*shown.out.split()}, each.name


@pytest.mark.parametrize(
    ("typed", "meant"), [("lake.click", "lake.clicks"), ("shop.oders", "shop.orders"), ("clicks", "lake.clicks")]
)
def test_a_near_miss_of_a_table_is_answered_with_its_name(
    folder: Path, capsys: pytest.CaptureFixture[str], typed: str, meant: str
) -> None:
    shown = said(capsys, "plan", typed)
    assert shown.status == 2 and shown.err.endswith(f"found neither; did you mean {meant}?\n")


def test_a_near_miss_of_a_table_that_the_last_night_found_is_answered_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = FoundTable("stream.events", "paimon", str(folder / "events"), "paimon:here")
    keep_found(str(folder / "reports"), "night-1", Found((found,)))
    assert said(capsys, "plan", "stream.event").err.endswith("found neither; did you mean stream.events?\n")


def test_what_is_like_no_table_gets_no_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "plan", "zzzzzzzz").err.endswith("found neither\n")


def test_a_near_miss_of_a_command_or_an_option_is_answered_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean 'status'" in said(capsys, "statsu").err
    assert "--operation" in said(capsys, "plan", "x", "--operatoin", "y").err


@pytest.mark.parametrize("word", MEANT)
def test_an_operation_typed_as_a_command_is_answered_with_the_command(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = said(capsys, word, "shop.orders")
    command, *arguments = MEANT[word].split()
    assert shown.status == 2 and f"'nightkeep {MEANT[word]}'" in " ".join(shown.err.replace("\u2502", " ").split())
    options = [each for each in arguments if each.startswith("--")]
    assert set(options) <= {*said(capsys, command, "-h").out.split()}


def test_verbose_and_quiet_exclude_each_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(capsys, "tables", "-v", "-q")
    assert (shown.status, shown.err) == (2, "nightkeep: --verbose and --quiet: expected one of the two, found both\n")


def test_the_last_version_is_looked_for_among_the_documents(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(capsys, "check", "lake.clicks", "--last")
    assert shown.status == 2 and "--last: expected a run that published a version of lake.clicks" in shown.err
    store(
        RunDocument(
            run_id="night-1",
            table="lake.clicks",
            format="delta",
            operation=Operation.OPTIMIZE,
            outcome=Outcome.VERIFIED,
            base_version=6,
            committed_version=9999,
            commits=(CommitResult(9999, 6, ()),),
            started_at=NOW,
            finished_at=NOW,
        ),
        folder / "reports",
    )
    shutil.copytree(ROOT / "samples/delta/shop.db/clicks", folder / "clicks")
    # The table has no such version, so that the answer names what was asked.
    assert (
        "--version: expected a version that lake.clicks has, found 9999"
        in said(capsys, "check", "lake.clicks", "--last").err
    )
    other = said(capsys, "check", "lake.clicks", "--last", "--version", "3")
    assert other.status == 2 and "--last: expected no other choice of a version" in other.err
    assert "found --last" in said(capsys, "check", "--left", "--last").err


@pytest.mark.slow
def test_completion_installs_and_completes(tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    words = [sys.executable, "-m", "nightkeep"]
    done = subprocess.run([*words, "--install-completion", "bash"], env=environ, capture_output=True, text=True)
    assert done.returncode == 0 and (tmp_path / ".bash_completions/nightkeep.sh").exists()
    asked = {"_NIGHTKEEP_COMPLETE": "complete_bash", "COMP_WORDS": "nightkeep his", "COMP_CWORD": "1"}
    done = subprocess.run(words, env={**environ, **asked}, capture_output=True, text=True)
    assert done.stdout.split() == ["history"]


@pytest.mark.slow
def test_nothing_is_coloured_where_nobody_wants_it() -> None:
    words = [sys.executable, "-m", "nightkeep", "plan", "-h"]
    piped = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "NO_COLOR": ""})
    assert "\x1b" not in piped.stdout
    forced = {**os.environ, "FORCE_COLOR": "1", "NO_COLOR": "1"}
    plain = subprocess.run(words, capture_output=True, text=True, env=forced).stdout
    assert "\x1b[1m" in plain and not any(f"[{code}m" in plain for code in (31, 32, 33, 34, 35, 36, "1;36"))
