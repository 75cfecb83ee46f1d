"""What is asked of a table, and who asks: the values that planning and writing start from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from nightkeep.model.identity import Curve, Operation


@dataclass(frozen=True, slots=True)
class Clustering:
    """Rows near in `columns` go to the same files. A column's values are cut into at most `range_ids` ranges.

    With `noise` rows of equal curve value, which a skewed column has many of, spread over neighbouring files.
    """

    columns: tuple[str, ...]
    curve: Curve
    range_ids: int = 1000
    noise: bool = False

    def __post_init__(self) -> None:
        if not self.columns or len(set(self.columns)) != len(self.columns):
            raise ValueError(f"clustering by {self.columns}, expected different columns, at least one")
        if self.range_ids < 2:
            raise ValueError(f"{self.range_ids} range ids, expected at least 2")

    def __str__(self) -> str:
        return f"{self.curve} by {', '.join(self.columns)}"


class Writers(StrEnum):
    """What is known of others that write to a table: on an object store, whether a commit of theirs, as one of ours,
    is created only where there is none."""

    UNKNOWN = "unknown"
    CONDITIONAL = "conditional"


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller asks of one table; `where` is a partition filter and never changes rows.

    A file below `min_bytes` is small, None: half the target; one with more than `max_deleted_ratio` of its rows
    deleted is worth rewriting. `task_bytes` is what one task may hold in memory; more than `wide_bytes` of files go
    through Spark's exchange, None: by the format's own measure. `rows`: a condition on the rows to delete.
    """

    operation: Operation
    now_ms: int
    where: str | None = None
    full: bool = False
    target_bytes: int | None = None
    allow_compacting_writers: bool = False
    writers: Writers = Writers.UNKNOWN
    clustering: Clustering | None = None
    min_bytes: int | None = None
    max_deleted_ratio: float = 0.05
    task_bytes: int = 2 << 30
    wide_bytes: int | None = None
    rows: str | None = None


@dataclass(frozen=True, slots=True)
class Intent:
    """The part of a request that a table's history tells: a commit is staged from edits alone."""

    operation: Operation = Operation.OPTIMIZE
    where: str | None = None
    clustering: Clustering | None = None

    @classmethod
    def of(cls, request: Request) -> Intent:
        return cls(request.operation, request.where, request.clustering)


@dataclass(frozen=True, slots=True)
class Run:
    """Identity of one run over one table. `run_id` survives retries, `attempt` does not.

    File names derive from both, so what a killed attempt leaves behind can be found by name.
    """

    run_id: str
    token: str
    attempt: str
    now_ms: int


def run_token(run_id: str, operation: Operation) -> str:
    """What stands for one operation of a run in file names and commit users: 16 hexadecimal digits."""
    return hashlib.sha256(f"{operation}\n{run_id}".encode()).hexdigest()[:16]
