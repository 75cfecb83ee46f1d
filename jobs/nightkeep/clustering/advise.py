"""Snapshot + queries -> Advice: which columns to cluster by, or to do nothing. Simulated on a sample of rows.

Pure except for reading the sample. Writes nothing, and needs no Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.card import render_card
from nightkeep.errors import RefusedTable
from nightkeep.kernels.skipping import FileBounds, simulated_layout
from nightkeep.model import Clustering, Curve
from nightkeep.model.arrow_types import ChunkedArray, Scalar
from nightkeep.protocol import LayoutReading, S, TableLayout
from nightkeep.sql_text.literals import Literal
from nightkeep.sql_text.queries import Query, Range, of_columns

SAMPLE_ROWS = 100_000
"""A thousand rows for each of a hundred files: bounds of simulated files are then within 1 % of real ones."""
MOST_COLUMNS = 6
MOST_TOGETHER = 3
"""With k columns over n files each has about n^(1/k) slices: a fourth column leaves all of them with few."""
LEAST_GAIN = 0.05
"""Share of the table that a query must read less, on average, before a rewrite is worth its cost."""
WORTH_NAMING = 0.01
_RANGES = 20
_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class QueryCost:
    """The share of the table's bytes in files that a query opens, before and after clustering."""

    query: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Option:
    """One way to cluster, with the share of bytes that the queries read: on average, and for each query."""

    columns: tuple[str, ...]
    curve: Curve
    read_share: float
    queries: tuple[QueryCost, ...]

    @property
    def slower(self) -> tuple[QueryCost, ...]:
        return tuple(cost for cost in self.queries if cost.after > cost.before + WORTH_NAMING)


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommendation and its `reason`. `clustering` is None if nothing should be done. `own` are the table's own
    clustering columns, by which `optimize` clusters it.

    Shares are of the table's bytes that a query reads on average. After `payback_queries` queries, the bytes saved
    equal those that the rewrite reads and writes. `options` are the best ways to cluster, best first.
    """

    table: str
    version: int
    clustering: Clustering | None
    reason: str
    read_share_before: float
    read_share_after: float
    rewrite_bytes: int
    payback_queries: int | None
    slower: tuple[QueryCost, ...]
    options: tuple[Option, ...] = field(default=())
    own: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The advice as a JSON object."""
        return asdict(self)

    def __str__(self) -> str:
        what = "do nothing" if self.clustering is None else _named(self.clustering.columns, self.clustering.curve)
        slower = [f"  slower: {c.query}: reads {c.before:.0%} now, {c.after:.0%} then" for c in self.slower]
        options = [f"  {o.read_share:6.1%} read after: {_named(o.columns, o.curve)}" for o in self.options]
        return "\n".join([f"{self.table}: {what}; {self.reason}", *slower, *options])

    def _repr_html_(self) -> str:
        what = "do nothing" if self.clustering is None else _named(self.clustering.columns, self.clustering.curve)
        rows = [(_named(each.columns, each.curve), f"{each.read_share:.1%}") for each in self.options]
        return render_card(self.table, (what, self.reason), ("option", "read after"), rows)


def advise(
    table: str,
    layout: LayoutReading[S],
    snapshot: S,
    queries: Sequence[Query],
    *,
    target_bytes: int,
    own: Clustering | None = None,
) -> Advice:
    """The clustering with which the queries read the least. Without queries, ranges of 1 % of each column are used.
    Other columns than the table's `own` are recommended where queries would read markedly less by them.

    Conditions on partition columns are ignored, as clustering does not change their effect. In a table without
    statistics a query opens every file now; the sample shows what clustering would gain. Raises RefusedTable if new
    files would have no statistics.
    """
    measured = layout.read(snapshot)
    if not measured.bounds:
        raise RefusedTable(
            table, "no file has statistics, and new ones would have none", "set properties that ask for them"
        )
    ranged = [query for query in of_columns(queries, measured.bounds) if query.ranges]
    columns = _candidates(measured, ranged, () if own is None else own.columns)
    sampled = dict.fromkeys((*columns, *(() if own is None else own.columns)))
    samples = dict(layout.sample(snapshot, tuple(sampled), SAMPLE_ROWS))
    ranged = ranged or _every_range(samples, columns)
    before = _costs(measured, ranged)

    def option_of(clustering: Clustering) -> Option:
        return _option(measured, samples, ranged, clustering, before, target_bytes)

    options = sorted(map(option_of, _clusterings(columns)), key=lambda option: (option.read_share, len(option.columns)))
    kept = None if own is None else option_of(own)
    return _judged(table, snapshot.version, measured, before, options, own=kept)


