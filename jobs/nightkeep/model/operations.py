"""What can be done to a table, and who offers it. Forms, jobs, commands and `nightkeep run` read one table.

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
    RELEASE = "release"
    AUDIT = "audit"

    @property
    def rewrites(self) -> bool:
        """Whether the operation publishes a version with other files. The others remove or restore files, release the
        table from its hold, or change nothing."""
        return OPERATION_TABLE[self].rewrites

    @property
    def has_command(self) -> bool:
        """Whether a command of this name does it. `nightkeep run` does the others."""
        return not OPERATION_TABLE[self].in_run


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRow:
    """An operation. `in_run`: it needs nothing but a table, so that `nightkeep run` does it.

    `takes` are its options in the form of a manual run, beside the table and the dry run. Of each of `needs`, one must
    be given.
    """

    rewrites: bool = False
    in_run: bool = False
    takes: tuple[str, ...] = ()
    needs: tuple[tuple[str, ...], ...] = ()


_OF_FILES: Final = ("where", "full", "target_size")
_OF_LAYOUT: Final = (*_OF_FILES, "zorder", "hilbert")

OPERATION_TABLE: Final[Mapping[Operation, OperationRow]] = {
    Operation.UPGRADE: OperationRow(rewrites=True, in_run=True, takes=_OF_FILES),
    Operation.PERSIST_DELETES: OperationRow(rewrites=True, in_run=True, takes=_OF_FILES),
    Operation.OPTIMIZE: OperationRow(rewrites=True, in_run=True, takes=_OF_LAYOUT),
    Operation.DELETE: OperationRow(rewrites=True, takes=("rows_where", "keys"), needs=(("rows_where", "keys"),)),
    Operation.UPDATE: OperationRow(rewrites=True, takes=("rows_where", "set"), needs=(("rows_where",), ("set",))),
    Operation.EXPIRE: OperationRow(takes=("files",)),
    Operation.SWEEP: OperationRow(takes=("files",)),
    Operation.RESTORE: OperationRow(takes=("run_id",), needs=(("run_id",),)),
    Operation.RELEASE: OperationRow(takes=("reason",)),
    Operation.AUDIT: OperationRow(),
}

RUN_OPERATIONS: Final = tuple(each for each, row in OPERATION_TABLE.items() if row.in_run)
"""What `nightkeep run` does, and a run of the form for which no operation is chosen."""

REWRITE_STAGES: Final = ("plan", "rewrite", "verify", "publish", "check")
"""The stages of an operation that rewrites, in their order."""
