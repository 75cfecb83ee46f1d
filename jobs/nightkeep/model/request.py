"""The request for a table and the identity of its run: the values that planning and writing start from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from nightkeep.model.identity import Curve
from nightkeep.model.operations import Operation


@dataclass(frozen=True, slots=True)
class Clustering:
    """Rows with near values in `columns` go to the same files. Each column is divided into at most `range_ids` ranges.

    With `noise`, rows of equal curve value are spread over neighbouring files; a skewed column has many such rows.
    With `order`, the text of a sort order that the table itself states, rows are sorted by that and along no curve;
    `columns` then has the column that it begins with.
    """

    columns: tuple[str, ...]
    curve: Curve
    range_ids: int = 1000
    noise: bool = False
    order: str | None = None

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise ValueError(f"clustering by {self.columns}, expected different columns, at least one")
        if self.range_ids < 2:
            raise ValueError(f"{self.range_ids} range ids, expected at least 2")

    def __str__(self) -> str:
        return self.order if self.order is not None else f"{self.curve} by {', '.join(self.columns)}"


class Writers(StrEnum):
    """What is known of others that write to a table: on an object store, whether a commit of theirs, as one of ours,
    is created only where there is none."""

    UNKNOWN = "unknown"
    CONDITIONAL = "conditional"


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller asks for one table.

    `where`: a filter on partition columns; it selects units and never changes rows.
    `min_bytes`: a smaller file counts as small; None: half the target.
    `max_deleted_ratio`: a file with a larger share of deleted rows is rewritten; None: the format decides.
    `task_bytes`: how much one task may hold in memory.
    `wide_bytes`: more bytes of files go through Spark's exchange; None: the format decides.
    `rows`: a condition on the rows to delete, or, with `sets`, to update.
    `sets`: "column = expression", for each column to set.
    `respec`: files of older partition specs move to the current one.
    """

    operation: Operation
    now_ms: int
    where: str | None = None
    full: bool = False
    target_bytes: int | None = None
    allow_compacting_writers: bool = False
    other_managers_known: bool = False
    writers: Writers = Writers.UNKNOWN
    clustering: Clustering | None = None
    min_bytes: int | None = None
    max_deleted_ratio: float | None = None
    task_bytes: int = 2 << 30
    wide_bytes: int | None = None
    rows: str | None = None
    sets: tuple[str, ...] = ()
    respec: bool = False


@dataclass(frozen=True, slots=True)
class Intent:
    """The part of a request that is written to the table's history. Edits carry it, as a commit is staged from them.

    `clock_ms`: as in Plan.
    """

    operation: Operation = Operation.OPTIMIZE
    where: str | None = None
    clustering: Clustering | None = None
    sets: tuple[tuple[str, str], ...] = ()
    """The columns that an update sets, each with its expression in Spark SQL."""
    clock_ms: int | None = None

    @classmethod
    def of(cls, request: Request) -> Intent:
        return cls(request.operation, request.where, request.clustering)


@dataclass(frozen=True, slots=True)
class Run:
    """Identity of one run over one table. `run_id` survives retries, `attempt` does not.

    File names derive from both, so the files of a killed attempt can be found by name.
    """

    run_id: str
    token: str
    attempt: str
    now_ms: int
    branch: str = ""
    """The branch of the table that the run works on; empty for the main branch."""


def run_token(run_id: str, operation: Operation) -> str:
    """The token of one operation of a run, for file names and commit users: 16 hexadecimal digits."""
    return hashlib.sha256(f"{operation}\n{run_id}".encode()).hexdigest()[:16]
