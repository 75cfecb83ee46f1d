"""Per-file bounds of one column -> how many files its readers can leave out, and the bounds a curve would give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.kernels.arrow_buffers import Rows, is_bytes
from nightkeep.kernels.axis import Axis, Floats, even_axis
from nightkeep.kernels.curve import curve_keys, order_of
from nightkeep.kernels.ranks import Sample, ascending, bounds_of, present_values, rank_ids
from nightkeep.model import Curve
from nightkeep.model.arrow_types import Array, ChunkedArray

Flags = npt.NDArray[np.bool_]

# Places per file of the distribution that bounds imply; more where there are few files.
_PLACES_PER_FILE = 16
_PLACES = 1024
_GOLDEN = (5**0.5 - 1) / 2
_OVERLAP_POINTS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class FileBounds:
    """One column of a table's files: `lows` and `highs` in its type, null where a file lacks the bound, and `rows`.

    `rows` counts values that are not null. For a range of values, no reader opens a file without such rows, and every
    reader opens a file that has rows and lacks a bound.
    """

    lows: Array
    highs: Array
    rows: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        if not len(self.lows) == len(self.highs) == len(self.rows):
            raise ValueError(f"bounds of {len(self.lows)}, {len(self.highs)} and {len(self.rows)} files, expected one")

    @property
    def bounded(self) -> Flags:
        """The files that have rows and both bounds."""
        return (self.rows > 0) & _valid(self.lows) & _valid(self.highs)


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Range queries of one column, from `lows` to `highs`, both included, as places on `axis`."""

    axis: Axis
    lows: Floats
    highs: Floats


def queries_of(files: FileBounds, *, share: float = 0.01, count: int = 100) -> Queries:
    """`count` queries that cover `share` of the rows each, spread evenly over the column; none without any bounds.

    Query i is from quantile (i + 1/2) / count * (1 - share) to the quantile `share` above. The distribution is the
    one the bounds imply: a file's rows lie evenly between its bounds, bytes being numbers as in even_axis. The
    ends of queries for whole numbers and times are whole. Queries of one layout are good for any other layout.
    """
    bounded = np.flatnonzero(files.bounded)
    lows, highs = files.lows.take(bounded), files.highs.take(bounded)
    axis = even_axis(lows, highs)
    if not len(bounded):
        return Queries(axis, np.zeros(0), np.zeros(0))
    places, below = _distribution(_finite(axis.places(lows)), _finite(axis.places(highs)), files.rows[bounded])
    quantiles = (np.arange(count) + 0.5) / count * (1 - share)
    starts, ends = np.interp(quantiles, below, places), np.interp(quantiles + share, below, places)
    if _is_whole(lows.type):
        starts, ends = np.rint(starts), np.rint(ends)
    return Queries(axis, starts, ends)


def skipped_share(files: FileBounds, queries: Queries) -> float:
    """The mean over the queries of the share of files that a query does not open; 0 without queries or files."""
    if not len(queries.lows) or not len(files.rows):
        return 0.0
    bounded = files.bounded
    lows = np.sort(queries.axis.places(files.lows)[bounded])
    highs = np.sort(queries.axis.places(files.highs)[bounded])
    before = np.searchsorted(highs, queries.lows, side="left")
    after = len(lows) - np.searchsorted(lows, queries.highs, side="right")
    empty = np.count_nonzero(files.rows == 0)
    return float(np.mean(before + after + empty) / len(files.rows))


def overlap(files: FileBounds) -> float:
    """The mean number of files that may hold a value of the column, over 1,000 evenly spaced quantiles.

    The distribution is that of queries_of; 1 is the least where all files have bounds, and 0 means that there are none.
    """
    points = queries_of(files, share=0.0, count=_OVERLAP_POINTS)
    return (1.0 - skipped_share(files, points)) * len(files.rows) if len(points.lows) else 0.0


def simulated_layout(
    sample: pa.Table, columns: Sequence[str], *, files: int, curve: Curve, range_ids: int = 1000
) -> Mapping[str, FileBounds]:
    """The bounds of every column that has an order, if `sample` were laid along a curve by `columns` in `files` files.

    Raises ValueError for a curve column whose type has no order.
    """
    bounds = [bounds_of([Sample(sample.column(name), sample.num_rows)], range_ids) for name in columns]
    ids = [rank_ids(each, sample.column(name)) for each, name in zip(bounds, columns, strict=True)]
    return layout(sample, order_of(curve_keys(ids, bounds[0].bits, curve)), files=files)


def layout(sample: pa.Table, order: Rows, *, files: int) -> Mapping[str, FileBounds]:
    """The bounds of every column that has an order, if rows in this `order` were cut into `files` equal files."""
    file_of = np.empty(sample.num_rows, np.int64)
    file_of[order] = np.arange(sample.num_rows) * files // max(1, sample.num_rows)
    ordered = [name for name in sample.column_names if _has_order(sample.schema.field(name).type)]
    return {name: _file_bounds(sample.column(name), file_of, files) for name in ordered}


def _has_order(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _has_order(kind.value_type)
    interval = kind == pa.month_day_nano_interval()
    return is_bytes(kind) or pa.types.is_decimal128(kind) or (pa.types.is_primitive(kind) and not interval)


def _file_bounds(column: ChunkedArray, file_of: Rows, files: int) -> FileBounds:
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    of = file_of[pc.is_valid(column).to_numpy()] if column.null_count else file_of
    values = present_values(column)
    order, _ = ascending(values)
    # By file, then by value: the first and the last of each file are its bounds.
    order = order[np.argsort(of[order], kind="stable")]
    rows = np.bincount(of, minlength=files)
    stops = np.cumsum(rows)
    order = np.append(order, 0)
    lows: Array = pa.array(order[stops - rows], mask=rows == 0)
    highs: Array = pa.array(order[stops - 1], mask=rows == 0)
    return FileBounds(values.take(lows), values.take(highs), rows)


def _is_whole(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind)


def _distribution(lows: Floats, highs: Floats, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Places, ascending, and the share of rows below each, linear between two of them; a jump is a place twice.

    A file is its bounds and a number of places between them, each the middle of a part of its rows. They are not
    at the same parts of every file, lest those of many files with about the same bounds leave gaps.
    """
    parts = max(_PLACES_PER_FILE, _PLACES // len(rows))
    within = (np.arange(parts)[:, None] + (np.arange(len(rows)) * _GOLDEN + 0.5) % 1.0) / parts
    inside = np.clip(lows * (1 - within) + highs * within, lows, highs)
    places, which = np.unique(np.concatenate([lows, highs, inside.ravel()]), return_inverse=True)
    spread = np.where(lows < highs, rows / parts, 0.0)
    spread_at = np.bincount(which[2 * len(rows) :], np.tile(spread, parts), len(places))
    jump_at = np.bincount(which[: len(rows)], np.where(lows < highs, 0.0, rows), len(places))
    through = np.cumsum(spread_at + jump_at) - spread_at / 2
    below = np.stack([through - jump_at, through], axis=1).ravel() / rows.sum()
    return np.repeat(places, 2), below


def _finite(places: Floats) -> Floats:
    """Infinite places and NaN as the outermost finite ones, or zero."""
    finite = places[np.isfinite(places)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    return np.nan_to_num(places, nan=high, posinf=high, neginf=low)


def _valid(values: Array) -> Flags:
    return np.asarray(values.is_valid())
