"""What a format adds to packing and clustering, as a value; and the plans, layouts and figures made with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

import pyarrow as pa

from nightkeep.clustering.clustered_files import E, F, Inputs, W
from nightkeep.clustering.columns import ClusterColumns, ClusterLeaf, Paths, indexed_columns, paths_of
from nightkeep.clustering.layout import Bounds, Version, Weighed, layout_figures, layout_of, touched_files
from nightkeep.clustering.live_rows import LiveRows
from nightkeep.clustering.packing import packing, packing_work
from nightkeep.clustering.picking import UnitFiles, cluster_work
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.clustering.sampling import live_sample, spread
from nightkeep.clustering.sizing import Sizes
from nightkeep.model import Clustering, Request, UnitKey
from nightkeep.protocol import Bound, LayoutReading, OfUnits, OpenWide, S, TableLayout, U, Work
from nightkeep.storage import Storage

D = TypeVar("D", bound=Weighed)
Bins = Callable[[Sequence[F]], Sequence[Sequence[F]]]


@dataclass(frozen=True, slots=True)
class FormatLayout(Generic[S, U, D, F, W, E]):
    """Functions of a format's room `rewrite`. Pickles. `D` is a data file as metadata lists it, `F` one for planning,
    which knows its deletes. `deletes` is the word for the format's deletes in messages.
    """

    listed: Callable[[U], Sequence[D]]
    """The data files of a unit whose rows can be read."""
    files: Callable[[U], Sequence[F]]
    """The same files, for planning."""
    listed_of: Callable[[Sequence[F]], Sequence[D]]
    sizes: Callable[[S, Request], Sizes]
    columns: Callable[[S], ClusterColumns]
    bounds: Callable[[S, Sequence[D], Paths], Bounds]
    """Bounds of the columns at these paths, from the statistics of files."""
    cube_of: Callable[[S, Clustering], Callable[[F], str | None]]
    """Finds the cube of a file; None if it was not clustered by these columns along this curve."""
    is_settled: Callable[[Sequence[F], int], bool]
    """Whether an earlier run left these files apart at this target (`packing.is_settled`)."""
    inputs: Callable[[S, U, Sequence[F], Request], Inputs[F, W, E]]
    """The input of a task. The clustering of the request has the table's own names."""
    rows: Callable[[Storage, U], LiveRows[F]]
    measured: Callable[[ClusterColumns], Sequence[ClusterLeaf]] = indexed_columns
    """The columns that the figures of a layout have, if they have bounds."""
    deletes: str = "deletion vector"

    def require_columns(self, snapshot: S, request: Request) -> None:
        """Raises UsageError for a column that the table cannot be clustered by, with the columns that would work."""
        if request.clustering is not None:
            self.columns(snapshot).resolved(request.clustering)

    def cluster_files(
        self, snapshot: S, unit: U, request: Request
    ) -> Work[PackTask[F, W, E] | ClusterTask[F, W, E] | OpenWide] | None:
        """The work that `cluster_work` picks. Raises UsageError for columns that the table cannot be clustered by."""
        if request.clustering is None:
            return None
        columns = self.columns(snapshot)
        clustering = columns.resolved(request.clustering)
        paths, named = columns.paths(clustering), replace(request, clustering=clustering)
        files = UnitFiles(
            self.files(unit),
            clustering,
            paths,
            cube_of=self.cube_of(snapshot, clustering),
            bounds_of=lambda some: self.bounds(snapshot, self.listed_of(some), paths),
        )
        sizes = self.sizes(snapshot, request)
        return cluster_work(files, sizes, request, inputs_of=lambda some: self.inputs(snapshot, unit, some, named))

    def pack_files(
        self, snapshot: S, unit: U, request: Request, *, bins_of: Bins[F] | None = None
    ) -> Work[PackTask[F, W, E]] | None:
        """The work that `packing` picks; none for a clustered table."""
        if request.clustering is not None:
            return None
        sizes = self.sizes(snapshot, request)
        picked = packing(
            self.files(unit),
            sizes,
            full=request.full,
            is_settled=lambda some: self.is_settled(some, sizes.target),
            bins_of=bins_of,
        )
        if picked is None:
            return None
        return packing_work(picked, lambda some: self.inputs(snapshot, unit, some, request), deletes=self.deletes)

    def layout_reading(self, storage: Storage) -> LayoutReading[S]:
        # A bound method equals no copy of itself after pickling; a Bound does.
        return LayoutReading(
            Bound(FormatLayout.layout, self),
            Bound(Bound(FormatLayout.sample, self), storage),
            Bound(FormatLayout._target_bytes, self),
        )

    def layout(self, snapshot: S) -> TableLayout:
        """Every live file, and the bounds of each column that can be clustered by, by its dotted path."""
        paths = paths_of(self.columns(snapshot).indexed)
        units = [self.listed(unit) for unit in self._units(snapshot)]
        return layout_of(units, lambda files: self.bounds(snapshot, files, paths))

    def sample(
        self, storage: Storage, snapshot: S, columns: Sequence[str], rows: int
    ) -> Iterator[tuple[int, pa.Table]]:
        """A sample of about `rows` live rows. Each unit's share is that of its bytes, from files all over it."""
        units, tops = self._units(snapshot), self.columns(snapshot).tops
        for place, files, share in spread([self.files(unit) for unit in units], rows):
            live = self.rows(storage, units[place])
            hidden = live.hidden(files)
            parts = [live_sample(live.opened(file), hidden(file), columns, tops=tops, rows=share) for file in files]
            yield place, pa.concat_tables(parts)

    def layout_metrics(self, before: S, after: S, touched: Sequence[UnitKey]) -> Mapping[str, object]:
        """Figures of how well readers can skip files of the touched units in each version, from statistics only.

        Both sides are read with the columns of `after`. Files know a column by its id, so that a renamed column is
        the same one, and a column that is new has no bounds in files of `before`.
        """
        paths = paths_of(self.measured(self.columns(after)))
        sides = (touched_files(cast(Version[D], side), touched) for side in (before, after))
        return layout_figures(*(self.bounds(after, files, paths) for files in sides))

    def _target_bytes(self, snapshot: S, request: Request) -> int:
        return self.sizes(snapshot, request).target

    def _units(self, snapshot: S) -> Sequence[U]:
        # No type variable can express that S is a snapshot of units U.
        return cast(OfUnits[U], snapshot).units
