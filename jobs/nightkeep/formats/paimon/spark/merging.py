"""Stored rows -> the row that Paimon's merge engine makes of each key, in Spark: rows of a key are folded as an array.

The third implementation, beside those of the rewrite and of the gate. All read the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeEngine, MergeRules
from nightkeep.formats.paimon.spark.data_files import LIVE_KINDS
from nightkeep.spark.view import comparable

_DELETE = 3
_ROWS = "rows"


def merged(
    rows: DataFrame, *, by: Sequence[str], place: Column, fields: Sequence[tuple[str, T.DataType, FieldRule]],
    rules: MergeRules,
) -> DataFrame:  # fmt: skip
    """One row per key that is left: `by`, a live `kind`, and the columns named in `fields`.

    `by` tells keys apart; of two rows of a key the one with the smaller `place` is older. `rows` has a `kind`.
    """
    entry = F.struct(place.alias("place"), F.col("kind"), *(F.col(name) for name, _, _ in fields))
    grouped = rows.groupBy(*by).agg(F.sort_array(F.collect_list(entry)).alias(_ROWS))
    return grouped.where(_is_left(rules)).select(
        *by,
        F.lit(LIVE_KINDS[0]).cast("tinyint").alias("kind"),
        *(_folded(name, kind, rule, rules).alias(name) for name, kind, rule in fields),
    )


def _is_left(rules: MergeRules) -> Column:
    left = F.lit(True)  # noqa: FBT003
    if rules.removes_on_delete:
        left = left & (F.element_at(_ROWS, -1)["kind"] != _DELETE)
    if rules.engine is MergeEngine.PARTIAL_UPDATE:
        left = left & F.exists(_ROWS, lambda row: ~_is_retract(row))
    return left


def _is_retract(row: Column) -> Column:
    return ~row["kind"].isin(*LIVE_KINDS)


def _folded(name: str, kind: T.DataType, rule: FieldRule, rules: MergeRules) -> Column:
    """The column's value after all rows; `seen` tells whether a row has begun it."""

    def state(value: Column, seen: Column) -> Column:
        return F.struct(value.cast(kind).alias("value"), seen.alias("seen"))

    def step(held: Column, row: Column) -> Column:
        value, is_delete = row[name], row["kind"] == _DELETE
        replaced = state(value, held["seen"] | F.lit(rules.engine is MergeEngine.PARTIAL_UPDATE))
        retracted = state(_after_retract(rule, held["value"], value, kind), held["seen"])
        if rules.engine is MergeEngine.PARTIAL_UPDATE:
            retracted = F.when(~held["seen"], replaced).otherwise(held)
        inserted = _after_insert(rule, held, value, kind)
        kept = F.when(_is_retract(row), retracted).otherwise(state(*inserted))
        return F.when(is_delete, replaced).otherwise(kept) if rules.removes_on_delete else kept

    begun = state(F.lit(None), F.lit(False))  # noqa: FBT003
    return F.aggregate(_ROWS, begun, step, lambda held: held["value"])


def _after_insert(rule: FieldRule, held: Column, value: Column, kind: T.DataType) -> tuple[Column, Column]:
    before, seen, yes = held["value"], held["seen"], F.lit(True)  # noqa: FBT003
    match rule.function:
        case Function.LAST_VALUE | Function.KEY:
            return value, yes
        case Function.LAST_NON_NULL_VALUE:
            return F.coalesce(value, before), yes
        case Function.FIRST_VALUE:
            return F.when(seen, before).otherwise(value), yes
        case Function.FIRST_NON_NULL_VALUE:
            takes = ~seen & value.isNotNull()
            return F.when(takes, value).otherwise(before), seen | value.isNotNull()
        case Function.MAX | Function.BOOL_OR:
            return _extreme(before, value, kind, Column.__gt__), yes
        case Function.MIN | Function.BOOL_AND:
            return _extreme(before, value, kind, Column.__lt__), yes
        case Function.SUM:
            return _combined(before, value, alone=value, both=(before + value).try_cast(kind)), yes


def _after_retract(rule: FieldRule, before: Column, value: Column, kind: T.DataType) -> Column:
    if rule.ignores_retracts:
        return before
    match rule.function:
        case Function.KEY:
            return value
        case Function.LAST_VALUE:
            return F.lit(None)
        case Function.LAST_NON_NULL_VALUE:
            return F.when(value.isNull(), before)
        case Function.SUM:
            return _combined(before, value, alone=-value, both=(before - value).try_cast(kind))
        case _:
            return before


def _extreme(before: Column, value: Column, kind: T.DataType, beats: Callable[[Column, Column], Column]) -> Column:
    # Spark treats 0.0 and -0.0 as equal. As texts, the negative one comes first, as in Java.
    new, old = (F.struct(each, comparable(each, kind)) for each in (value, before))
    return F.when(before.isNull() | (value.isNotNull() & beats(new, old)), value).otherwise(before)


def _combined(before: Column, value: Column, *, alone: Column, both: Column) -> Column:
    """A sum that skips nulls. It is `both`, which is null beyond the digits of a decimal, where both are there."""
    return F.when(before.isNull(), alone).when(value.isNull(), before).otherwise(both)
