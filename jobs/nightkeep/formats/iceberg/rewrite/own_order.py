"""Tables with a sort order (WRITE ORDERED BY): the layout that the table itself asks for, and the files that have it.

The default order of the planned version decides. A run sorts the files of a partition that are not in that order, and
states the order's id in the files that it writes. These do not overlap each other: they are a sorted run, as the cubes
of a clustering are, and stay until what has come since is large in comparison. Files that another writer sorted stay
too, unless they are small or overlap one another: then they are no sorted run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from pyiceberg.transforms import parse_transform

from nightkeep.clustering.layout_names import cube_of
from nightkeep.clustering.picking import UnitFiles, cluster_work
from nightkeep.clustering.sizing import Sizes
from nightkeep.formats.iceberg.data.transforms import transformed
from nightkeep.formats.iceberg.metadata.leaf_columns import IcebergLeaf
from nightkeep.formats.iceberg.metadata.order_columns import SourceColumn, described, order_fault, source_columns
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit
from nightkeep.formats.iceberg.metadata.sort_orders import SortField, SortOrder
from nightkeep.formats.iceberg.rewrite.file_bounds import file_bounds
from nightkeep.formats.iceberg.rewrite.optimize import LAYOUT, IcebergCluster, IcebergInputs, IcebergPack
from nightkeep.formats.iceberg.rewrite.placed_files import PlacedFile
from nightkeep.formats.iceberg.rewrite.sizing import sizes_of
from nightkeep.kernels.arrow_buffers import leaf_values, one_array
from nightkeep.kernels.ranks import ascending, present_values
from nightkeep.kernels.sort_keys import SortColumn, sort_keys
from nightkeep.model import Clustering, Curve, Request
from nightkeep.model.arrow_types import Array
from nightkeep.protocol import OpenWide, Work

Ranks = np.typing.NDArray[np.int64]
_FOREIGN: Final = "sorted by others"
"""The one run of files that other writers sorted. No name of a file of ours has it."""
_MONOTONE: Final = ("identity", "truncate", "year", "month", "day", "hour")
"""Transforms that keep the order of values, so that bounds of a column show whether its files overlap."""


@dataclass(frozen=True, slots=True)
class TableOrder:
    """The fields of a sort order, each with its column. Pickles."""

    fields: tuple[tuple[SortField, SourceColumn], ...]

    @property
    def tops(self) -> Sequence[str]:
        return list(dict.fromkeys(column.path[0] for _, column in self.fields))

    def keys(self, rows: pa.Table) -> pa.Table:
        return sort_keys([_sort_column(rows, field, column) for field, column in self.fields])


def own_clustering(snapshot: IcebergSnapshot) -> Clustering | None:
    """The table's sort order. None if it has none, or one that rows cannot be sorted by."""
    order = snapshot.schema.sort_orders.default
    if order is None or order_fault(snapshot.schema, order) is not None:
        return None
    first = source_columns(snapshot.schema, order)[0][1]
    return Clustering((first.name,), Curve.Z, order=described(snapshot.schema, order))


def sort_order_note(snapshot: IcebergSnapshot) -> str | None:
    """A note on a sort order that rows cannot be sorted by: files are packed then, and state no order."""
    order = snapshot.schema.sort_orders.default
    fault = None if order is None else order_fault(snapshot.schema, order)
    if order is None or fault is None:
        return None
    return f"rewritten files are not sorted by the table's {described(snapshot.schema, order)}: {fault}"


def require_columns(snapshot: IcebergSnapshot, request: Request) -> None:
    """As FormatLayout.require_columns, for a clustering that the caller asks for."""
    if not _is_by_order(request):
        LAYOUT.require_columns(snapshot, request)


def cluster_files(
    snapshot: IcebergSnapshot, unit: IcebergUnit, request: Request
) -> Work[IcebergPack | IcebergCluster | OpenWide] | None:
    """The work that `cluster_work` picks: by the table's order if the request names that, else along a curve."""
    clustering, order = request.clustering, snapshot.schema.sort_orders.default
    if clustering is None or order is None or not _is_by_order(request):
        return LAYOUT.cluster_files(snapshot, unit, request)
    by, sizes = TableOrder(source_columns(snapshot.schema, order)), sizes_of(snapshot, request)
    files, first = LAYOUT.files(unit), _leaf(by.fields[0][1])
    runs = _sorted_runs(snapshot, files, sizes)
    sorting: UnitFiles[PlacedFile] = UnitFiles(
        files,
        clustering,
        (first.path,),
        cube_of=lambda file: runs.get(file.file.path),
        bounds_of=lambda some: file_bounds([placed.file for placed in some], [first]),
        order=by,
    )
    return cluster_work(sorting, sizes, request, inputs_of=lambda some: IcebergInputs.of(snapshot, unit, some, request))


