"""Help of every command at 80 columns, and the table of options beside the signatures that it describes."""

from __future__ import annotations

import inspect
import re

import pytest
from tests.support.commands import said

from nightkeep.commands.command_table import COMMANDS
from nightkeep.commands.from_signature import Command
from nightkeep.commands.options import OPTIONS

OF_ALL = {"--json", "--verbose", "--quiet", "--help"}
GROUPS = ["Arguments", "Options", "What to do", "Layout", "Proof", "Where things are", "Output"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.name)
def test_help_names_every_option_whole_in_its_group_with_an_example(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = said(capsys, command.name, "--help").out
    lines = text.splitlines()
    own = inspect.signature(command.function).parameters.values()
    flags = {f"--{each.name.replace('_', '-')}" for each in own if each.kind is each.KEYWORD_ONLY} - {"--spark"}
    assert set(re.findall(r"^\u2502 \*? *(--[\w-]+) ", text, re.MULTILINE)) == flags | OF_ALL
    titles = re.findall(r"^\u256d\u2500 (.+?) \u2500", text, re.MULTILINE)
    assert titles == [each for each in GROUPS if each in titles] and "Output" in titles
    assert max(map(len, lines)) <= 80 and not re.search(r"\u2026|list\[", text)
    assert f"Example: nightkeep {command.name}" in text


def test_every_row_of_the_table_is_used() -> None:
    used = {"json", "verbose", "quiet"}
    for command in COMMANDS:
        for name in inspect.signature(command.function).parameters:
            used.add(f"{command.name}.{name}" if f"{command.name}.{name}" in OPTIONS else name)
    assert used - {"spark"} == OPTIONS.keys()


@pytest.mark.parametrize("verb", ["plan", "run"])
def test_help_offers_only_operations_that_a_run_does(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = re.sub(r"[\s\u2502]+", " ", said(capsys, verb, "--help").out)
    assert "One of upgrade, persist-deletes, optimize; may be repeated" in text


@pytest.mark.parametrize("verb", ["sweep", "expire"])
def test_help_states_that_files_are_only_listed_by_default(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Only lists them unless --quarantine or --delete is given." in said(capsys, verb, "--help").out
