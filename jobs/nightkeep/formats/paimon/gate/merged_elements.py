"""Arrays and maps of merged rows, by the gate: one turn of every key after the other, as frames of elements.

The order of elements that have none (FieldRule.is_unordered) is not decided here: see `unordered`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from nightkeep.formats.paimon.gate.comparable import comparable
from nightkeep.formats.paimon.metadata.element_rules import NullKeys
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function
from nightkeep.model.arrow_types import Array, ChunkedArray, Datum

_KEY, _SAME = "key", ["key", "same"]
_LISTS: Any = pa.ListArray
_MAPS: Any = pa.MapArray
_THERE = pl.col("row_null").not_()


def elements(parts: pl.DataFrame, column: ChunkedArray, rule: FieldRule) -> ChunkedArray:
    """One value per key, in the order of keys. `parts` as in merged_values."""
    keyed = parts.with_columns(key=pl.col(_KEY).rle_id().cast(pl.Int64))
    lists: Any = pa.concat_arrays([*column.chunks, pa.array([], column.type)])
    values = _values(lists)
    stored = _stored(lists, values, rule)
    turns = _turns(keyed)
    held = stored.head(0).with_columns(key=pl.lit(0, pl.Int64)).drop("at")
    there = pl.DataFrame({_KEY: pl.Series([], dtype=pl.Int64)})
    for number in range(int(turns["turn"].to_numpy().max(initial=-1)) + 1):
        now = turns.filter(pl.col("turn") == number)
        fresh = now.select(_KEY, "at").join(stored, on="at", how="inner", maintain_order="left").select(held.columns)
        touched = held.join(now, on=_KEY, how="semi", maintain_order="left")
        made, held_keys = _merged(touched, there, fresh, now, rule)
        held = pl.concat([held.join(now, on=_KEY, how="anti", maintain_order="left"), made.select(held.columns)])
        there = held_keys
    return _arrays(held, there, keyed[_KEY].n_unique(), lists.type, values)


def _turns(keyed: pl.DataFrame) -> pl.DataFrame:
    """What happens to each key, in order: `what` is "base", "newer", "older" or "back"."""
    base = keyed.filter("base").select(_KEY, "at", "there", what=pl.lit("base"), step=pl.lit(0))
    counted = keyed.filter(pl.col("newer") | pl.col("older"))
    side = pl.when("back").then(pl.lit("back")).when("newer").then(pl.lit("newer")).otherwise(pl.lit("older"))
    more = counted.select(_KEY, "at", "there", what=side, step=pl.lit(1))
    ordered = pl.concat([base, more]).sort(_KEY, "at", "step")
    return ordered.with_columns(turn=pl.int_range(pl.len()).over(_KEY))


def _merged(
    held: pl.DataFrame, there: pl.DataFrame, fresh: pl.DataFrame, now: pl.DataFrame, rule: FieldRule
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The elements of the keys of `now` after their turn, and all keys whose value is not null then."""
    marked = now.join(there.with_columns(had=pl.lit(value=True)), on=_KEY, how="left", maintain_order="left")
    marked = marked.with_columns(pl.col("had").fill_null(value=False))
    parts = []
    for what in ("base", "newer", "older", "back"):
        keys = marked.filter(pl.col("what") == what)
        old, new = (side.join(keys, on=_KEY, how="semi", maintain_order="left") for side in (held, fresh))
        if what == "base":
            parts.append(new)
        elif what == "back":
            parts.append(_taken_back(old, new, keys, rule))
        elif what == "newer" or (rule.function is Function.COLLECT and not rule.ignores_retracts):
            parts.append(_added(old, new, keys.rename({"had": "left", "there": "right"}), rule))
        else:
            parts.append(_added(new, old, keys.rename({"there": "left", "had": "right"}), rule))
    stays = (pl.col("what") == "back") & pl.col("had") | (pl.col("what") != "back") & (
        pl.col("there") | pl.col("had") & (pl.col("what") != "base")
    )
    untouched = there.join(now, on=_KEY, how="anti")
    names = held.columns
    return pl.concat([part.select(names) for part in parts]), pl.concat([untouched, marked.filter(stays).select(_KEY)])


