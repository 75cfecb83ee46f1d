"""One table of operations: whoever offers an operation can do it, and whoever can do it has it from there."""

from __future__ import annotations

from typing import get_args

from nightkeep.commands.command_table import COMMANDS
from nightkeep.groups.one_operation import KINDS
from nightkeep.model import OPERATION_TABLE, RUN_OPERATIONS, Operation
from nightkeep.policy.settings import OPERATIONS, Nightly


def test_every_operation_has_a_row_and_its_work() -> None:
    assert [*OPERATION_TABLE] == [*KINDS] == [*Operation]


def test_what_no_run_does_has_a_command_of_its_name() -> None:
    commands = {command.name for command in COMMANDS}
    assert {each for each in Operation if each.has_command} == commands & {*Operation}
    assert set(RUN_OPERATIONS) == {*Operation} - commands


def test_policies_offer_what_runs_offer_and_audits() -> None:
    assert get_args(Nightly) == (*RUN_OPERATIONS, Operation.AUDIT)
    assert {each for operations in OPERATIONS.values() for each in operations} == {*RUN_OPERATIONS}


def test_what_an_operation_needs_it_takes() -> None:
    for row in OPERATION_TABLE.values():
        assert {name for names in row.needs for name in names} <= {*row.takes}