def _judged(
    name: str,
    version: int,
    measured: TableLayout,
    before: Sequence[float],
    options: Sequence[Option],
    *,
    own: Option | None = None,
) -> Advice:
    size, now = int(measured.bytes.sum()), float(np.mean(before)) if len(before) else 1.0
    best = _best(options, own)
    gain = now - best.read_share if best else 0.0
    is_worth = best is not None and gain >= LEAST_GAIN
    reason = "" if measured.is_bounded else "no file has statistics, so that no query skips any; "
    reason += f"queries read {now:.0%} of the table now"
    if best is not None:
        reason += f", {best.read_share:.0%} if clustered by {', '.join(best.columns)}"
    if own is not None:
        reason += _beside(best, own)
    return Advice(
        table=name,
        version=version,
        clustering=Clustering(best.columns, best.curve) if best is not None and is_worth else None,
        reason=reason + ("" if is_worth else f"; less than {LEAST_GAIN:.0%} is not worth a rewrite of {size:,} bytes"),
        read_share_before=now,
        read_share_after=best.read_share if best else now,
        rewrite_bytes=2 * size,
        payback_queries=round(2 / gain) if is_worth else None,
        slower=best.slower if best is not None and is_worth else (),
        options=tuple(options[:5]),
        own=() if own is None else own.columns,
    )


def _best(options: Sequence[Option], own: Option | None) -> Option | None:
    """The first option; the table's own where that gains too little beside it."""
    if own is not None and not (options and own.read_share - options[0].read_share >= LEAST_GAIN):
        return own
    return options[0] if options else None


def _beside(best: Option | None, own: Option) -> str:
    """A sentence on the table's own columns after the best ones."""
    if best is own:
        return ", its clustering columns"
    named = ", ".join(own.columns)
    return f", {own.read_share:.0%} by its clustering columns {named}: ALTER TABLE ... CLUSTER BY changes them"


def _named(columns: Sequence[str], curve: Curve) -> str:
    along = f" along the {curve} curve" if len(columns) > 1 else ""
    return f"cluster by {', '.join(columns)}{along}"


def _candidates(measured: TableLayout, queries: Sequence[Query], own: Sequence[str]) -> tuple[str, ...]:
    """Columns that queries use, the most used first; without queries, the table's own clustering columns, and others in
    the order of the table."""
    used = Counter(name for query in queries for name in query.ranges)
    names = [name for name, _ in used.most_common()] if used else list(dict.fromkeys((*own, *measured.bounds)))
    return tuple(names[:MOST_COLUMNS])


def _clusterings(columns: Sequence[str]) -> Iterator[Clustering]:
    for together in range(1, min(MOST_TOGETHER, len(columns)) + 1):
        for chosen in combinations(columns, together):
            yield Clustering(chosen, Curve.HILBERT)


def _every_range(samples: Mapping[int, pa.Table], columns: Sequence[str]) -> list[Query]:
    """Queries for ranges of 1 % of the sampled rows each, spread evenly over every column."""
    rows = pa.concat_tables(samples.values()) if samples else pa.table({})
    return [query for name in columns if name in rows.column_names for query in _ranges(name, rows.column(name))]


def _ranges(name: str, values: ChunkedArray) -> Iterator[Query]:
    present = values.drop_null()
    ordered = present.take(pc.sort_indices(present))
    starts = (np.arange(_RANGES) + 0.5) / _RANGES * (1 - _SHARE)
    for start in starts if len(ordered) else ():
        low, high = (ordered[int(part * (len(ordered) - 1))].as_py() for part in (start, start + _SHARE))
        yield Query(f"1 % ranges of {name}", {name: Range(low, high)})


def _option(
    measured: TableLayout,
    samples: Mapping[int, pa.Table],
    queries: Sequence[Query],
    clustering: Clustering,
    before: Sequence[float],
    target_bytes: int,
) -> Option:
    after = _costs(_simulated(measured, samples, clustering, target_bytes), queries)
    costs = _by_query(queries, before, after)
    return Option(clustering.columns, clustering.curve, float(np.mean(after)) if after else 1.0, costs)


