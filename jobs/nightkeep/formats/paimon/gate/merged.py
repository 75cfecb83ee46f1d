"""Rows of keys that the merge engine makes one row of -> those rows, as the gate computes them.

A value is a maximum over the rows that count: the place of the last row, of the last that is not null, of the greatest
value. The rewrite works differently: it goes through the rows of a key one by one. Both read the same rules.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from nightkeep.formats.paimon.data.columns import DELETE_KIND, KIND, RETRACT_KINDS
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules
from nightkeep.model.arrow_types import ChunkedArray

_EXTREMES = (Function.MAX, Function.MIN, Function.BOOL_AND, Function.BOOL_OR)
_KEY, _AT, _BASE = pl.col("key"), pl.col("at"), pl.col("base")
"""A row's key and place; and the place of the key's base, whose values stand, null or not, until later rows replace
them: -1 where there is none."""
_RETRACT = pl.col("kind").is_in(RETRACT_KINDS)


def merged_rows(rows: pa.Table, keys: npt.NDArray[np.int64], rules: MergeRules) -> pa.Table:
    """One row of the columns of `rules.fields` for each key that is left, in the order of `keys`.

    `rows` are sorted by key and then by sequence; `keys` has an ascending number per row, equal for rows of one key.
    """
    frame = pl.DataFrame(
        {
            "key": keys,
            "at": np.arange(rows.num_rows),
            "kind": rows.column(KIND).to_numpy(),
            **{f"there {name}": pc.is_valid(rows.column(name)).to_numpy() for name in rules.fields},
            **{
                f"value {name}": pl.Series(comparable(rows.column(name)))
                for name, rule in rules.fields.items()
                if rule.function in _EXTREMES
            },
        }
    )
    frame = frame.with_columns(_base(rules).over("key").fill_null(-1).alias("base"))
    left = frame.group_by("key", maintain_order=True).agg(_is_left(rules).alias("left")).filter("left")["key"]
    frame = frame.filter(_KEY.is_in(left.implode()))
    places = frame.group_by("key", maintain_order=True).agg(
        _place(name, rule, rules).alias(f"place {name}")
        for name, rule in rules.fields.items()
        if rule.function is not Function.SUM
    )
    return pa.table(
        {
            name: _sums(frame, rows.column(name), name, rule)
            if rule.function is Function.SUM
            else rows.column(name).take(places[f"place {name}"].to_arrow().cast(pa.int64()))
            for name, rule in rules.fields.items()
        }
    )


def comparable(column: ChunkedArray) -> ChunkedArray:
    """Floats as integers that order like Java's Double.compare: -0.0 below 0.0, NaN last."""
    if not pa.types.is_floating(column.type):
        return column
    width = column.type.bit_width
    values = column.combine_chunks().fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(values), values.dtype.type("nan"), values).view(f"i{width // 8}")
    ordered = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    return pa.chunked_array([pa.array(ordered, mask=column.is_null().combine_chunks().to_numpy(zero_copy_only=False))])


def _base(rules: MergeRules) -> pl.Expr:
    """The place of a key's last -D, if that removes a row; else, for a partial update, of a retract that came first."""
    removal = _AT.filter(pl.col("kind") == DELETE_KIND).max()
    first = pl.when(_RETRACT.first()).then(_AT.first())
    update = rules.engine is MergeEngine.PARTIAL_UPDATE
    bases = [*([removal] if rules.removes_on_delete else []), *([first] if update else [])]
    return pl.coalesce(*bases, pl.lit(None, pl.Int64))


def _is_left(rules: MergeRules) -> pl.Expr:
    """Whether the key has a row: its last row does not remove it and, for a partial update, one was inserted."""
    conditions = [
        *([pl.col("kind").last() != DELETE_KIND] if rules.removes_on_delete else []),
        *([(~_RETRACT).any()] if rules.engine is MergeEngine.PARTIAL_UPDATE else []),
    ]
    return pl.all_horizontal(*conditions, pl.lit(value=True))


