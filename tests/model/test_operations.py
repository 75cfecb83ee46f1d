"""One table of operations: whoever offers an operation can do it, and whoever can do it has it from there."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

from nightkeep.commands import job
from nightkeep.commands.app import COMMANDS
from nightkeep.groups.one_operation import KINDS
from nightkeep.model import OPERATION_TABLE, RUN_OPERATIONS, Operation
from nightkeep.policy.settings import OPERATIONS, Nightly

ROOT = Path(__file__).parents[2]
SCRIPTED = [(each, row.script) for each, row in OPERATION_TABLE.items() if row.script is not None]


def test_every_operation_has_a_row_and_its_work() -> None:
    assert [*OPERATION_TABLE] == [*KINDS] == [*Operation]
    assert len({script for _, script in SCRIPTED}) == len(SCRIPTED)


def test_what_no_run_does_has_a_command_of_its_name() -> None:
    commands = {command.name for command in COMMANDS}
    assert {each for each in Operation if each.has_command} == commands & {*Operation}
    assert set(RUN_OPERATIONS) == {*Operation} - commands


def test_policies_offer_what_runs_offer() -> None:
    assert get_args(Nightly) == RUN_OPERATIONS
    assert {each for operations in OPERATIONS.values() for each in operations} == {*RUN_OPERATIONS}


def test_a_form_offers_what_a_job_does() -> None:
    assert {*RUN_OPERATIONS} <= {operation for operation, _ in SCRIPTED}


@pytest.mark.parametrize(("operation", "script"), SCRIPTED)
def test_the_script_of_an_operation_does_that_one(
    operation: Operation, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[Operation]()

    def ran(_: Sequence[str], *, operations: Sequence[Operation] = (Operation.SWEEP,)) -> int:
        done.extend(operations)
        return 0

    monkeypatch.setattr(job, "run_job", ran)
    monkeypatch.setattr(job, "sweep_job", ran)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "jobs" / script), run_name="__main__")
    assert (ended.value.code, done) == (0, [operation])