def _added(left: pl.DataFrame, right: pl.DataFrame, keys: pl.DataFrame, rule: FieldRule) -> pl.DataFrame:
    """`agg(left, right)`. `keys` has `left` and `right`: whether a key has a value there."""
    assert rule.elements is not None
    both = pl.concat([left.with_columns(side=pl.lit(0)), right.with_columns(side=pl.lit(1))])
    if rule.function is Function.COLLECT:
        if not rule.distinct:
            return both
        is_first = pl.int_range(pl.len()).over(_SAME) == 0
        return both.filter(is_first | (pl.col("side") == 0) & pl.lit(rule.elements.rows))
    both = both.join(keys.select(_KEY, "right", has_left="left"), on=_KEY, how="left", maintain_order="left")
    if rule.function is Function.MERGE_MAP:
        return both.unique(_SAME, keep="last", maintain_order=True)
    # Without a right side the left stays as it is.
    alone, counted = both.filter(~pl.col("right")), both.filter("right")
    if not rule.elements.key:
        return pl.concat([alone, _limited(counted, rule.elements.limit)])
    counted = counted.filter(~pl.col("skipped"))
    if rule.function is Function.NESTED_PARTIAL_UPDATE:
        return pl.concat([alone, _partly(counted)])
    newest = counted.sort("rank", maintain_order=True).unique(_SAME, keep="last", maintain_order=True)
    return pl.concat([alone, newest])


def _limited(both: pl.DataFrame, limit: int | None) -> pl.DataFrame:
    if limit is None:
        return both.filter(_THERE)
    is_left = pl.col("side") == 0
    had = is_left.sum().over(_KEY)
    full = pl.col("has_left") & (had >= limit)
    place = (_THERE & ~is_left).cum_sum().over(_KEY)
    return both.filter(pl.when(full).then(is_left).otherwise(_THERE & (is_left | (place <= limit - had))))


def _partly(rows: pl.DataFrame) -> pl.DataFrame:
    """For each field, the last value that is not null."""
    fields = [name for name in rows.columns if name.startswith("field ")]
    kept = [pl.col(name).drop_nulls().last() for name in fields]
    rest = [pl.col(name).last() for name in rows.columns if name not in (*fields, *_SAME)]
    return rows.group_by(_SAME, maintain_order=True).agg(*kept, *rest).select(rows.columns)


def _taken_back(held: pl.DataFrame, gone: pl.DataFrame, keys: pl.DataFrame, rule: FieldRule) -> pl.DataFrame:
    """`retract(held, gone)`."""
    assert rule.elements is not None
    if rule.function is Function.COLLECT:
        times = gone.group_by(_SAME).agg(times=pl.len())
        counted = held.join(times, on=_SAME, how="left", maintain_order="left")
        place = pl.int_range(pl.len()).over(_SAME)
        return counted.filter(place >= pl.col("times").fill_null(0))
    if rule.function is Function.MERGE_MAP:
        return held.join(gone, on=_SAME, how="anti", maintain_order="left")
    # A retract of null leaves even what a map of rows would leave out.
    null = keys.filter(~pl.col("there"))
    alone, counted = (held.join(null, on=_KEY, how=how, maintain_order="left") for how in ("semi", "anti"))
    counted = counted.filter(~pl.col("skipped"))
    if rule.elements.key:
        counted = counted.unique(_SAME, keep="last", maintain_order=True)
    taken = gone.filter(~pl.col("skipped"))
    return pl.concat([alone, counted.join(taken, on=_SAME, how="anti", maintain_order="left")])


def _values(lists: Any) -> Any:
    if pa.types.is_map(lists.type):
        return pa.StructArray.from_arrays([lists.keys, lists.items], names=["key", "value"])
    return lists.values