def _is_by_order(request: Request) -> bool:
    return request.clustering is not None and request.clustering.order is not None


def _leaf(column: SourceColumn) -> IcebergLeaf:
    return IcebergLeaf(column.path, column.field)


def _sort_column(rows: pa.Table, field: SortField, column: SourceColumn) -> SortColumn:
    leaf = _leaf(column)
    values = one_array(leaf_values(rows, leaf.path))
    if pa.types.is_large_binary(values.type) and values.type != leaf.type:
        # Chunks of texts come together as bytes.
        values = values.cast(pa.large_string() if pa.types.is_string(leaf.type) else leaf.type)
    values = transformed(values, leaf.field.field_type, parse_transform(field.transform))
    return SortColumn(pa.chunked_array([values]), field.descending, field.nulls_first)


def _sorted_runs(snapshot: IcebergSnapshot, files: Sequence[PlacedFile], sizes: Sizes) -> Mapping[str, str]:
    """The sorted run of each file that is in the table's order, by its path."""
    orders, order = snapshot.schema.sort_orders, snapshot.schema.sort_orders.default
    if order is None:
        return {}
    alike = orders.alike(order)
    named = [file for file in files if file.file.sort_order_id in alike]
    own = {file.file.path: run for file in named if (run := cube_of(file.name, order.mark)) is not None}
    others = [file for file in named if file.file.path not in own]
    large = [file for file in others if file.bytes >= sizes.small]
    apart = _apart(snapshot.schema, order, large)
    runs = {**own, **{file.file.path: _FOREIGN for file in apart}}
    left = [file for file in files if file.file.path not in runs]
    # Rewriting one small file that is sorted would gain nothing.
    lone = left if len(left) == 1 and left[0] in others else []
    return {**runs, **{file.file.path: _FOREIGN for file in lone}}


def _apart(schema: IcebergSchema, order: SortOrder, files: Sequence[PlacedFile]) -> Sequence[PlacedFile]:
    """The files that overlap no other one, by the bounds of the order's first column."""
    field, column = source_columns(schema, order)[0]
    if len(files) < 2:
        return files
    if field.transform.split("[")[0] not in _MONOTONE:
        return ()
    spans = _spans(files, field, _leaf(column))
    if spans is None:
        return ()
    return [file for file, among in zip(files, _overlapping(*spans), strict=True) if not among]


def _spans(files: Sequence[PlacedFile], field: SortField, leaf: IcebergLeaf) -> tuple[Ranks, Ranks] | None:
    """The ranks of the least and the greatest value of each file, nulls and NaN included; None if one is not known."""
    count, number = len(files), leaf.field.field_id
    bounds = file_bounds([placed.file for placed in files], [leaf])[leaf.path]
    rows = np.array([file.rows for file in files], np.int64)
    nans = np.zeros(count, np.int64)
    if pa.types.is_floating(leaf.type):
        counted = [placed.file.count("nan_value_counts", number) for placed in files]
        if None in counted:
            return None
        nans = np.array(counted, np.int64)
    has_values = bounds.rows > nans
    if not bounds.bounded[has_values].all():
        return None
    ends = [column.filter(pa.array(has_values)) for column in (bounds.lows, bounds.highs)]
    known = _ranks(ends, 2 * int(has_values.sum()))
    nan = len(known) + 1
    lows, highs = np.full(count, nan), np.full(count, nan)
    lows[has_values], highs[has_values] = known[: len(known) // 2], known[len(known) // 2 :]
    highs[nans > 0] = nan
    # Where nulls are in the order of values, which is read from its end if it descends.
    null = nan + 1 if field.nulls_first == field.descending else 0
    is_null, has_nulls = bounds.rows == 0, bounds.rows < rows
    lows[has_nulls], highs[has_nulls] = np.minimum(lows, null)[has_nulls], np.maximum(highs, null)[has_nulls]
    lows[is_null], highs[is_null] = null, null
    return lows, highs


def _ranks(ends: Sequence[Array], count: int) -> Ranks:
    """The rank of each value, from 1; equal values have the same."""
    order, starts = ascending(present_values(pa.chunked_array(list(ends))))
    ranks = np.empty(count, np.int64)
    ranks[order] = np.cumsum(np.isin(np.arange(count), starts))
    return ranks


def _overlapping(lows: Ranks, highs: Ranks) -> np.typing.NDArray[np.bool_]:
    """Whether a file overlaps another one. Files that only touch do not."""
    by_low = np.lexsort((highs, lows))
    begins, reached = lows[by_low], np.maximum.accumulate(highs[by_low])
    found = np.zeros(len(lows), np.bool_)
    found[1:] |= begins[1:] < reached[:-1]
    found[:-1] |= highs[by_low][:-1] > begins[1:]
    overlapping = np.empty(len(lows), np.bool_)
    overlapping[by_low] = found
    return overlapping