def _by_query(queries: Sequence[Query], before: Sequence[float], after: Sequence[float]) -> tuple[QueryCost, ...]:
    """The mean costs by name of query: the ranges of one column share a name."""
    places: dict[str, list[int]] = {}
    for place, query in enumerate(queries):
        places.setdefault(query.text, []).append(place)
    return tuple(
        QueryCost(text, float(np.mean([before[i] for i in at])), float(np.mean([after[i] for i in at])))
        for text, at in places.items()
    )


def _simulated(
    measured: TableLayout, samples: Mapping[int, pa.Table], clustering: Clustering, target_bytes: int
) -> TableLayout:
    """The layout after clustering. Files of a unit without a sample stay unchanged."""
    parts = [_of_units(measured, ~np.isin(measured.unit, list(samples)))]
    for unit, sample in samples.items():
        inside = measured.unit == unit
        files = max(1, round(int(measured.bytes[inside].sum()) / target_bytes))
        bounds = simulated_layout(sample, clustering.columns, files=files, curve=clustering.curve)
        each = np.full(files, measured.bytes[inside].sum() / files)
        parts.append(TableLayout(np.full(files, unit), each.astype(np.int64), bounds))
    return _joined(parts, list(measured.bounds))


def _of_units(measured: TableLayout, inside: npt.NDArray[np.bool_]) -> TableLayout:
    kept = np.flatnonzero(inside)
    bounds = {
        name: FileBounds(each.lows.take(kept), each.highs.take(kept), each.rows[inside])
        for name, each in measured.bounds.items()
    }
    return TableLayout(measured.unit[inside], measured.bytes[inside], bounds)


def _joined(parts: Sequence[TableLayout], columns: Sequence[str]) -> TableLayout:
    shared = [name for name in columns if all(name in part.bounds for part in parts)]
    return TableLayout(
        np.concatenate([part.unit for part in parts]),
        np.concatenate([part.bytes for part in parts]),
        {name: _stacked([part.bounds[name] for part in parts]) for name in shared},
    )


def _stacked(parts: Sequence[FileBounds]) -> FileBounds:
    kind = parts[0].lows.type
    return FileBounds(
        pa.concat_arrays([part.lows.cast(kind) for part in parts]),
        pa.concat_arrays([part.highs.cast(kind) for part in parts]),
        np.concatenate([part.rows for part in parts]),
    )


def _costs(measured: TableLayout, queries: Sequence[Query]) -> list[float]:
    """For each query, the share of the bytes that it opens."""
    size = max(1, int(measured.bytes.sum()))
    return [float(measured.bytes[_opened(measured, query)].sum()) / size for query in queries]


def _opened(measured: TableLayout, query: Query) -> npt.NDArray[np.bool_]:
    opened = np.ones(len(measured.bytes), np.bool_)
    for name, span in query.ranges.items():
        if name in measured.bounds:
            opened &= _may_hold(measured.bounds[name], span)
    return opened


def _may_hold(files: FileBounds, span: Range) -> npt.NDArray[np.bool_]:
    kind = files.lows.type
    low, high = _scalar(span.low, kind), _scalar(span.high, kind)
    meets = np.ones(len(files.rows), np.bool_)
    if low is not None:
        meets &= np.asarray(pc.fill_null(pc.greater_equal(files.highs, low), pa.scalar(value=True)))
    if high is not None:
        meets &= np.asarray(pc.fill_null(pc.less_equal(files.lows, high), pa.scalar(value=True)))
    # Null matches no range: a file of only nulls is never opened.
    return meets & (files.rows > 0)


def _scalar(value: Literal, kind: pa.DataType) -> Scalar | None:
    """The end of a range as a value of the column; None (no limit) if it is not a value of the type."""
    if value is None:
        return None
    try:
        if pa.types.is_timestamp(kind):
            return pa.scalar(str(value)).cast(pa.timestamp(kind.unit)).cast(kind)
        return pa.scalar(value, kind) if isinstance(value, bytes) else pa.scalar(str(value)).cast(kind)
    except pa.ArrowInvalid:
        return None