def _stored(lists: Any, values: Any, rule: FieldRule) -> pl.DataFrame:
    """Every element of rows that are not null, in order: `at` of its row, `element` its own place, `same`, `rank`,
    whether it is null, and what a nested key leaves out; for a partial update the place of every field's value."""
    options = rule.elements
    assert options is not None
    sizes, starts = np.diff(lists.offsets.to_numpy()), lists.offsets.to_numpy()[:-1]
    sizes = np.where(np.asarray(lists.is_valid()), sizes, 0)
    at = np.repeat(np.arange(len(lists)), sizes)
    element = np.arange(len(at)) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    null = np.asarray(values.is_null())
    frame = {"at": at, "element": element, "row_null": null[element]}
    names = ["key"] if rule.function is Function.MERGE_MAP else list(options.key)
    keys = [values.field(name) for name in names]
    compares = rule.distinct or not rule.ignores_retracts or keys
    frame["same"] = _ranked(keys or [values])[element] if compares else np.zeros(len(element), np.int64)
    frame["rank"] = _ranked([values.field(n) for n in options.sequence])[element] if options.sequence else 0 * element
    skipped = null
    if options.key and options.null_keys is NullKeys.IGNORE:
        skipped = np.logical_or.reduce([null, *(np.asarray(key.is_null()) for key in keys)])
    frame["skipped"] = skipped[element]
    made = pl.DataFrame(frame)
    if rule.function is not Function.NESTED_PARTIAL_UPDATE:
        return made
    valid = {f"field {n}": np.asarray(child.is_valid())[element] for n, child in enumerate(values.flatten())}
    return made.with_columns(pl.when(pl.Series(flags)).then(pl.col("element")).alias(n) for n, flags in valid.items())


def _ranked(columns: list[Array]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Numbers that ascend with the values, null first, and are equal for equal ones."""
    leaves = [leaf for column in columns for leaf in _leaves(column)]
    frame = pl.DataFrame({str(n): pl.Series(comparable(pa.chunked_array([leaf]))) for n, leaf in enumerate(leaves)})
    names = frame.columns
    ordered = frame.with_row_index("at").sort(names, nulls_last=False)
    changes = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in names)
    ranks = np.zeros(len(frame), np.int64)
    ranks[ordered["at"].to_numpy()] = ordered.select(changes.cast(pl.Int64).cum_sum()).to_series().to_numpy()
    return ranks


def _leaves(column: Any) -> list[Array]:
    if not pa.types.is_struct(column.type):
        return [column]
    return [column.is_valid(), *(leaf for child in column.flatten() for leaf in _leaves(child))]


def _arrays(held: pl.DataFrame, there: pl.DataFrame, keys: int, kind: Any, values: Any) -> ChunkedArray:
    ordered = held.sort(_KEY, maintain_order=True)
    sizes = np.bincount(ordered[_KEY].to_numpy(), minlength=keys)
    none = np.ones(keys, np.bool_)
    none[there[_KEY].to_numpy()] = False
    # A value is null where its first offset is.
    offsets: Datum = pa.array(np.append(0, np.cumsum(sizes)).astype(np.int32), mask=np.append(none, [False]))
    items = _items(ordered, values)
    if pa.types.is_map(kind):
        made: Datum = _MAPS.from_arrays(offsets, items.field("key"), items.field("value"), type=kind)
    else:
        made = _LISTS.from_arrays(offsets, items, type=kind)
    return pa.chunked_array([made], kind)


def _items(ordered: pl.DataFrame, values: Any) -> Any:
    fields = [name for name in ordered.columns if name.startswith("field ")]
    places = ordered["element"].to_arrow()
    if not fields:
        return values.take(places)
    children = [child.take(ordered[name].to_arrow()) for name, child in zip(fields, values.flatten(), strict=True)]
    null = pa.array(ordered["row_null"].to_numpy())
    return pa.StructArray.from_arrays(children, fields=list(values.type), mask=null)