def _place(name: str, rule: FieldRule, rules: MergeRules) -> pl.Expr:
    """The place of the row whose value the column has; null for null."""
    base = pl.when(_BASE.first() >= 0).then(_BASE.first())
    there, counts = pl.col(f"there {name}"), _AT > _BASE
    stands = (counts & ~_RETRACT | (_AT == _BASE)) & there
    match rule.function:
        case Function.KEY:
            return _AT.max()
        case Function.LAST_VALUE:
            return _last(counts, rule, rules, base)
        case Function.LAST_NON_NULL_VALUE:
            return _last(counts & there, rule, rules, base)
        case Function.FIRST_VALUE:
            return _first(~_RETRACT, base)
        case Function.FIRST_NON_NULL_VALUE:
            return _first(~_RETRACT & there, base)
        case Function.MAX | Function.BOOL_OR:
            return _AT.filter(stands).sort_by(pl.col(f"value {name}").filter(stands)).last()
        case function:
            assert function in (Function.MIN, Function.BOOL_AND)
            return _AT.filter(stands).sort_by(pl.col(f"value {name}").filter(stands)).first()


def _last(able: pl.Expr, rule: FieldRule, rules: MergeRules, base: pl.Expr) -> pl.Expr:
    """The last row that is able, null if it takes a value back, and the base where there is none."""
    if rules.engine is MergeEngine.PARTIAL_UPDATE or rule.ignores_retracts:
        return pl.coalesce(_AT.filter(able & ~_RETRACT).max(), base)
    taken_back = _RETRACT.filter(able).last().fill_null(value=False)
    return pl.when(~taken_back).then(pl.coalesce(_AT.filter(able).max(), base))


def _first(able: pl.Expr, base: pl.Expr) -> pl.Expr:
    """The first row that is able. It counts once: if it came before the base, no later one does."""
    first = _AT.filter(able).min()
    return pl.when(first > _BASE.first()).then(first).otherwise(base)


def _sums(frame: pl.DataFrame, column: ChunkedArray, name: str, rule: FieldRule) -> ChunkedArray:
    """The sums of each key; null where no row has a number, or beyond the digits of a decimal."""
    is_base = _AT == _BASE
    counted = (_AT > _BASE) & ~_RETRACT if rule.ignores_retracts else _AT > _BASE
    keys = frame["key"].unique(maintain_order=True).to_numpy()
    some = frame.filter((counted | is_base) & pl.col(f"there {name}")).select("key", "at", back=_RETRACT & ~is_base)
    numbers = column.take(some["at"].to_arrow())
    target = np.searchsorted(keys, some["key"].to_numpy())
    add = _decimal_sums if pa.types.is_decimal(column.type) else _number_sums
    sums = add(numbers, some["back"].to_numpy(), target, len(keys))
    none = np.ones(len(keys), np.bool_)
    none[target] = False
    shown: ChunkedArray = pc.if_else(pa.array(none), pa.scalar(None, column.type), sums.cast(column.type))
    return shown


def _number_sums(
    column: ChunkedArray, back: npt.NDArray[np.bool_], target: npt.NDArray[np.int64], keys: int
) -> ChunkedArray:
    """In the order of rows, because sums of floating numbers depend on it."""
    numbers = column.to_numpy()
    # 0.0 + -0.0 would lose a sign that the only number of a sum keeps.
    sums = np.full(keys, -0.0 if numbers.dtype.kind == "f" else 0, numbers.dtype)
    # The difference of two infinities is no number, in Java as well.
    with np.errstate(over="ignore", invalid="ignore"):
        np.add.at(sums, target, np.where(back, -numbers, numbers))
    return pa.chunked_array([sums])


def _decimal_sums(
    column: ChunkedArray, back: npt.NDArray[np.bool_], target: npt.NDArray[np.int64], keys: int
) -> ChunkedArray:
    numbers = pl.Series(column.cast(pa.decimal128(38, column.type.scale)))
    each = pl.DataFrame({"key": target, "number": numbers, "back": back})
    signed = pl.when("back").then(-pl.col("number")).otherwise(pl.col("number"))
    sums = pl.DataFrame({"key": np.arange(keys)}).join(each.group_by("key").agg(signed.sum()), on="key", how="left")
    totals: ChunkedArray = pa.chunked_array([sums.sort("key")["number"].to_arrow()])
    limit = pa.scalar(10**column.type.precision, pa.decimal128(38, 0))
    within = pc.less(pc.abs(totals), limit.cast(pa.decimal256(60, column.type.scale)))
    shown: ChunkedArray = pc.if_else(within, totals, pa.scalar(None, totals.type))
    return shown
