"""What a format provides, and the values that its functions take and return. No implementation."""

from nightkeep.protocol.bound import Bound
from nightkeep.protocol.commits import Commits
from nightkeep.protocol.gate import Gate, Show
from nightkeep.protocol.history import Seen, Undone, Watch
from nightkeep.protocol.layout import LayoutReading, TableLayout
from nightkeep.protocol.past import Past, PastCommit, PastReading, RowClaim
from nightkeep.protocol.positions import Positions
from nightkeep.protocol.row_changes import RowChanges
from nightkeep.protocol.table import OpenPlan, OpenTable, Table
from nightkeep.protocol.wide import OpenWide, OpenWideWrites, Wide, WideWrites
from nightkeep.protocol.work import (
    E,
    OfUnits,
    OperationRules,
    S,
    Snapshot,
    SomeEdit,
    SomeTask,
    T,
    U,
    Unit,
    Work,
    units_of,
)

__all__ = [
    "Bound",
    "Commits",
    "E",
    "Gate",
    "LayoutReading",
    "OfUnits",
    "OpenPlan",
    "OpenTable",
    "OpenWide",
    "OpenWideWrites",
    "OperationRules",
    "Past",
    "PastCommit",
    "PastReading",
    "Positions",
    "RowChanges",
    "RowClaim",
    "S",
    "Seen",
    "Show",
    "Snapshot",
    "SomeEdit",
    "SomeTask",
    "T",
    "Table",
    "TableLayout",
    "U",
    "Undone",
    "Unit",
    "Watch",
    "Wide",
    "WideWrites",
    "Work",
    "units_of",
]
