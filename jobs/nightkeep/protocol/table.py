"""An opened table as a value: what the stages call. They call only these functions and name no format.

A table is opened once per run. `S` is the format's snapshot. `U` is its unit (a bucket, a partition's files), decoded
from metadata. `T` is its task, and `E` the edit of metadata that a task results in. Tables, units, tasks and edits
pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from nightkeep.model import Address, Candidate, Clustering, Operation, Plan, Request, Rewrite, Run, UnitKey
from nightkeep.model.description import TableDescription
from nightkeep.model.health import Health
from nightkeep.protocol.commits import Commits
from nightkeep.protocol.gate import Gate
from nightkeep.protocol.history import Seen, Watch
from nightkeep.protocol.layout import LayoutReading
from nightkeep.protocol.past import PastReading
from nightkeep.protocol.reading import TableReading
from nightkeep.protocol.row_changes import RowChanges
from nightkeep.protocol.table_files import OpenFiles
from nightkeep.protocol.version_writers import ReadsWriters
from nightkeep.protocol.wide import OpenWide, OpenWideWrites
from nightkeep.protocol.work import E, OperationRules, S, Snapshot, SomeEdit, SomeTask, T, U, Unit

S_contra = TypeVar("S_contra", bound=Snapshot, contravariant=True)


class ReadsVersions(Protocol[S]):
    """Reads one version, the latest by default. Raises RefusedTable for a feature that no operation handles.

    `read_as`: the version whose columns are used, for formats whose schema can change without a new version.
    """

    def __call__(self, version: int | None = None, *, read_as: S | None = None) -> S: ...


class WatchesHistory(Protocol[S_contra]):
    """Examines the commits after `since`, up to the snapshot `head`, as far as they still exist.

    Without `since`, or if it is not in this history, examines the last week. None if `head` no longer exists.
    """

    def __call__(self, head: S_contra, since: Seen | None, *, now_ms: int) -> Watch | None: ...


def _no_metrics(before: Snapshot, after: Snapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    return {}


def _no_clustering(snapshot: Snapshot) -> Clustering | None:
    return None


def _has_a_version() -> bool:
    return False


def _undescribed(snapshot: object) -> TableDescription:
    return TableDescription()


def _indescribable() -> TableDescription:
    return TableDescription()


def _suits(operation: Operation) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Table(Generic[S, U, T, E]):
    """An opened table of one format. What a format does not have is left out."""

    address: Address
    operations: Mapping[Operation, OperationRules[S, U, T]]
    snapshot: ReadsVersions[S]
    units: Callable[[S], Sequence[U]]
    """Every unit with a file, and every unit whose last file this version removed: those must be proven too."""
    digest: Callable[[int], str | None]
    """`identity.commit` of the version that has this number now; None if it is neither the newest version nor one that
    the newest is built on.

    Reads only the file that makes the version, not the files that it refers to."""
    staged: Callable[[Candidate], S]
    """The candidate decoded from its staged bytes, as a reader would decode a published version."""
    rewrite: Callable[[T, Run], Rewrite[E]]
    """Does one task: writes data files and vectors that no metadata references yet. A unit has one rewrite for each of
    its tasks."""
    gate: Gate[S, U]
    commits: Commits[S, E]
    wide: OpenWideWrites[E] | None = None
    """For a format whose rules make Wide tasks."""
    row_changes: RowChanges[S, U, T] | None = None
    layout: LayoutReading[S] | None = None
    """For a format whose rows can be clustered."""
    own_clustering: Callable[[S], Clustering | None] = _no_clustering
    """The layout that the table itself asks for, in place of the policy's; None where it asks for none."""
    reading: TableReading[S, U] | None = None
    """For a format whose rows people can read."""
    past: PastReading[S, U] | None = None
    """For a format whose commits can be audited."""
    layout_metrics: Callable[[S, S, Sequence[UnitKey]], Mapping[str, object]] = _no_metrics
    """Metrics for the report beyond sizes, of the touched units before and after, as JSON values: skipping, overlap.
    Reads metadata only."""
    health: Callable[[S, Request], Health] | None = None
    """The facts by which the need of maintenance is measured. Reads metadata only."""
    retention: OpenFiles | None = None
    """For a format that can be swept and expired."""
    outline: Callable[[], S] | None = None
    """The newest version, for planning only: its rows cannot be read. Otherwise as `snapshot`. For a format with tables
    that can be planned although no run handles them."""
    never_written: Callable[[], bool] = _has_a_version
    """Whether the table was created and never written, in a format in which a new table has no version until its first
    write. False for a table that lost its versions."""
    suits: Callable[[Operation], bool] = _suits
    """Whether a default operation of the format suits tables of this kind, in a format with several kinds. Reads
    as little metadata as it can."""
    described: Callable[[S], TableDescription] = _undescribed
    """The table's description when this version was read."""
    description: Callable[[], TableDescription] = _indescribable
    """Its description now. Reads as little metadata as it can."""
    writers: ReadsWriters[S] | None = None
    """For a format whose commits name who made them."""
    watch: WatchesHistory[S] | None = None
    """For a format whose writers may commit a rewrite that misses deletes made since it was prepared."""


OpenTable = Table[Snapshot, Unit, SomeTask, SomeEdit]
"""A table of any format. Only the table itself may look into its snapshots, units, tasks and edits."""
OpenPlan = Plan[SomeTask | OpenWide]
"""A plan of such a table."""
