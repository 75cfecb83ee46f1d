"""What a format must know, and nothing of how: the stages call these verbs and no format's name.

A table is opened once per run. `S` is the format's snapshot, `U` its unit (a bucket, a partition's files), decoded from
metadata; `T` are its tasks, `E` the edits of metadata that tasks end with. Tables, units, tasks and edits pickle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from nightkeep.model import Address, Candidate, Committed, Operation, Plan, Rewrite, Run, UnitKey
from nightkeep.protocol.gate import Gate
from nightkeep.protocol.history import Seen, Watch
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
        """One version, the latest by default. Raises RefusedTable for a feature no operation of ours handles.

        `read_as`: with the columns of that version, where a format's schema can change without a new version.
        """

    def units(self, snapshot: S) -> Sequence[U]:
        """Every unit with a file, and those whose last file this very version removed: they are to be proven too."""

    def digest(self, version: int) -> str | None:
        """`identity.commit` of what has this number now; None where the newest version is not it or built on it.

        Reads little: what makes the version, not what that refers to.
        """

    @property
    def gate(self) -> Gate[S, U]: ...


@runtime_checkable
class Outlines(Protocol[S_co]):
    """A table that may be planned though no run of ours handles it."""

    def outline(self) -> S_co:
        """The newest version, of which no row can be asked for; else as `snapshot`."""


class Writes(Protocol[S, T_contra, E]):
    """Verbs that write new files; only `commit` can make them visible. A unit has a rewrite for each of its tasks."""

    def rewrite(self, task: T_contra, run: Run) -> Rewrite[E]:
        """Do one task: write data and vectors, reference them nowhere."""

    def stage(self, parent: S, rewrites: Sequence[Rewrite[E]], run: Run) -> Candidate:
        """Write every byte of a new version on top of `parent`, except the one that makes it visible.

        Where the rewrites change nothing of `parent`, nothing is written, and the candidate has no units.
        """

    def staged(self, candidate: Candidate) -> S:
        """The candidate decoded from its staged bytes, as a reader would decode a published version."""

    def conflicts(self, planned: S, head: S, rewrites: Sequence[Rewrite[E]]) -> tuple[tuple[UnitKey, str], ...]:
        """Units whose inputs are no longer what was planned on, each with the reason."""

    def commit(self, candidate: Candidate) -> bool:
        """Make the candidate visible, atomically; False where its version exists already, or its parent is gone."""

    def visible(self, candidate: Candidate) -> bool:
        """Whether the candidate's version exists and is this very candidate, byte for byte."""

    def undermined(self, candidate: Candidate) -> str | None:
        """Of a candidate that was just committed: why its parent is not the version below it. None where it is, where
        either is gone by now as versions go, and where a commit cannot succeed on another parent.
        """

    def committed(self, run: Run) -> tuple[Committed, ...]:
        """This run's own commits that readers can see, oldest first, whichever attempt made them."""

    def figures(self, before: S, after: S, touched: Sequence[UnitKey]) -> Mapping[str, object]:
        """What reports of this format tell beyond sizes, as JSON has it: skipping, overlap; from metadata only."""

    def commit_user(self, token: str) -> str:
        """Who a commit says it is by; `token` is its run's (model.run_token)."""

    def go_back(self, version: int) -> str:
        """The engine's own statement that makes `version` the table's content again."""

    def discard(self, names: Sequence[str]) -> None:
        """Remove staged files that nothing references."""


class Table(Reads[S, U, T], Writes[S, T, E], Protocol[S, U, T, E]):
    """An opened table of one format."""


OpenTable = Table[Snapshot, Unit, SomeTask, SomeEdit]
"""A table of whichever format: what it hands out is for itself alone."""
OpenPlan = Plan[SomeTask | Wide]
"""A plan of such a table."""


@runtime_checkable
class ChangesRows(Protocol[S, U, T]):
    """A table that can do what changes rows: only on request, never as part of a night."""

    @property
    def row_operations(self) -> Mapping[Operation, OperationRules[S, U, T]]:
        """Operations that need `Request.rows`."""

    def columns(self, snapshot: S) -> pa.Schema:
        """The columns that a condition on rows may name, by their logical names, as rows are handed out."""

    def count_matching(self, task: T) -> int:
        """How many rows that readers see a task of such an operation would change. Writes nothing."""


@runtime_checkable
class MayBeNew(Protocol):
    """A table of a format whose tables have no version until somebody writes."""

    def never_written(self) -> bool:
        """Whether the table was created, and nothing more. False for one that lost its versions."""


@runtime_checkable
class Watched(Protocol[S_contra]):
    """A table of a format whose committers accept a rewrite that was prepared before deletes it should have applied."""

    def watch(self, head: S_contra, since: Seen | None, *, now_ms: int) -> Watch | None:
        """Look at the commits after `since`, up to the snapshot `head`, as far as they still exist.

        Without `since`, or if that is no version of this history, a week back. None where `head` itself is gone.
        """


@runtime_checkable
class WideWrites(Protocol[E_co]):
    """Verbs of a table whose rules ask for Wide tasks. Sources, surveys and what is ranged must pickle."""

    def survey(self, task: Wide, source: object) -> object:
        """What `ranged` must know of one source: a sample."""

    def ranged(self, task: Wide, surveys: Sequence[object]) -> object:
        """The task with its ranges: which rows go to which part. `surveys` are in the order of the sources."""

    def scatter(self, ranged: object, source: object) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """A source's rows as (part, place, rows): part k + 1's rows come after part k's, likewise places within one.

        Called again for the same source it yields the same rows.
        """

    def gather(
        self, ranged: object, part: int, rows: Iterator[tuple[int, pa.RecordBatch]], *, run: Run
    ) -> Rewrite[E_co]:
        """Write one part: all its rows, by ascending place. References them nowhere."""
