"""The verbs that a format must have, and the values that they take and return. No implementation."""

from nightkeep.protocol.bound import Bound
from nightkeep.protocol.commits import Commits
from nightkeep.protocol.gate import Gate, Positions
from nightkeep.protocol.history import Seen, Undone, Watch
from nightkeep.protocol.table import (
    ChangesRows,
    MayBeNew,
    OpenPlan,
    OpenTable,
    Outlines,
    Reads,
    Table,
    Watched,
    WideWrites,
    Writes,
)
from nightkeep.protocol.work import E, OperationRules, S, Snapshot, SomeEdit, SomeTask, T, U, Unit, Wide, Work

__all__ = [
    "Bound",
    "ChangesRows",
    "Commits",
    "E",
    "Gate",
    "MayBeNew",
    "OpenPlan",
    "OpenTable",
    "OperationRules",
    "Outlines",
    "Positions",
    "Reads",
    "S",
    "Seen",
    "Snapshot",
    "SomeEdit",
    "SomeTask",
    "T",
    "Table",
    "U",
    "Undone",
    "Unit",
    "Watch",
    "Watched",
    "Wide",
    "WideWrites",
    "Work",
    "Writes",
]
