"""The verbs of a format. The stages call only these and name no format.

A table is opened once per run. `S` is the format's snapshot. `U` is its unit (a bucket, a partition's files), decoded
from metadata. `T` is its task, and `E` the edit of metadata that a task results in. Tables, units, tasks and edits
pickle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from nightkeep.model import Address, Candidate, Operation, Plan, Rewrite, Run, UnitKey
from nightkeep.protocol.commits import Commits
from nightkeep.protocol.gate import Gate
from nightkeep.protocol.history import Seen, Watch
from nightkeep.protocol.table_files import OpenFiles
from nightkeep.protocol.work import E, OperationRules, S, Snapshot, SomeEdit, SomeTask, T, U, Unit, Wide

S_co = TypeVar("S_co", bound=Snapshot, covariant=True)
S_contra = TypeVar("S_contra", bound=Snapshot, contravariant=True)
E_co = TypeVar("E_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Reads(Protocol[S, U, T]):
    """Verbs that only read."""

    @property
    def address(self) -> Address: ...

    @property
    def operations(self) -> Mapping[Operation, OperationRules[S, U, T]]: ...

    def snapshot(self, version: int | None = None, *, read_as: S | None = None) -> S:
        """One version, the latest by default. Raises RefusedTable for a feature that no operation handles.

        `read_as`: read with the columns of that version, for formats whose schema can change without a new version.
        """

    def units(self, snapshot: S) -> Sequence[U]:
        """Every unit with a file, and every unit whose last file this version removed: those must be proven too."""

    def digest(self, version: int) -> str | None:
        """`identity.commit` of the version that has this number now; None if it is neither the newest version nor one
        that the newest is built on.

        Reads only the file that makes the version, not the files that it refers to.
        """

    @property
    def gate(self) -> Gate[S, U]: ...


@runtime_checkable
class Outlines(Protocol[S_co]):
    """A table that can be planned although no run handles it."""

    def outline(self) -> S_co:
        """The newest version, for planning only: its rows cannot be read. Otherwise as `snapshot`."""


class Writes(Protocol[S, T_contra, E]):
    """Verbs that write new files. Only `commit` makes them visible. A unit has one rewrite for each of its tasks."""

    def rewrite(self, task: T_contra, run: Run) -> Rewrite[E]:
        """Do one task: write data files and vectors that no metadata references yet."""

    def staged(self, candidate: Candidate) -> S:
        """The candidate decoded from its staged bytes, as a reader would decode a published version."""

    def figures(self, before: S, after: S, touched: Sequence[UnitKey]) -> Mapping[str, object]:
        """Figures for the report beyond sizes, as JSON values: skipping, overlap. Reads metadata only."""

    @property
    def commits(self) -> Commits[S, E]: ...

    @property
    def retention(self) -> OpenFiles | None:
        """None for a format that no sweep and no expiry handles."""


class Table(Reads[S, U, T], Writes[S, T, E], Protocol[S, U, T, E]):
    """An opened table of one format."""


OpenTable = Table[Snapshot, Unit, SomeTask, SomeEdit]
"""A table of any format. Only the table itself may look into its snapshots, units, tasks and edits."""
OpenPlan = Plan[SomeTask | Wide]
"""A plan of such a table."""


@runtime_checkable
class ChangesRows(Protocol[S, U, T]):
    """A table with operations that change rows. They run only on request, never in a nightly run."""

    @property
    def row_operations(self) -> Mapping[Operation, OperationRules[S, U, T]]:
        """Operations that need `Request.rows`."""

    def columns(self, snapshot: S) -> pa.Schema:
        """The columns that a condition on rows may name, with the names and types that `gate.rows` returns."""

    def count_matching(self, task: T) -> int:
        """How many visible rows the task would change. Writes nothing."""


@runtime_checkable
class MayBeNew(Protocol):
    """A table of a format in which a new table has no version until its first write."""

    def never_written(self) -> bool:
        """Whether the table was created and never written. False for a table that lost its versions."""


@runtime_checkable
class Watched(Protocol[S_contra]):
    """A table of a format whose writers may commit a rewrite that was prepared before, and so lacks, newer deletes."""

    def watch(self, head: S_contra, since: Seen | None, *, now_ms: int) -> Watch | None:
        """Examine the commits after `since`, up to the snapshot `head`, as far as they still exist.

        Without `since`, or if it is not in this history, examines the last week. None if `head` no longer exists.
        """


@runtime_checkable
class WideWrites(Protocol[E_co]):
    """Verbs of a table whose rules make Wide tasks. Sources, surveys and ranged tasks must pickle."""

    def survey(self, task: Wide, source: object) -> object:
        """A sample of one source, for `ranged`."""

    def ranged(self, task: Wide, surveys: Sequence[object]) -> object:
        """The task with its ranges: which rows go to which part. `surveys` are in the order of the sources."""

    def scatter(self, ranged: object, source: object) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """A source's rows as (part, place, rows). Rows of part k + 1 sort after those of part k, and within a part rows
        sort by place.

        A second call for the same source yields the same rows.
        """

    def gather(
        self, ranged: object, part: int, rows: Iterator[tuple[int, pa.RecordBatch]], *, run: Run
    ) -> Rewrite[E_co]:
        """Write all rows of one part, by ascending place, to files that no metadata references yet."""
