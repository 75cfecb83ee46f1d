"""What can be done to a table, and who offers it. Forms, job scripts, commands and `nightkeep run` read one table.

A new operation is a name, a row of `OPERATION_TABLE`, and an entry of `groups.one_operation.KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Operation(StrEnum):
    """What can be done to a table. The values are those of the command line."""

    UPGRADE = "upgrade"
    PERSIST_DELETES = "persist-deletes"
    OPTIMIZE = "optimize"
    DELETE = "delete"
    UPDATE = "update"
    EXPIRE = "expire"
    SWEEP = "sweep"
    RESTORE = "restore"
    AUDIT = "audit"

    @property
    def rewrites(self) -> bool:
        """Whether the operation publishes a version with other files. The others remove or restore
        files, or change nothing."""
        return OPERATION_TABLE[self].rewrites

    @property
    def has_command(self) -> bool:
        """Whether a command of this name does it. `nightkeep run` does the others."""
        return not OPERATION_TABLE[self].in_run


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """An operation. `in_run`: it needs nothing but a table, so that `nightkeep run` and the form of a manual run offer
    it. `script`: the job script that does it for a group of tables, None if there is none."""

    rewrites: bool = False
    in_run: bool = False
    script: str | None = None


OPERATION_TABLE: Final[Mapping[Operation, OperationRow]] = {
    Operation.UPGRADE: OperationRow(rewrites=True, in_run=True, script="l0_upgrade.py"),
    Operation.PERSIST_DELETES: OperationRow(rewrites=True, in_run=True, script="persist_deletes.py"),
    Operation.OPTIMIZE: OperationRow(rewrites=True, in_run=True, script="optimize.py"),
    # The rows that these two change are asked for in each call.
    Operation.DELETE: OperationRow(rewrites=True),
    Operation.UPDATE: OperationRow(rewrites=True),
    Operation.EXPIRE: OperationRow(),
    Operation.SWEEP: OperationRow(script="sweep_orphans.py"),
    Operation.RESTORE: OperationRow(),
    Operation.AUDIT: OperationRow(script="audit.py"),
}

RUN_OPERATIONS: Final = tuple(each for each, row in OPERATION_TABLE.items() if row.in_run)
"""What `nightkeep run` and the form of a manual run offer."""
