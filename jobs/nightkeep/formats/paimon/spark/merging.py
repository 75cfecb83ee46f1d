"""Stored rows -> the row that Paimon's merge engine makes of each key, in Spark: rows of a key are folded as an array.

The third implementation, beside those of the rewrite and of the gate. All read the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.formats.paimon.metadata.merge_engine import (
    BLANK,
    OF_ELEMENTS,
    FieldRule,
    Function,
    MergeEngine,
    MergeRules,
)
from nightkeep.formats.paimon.spark.data_files import LIVE_KINDS
from nightkeep.formats.paimon.spark.merged_elements import added, added_older, taken_back
from nightkeep.formats.paimon.spark.row_roles import is_retract, sequences, with_roles
from nightkeep.spark.view import comparable

_ROWS = "rows"


def merged(
    rows: DataFrame,
    *,
    by: Sequence[str],
    place: Column,
    fields: Sequence[tuple[str, str, T.DataType]],
    rules: MergeRules,
    merges_single: bool,
) -> DataFrame:
    """One row per key that is left: `by`, a live `kind`, and the columns of `fields`: the column of `rows`, the name in
    the table, the type. Columns of OF_ELEMENTS are as `merged_elements.parsed` makes them.

    `by` distinguishes keys; of two rows of a key the one with the smaller `place` is older. `rows` has a `kind`.
    `merges_single`: the only row of a key is merged too, as a lookup does, so that a retract may become a row.
    """
    ordered = sequences(rules, {name: (column, kind) for column, name, kind in fields})
    entry = F.struct(place.alias("place"), F.col("kind"), *(F.col(column) for column, _, _ in fields), *ordered)
    grouped = rows.groupBy(*by).agg(F.sort_array(F.collect_list(entry)).alias(_ROWS))
    stored = grouped.schema[_ROWS].dataType.elementType  # type: ignore[attr-defined]
    types = [stored[f"sequence{n}"].dataType for n in range(len(rules.groups))]
    return (
        grouped.withColumn(_ROWS, with_roles(F.col(_ROWS), rules, types))
        .where(_is_left(rules, merges_single=merges_single))
        .select(
            *by,
            F.lit(LIVE_KINDS[0]).cast("tinyint").alias("kind"),
            *(_folded(column, kind, rules.fields[name], rules).alias(column) for column, name, kind in fields),
        )
    )


def _is_left(rules: MergeRules, *, merges_single: bool) -> Column:
    left = ~F.element_at(_ROWS, -1)["role"]["removes"]
    if not merges_single:
        left = left & ((F.size(_ROWS) > 1) | ~is_retract(F.element_at(_ROWS, 1)["row"]))
    if rules.engine is MergeEngine.PARTIAL_UPDATE:
        left = left & F.exists(_ROWS, lambda each: ~is_retract(each["row"]))
    return left


def _folded(column: str, kind: T.DataType, rule: FieldRule, rules: MergeRules) -> Column:
    """The column's value after all rows; `seen`: an insert has started it."""

    def state(value: Column, seen: Column) -> Column:
        return F.struct(value.cast(kind).alias("value"), seen.alias("seen"))

    def step(held: Column, each: Column) -> Column:
        row, role, value = each["row"], each["role"], each["row"][column]
        before = F.when(role["base"], value).otherwise(held["value"])
        newer = role["counts"] if rule.group is None else F.coalesce(role[f"newer{rule.group}"], F.lit(False))  # noqa: FBT003
        older = F.lit(False) if rule.group is None else ~role[f"newer{rule.group}"]  # noqa: FBT003
        retracted = (
            F.when(newer, _after_retract(rule, before, value, kind))
            .when(older, _after_older_retract(rule, before, value, kind))
            .otherwise(before)
        )
        inserted, seen = _after_insert(rule, before, held["seen"], value, kind)
        late, late_seen = _after_older_insert(rule, before, held["seen"], value, kind)
        return F.when(is_retract(row), state(retracted, held["seen"])).otherwise(
            F.when(newer, state(inserted, seen))
            .when(older, state(late, late_seen))
            .otherwise(state(before, held["seen"]))
        )

    started = state(F.lit(None), F.lit(False))  # noqa: FBT003
    folded = F.aggregate(_ROWS, started, step, lambda held: held["value"])
    only = F.element_at(_ROWS, 1)["row"]
    # Readers show a key's only row as it is stored.
    return F.when((F.size(_ROWS) == 1) & ~is_retract(only), only[column]).otherwise(folded)


def _after_insert(
    rule: FieldRule, before: Column, seen: Column, value: Column, kind: T.DataType
) -> tuple[Column, Column]:
    yes = F.lit(True)  # noqa: FBT003
    match rule.function:
        case Function.LAST_VALUE | Function.KEY | Function.SEQUENCE | Function.OF_GROUP:
            return value, yes
        case Function.LAST_NON_NULL_VALUE:
            return F.coalesce(value, before), yes
        case Function.FIRST_VALUE:
            return F.when(seen, before).otherwise(value), yes
        case Function.FIRST_NON_NULL_VALUE:
            takes = ~seen & value.isNotNull()
            return F.when(takes, value).otherwise(before), seen | value.isNotNull()
        case Function.MAX | Function.BOOL_OR | Function.MIN | Function.BOOL_AND:
            greater = rule.function in (Function.MAX, Function.BOOL_OR)
            return _extreme(before, value, kind, Column.__gt__ if greater else Column.__lt__), yes
        case _:
            return _computed(rule, before, value, kind), yes


def _computed(rule: FieldRule, before: Column, value: Column, kind: T.DataType) -> Column:
    match rule.function:
        case Function.LISTAGG:
            return _joined(rule, before, value)
        case function if function in OF_ELEMENTS:
            return added(rule, before, value)
        case function:
            both = before + value if function is Function.SUM else before * value
            return _combined(before, value, alone=value, both=both.try_cast(kind))


def _after_older_insert(
    rule: FieldRule, before: Column, seen: Column, value: Column, kind: T.DataType
) -> tuple[Column, Column]:
    """After a row that belongs before what its group has."""
    match rule.function:
        case Function.LAST_VALUE | Function.SEQUENCE | Function.OF_GROUP:
            return before, seen
        case Function.LAST_NON_NULL_VALUE:
            return F.coalesce(before, value), seen
        case Function.FIRST_VALUE:
            return F.when(seen, value).otherwise(before), F.lit(True)  # noqa: FBT003
        case Function.LISTAGG:
            return _joined(rule, value, before), seen
        case function if function in OF_ELEMENTS:
            return added_older(rule, before, value), seen
        case _:
            return _after_insert(rule, before, seen, value, kind)


def _after_retract(rule: FieldRule, before: Column, value: Column, kind: T.DataType) -> Column:
    if rule.ignores_retracts:
        return before
    match rule.function:
        case function if function in OF_ELEMENTS:
            return taken_back(rule, before, value)
        case Function.KEY | Function.SEQUENCE:
            return value
        case Function.LAST_VALUE | Function.OF_GROUP:
            return F.lit(None)
        case Function.LAST_NON_NULL_VALUE:
            return F.when(value.isNull(), before)
        case Function.SUM:
            return _combined(before, value, alone=-value, both=(before - value).try_cast(kind))
        case Function.PRODUCT:
            return F.when(before.isNull() | value.isNull(), before).otherwise(_quotient(before, value, kind))
        case _:
            return before


def _after_older_retract(rule: FieldRule, before: Column, value: Column, kind: T.DataType) -> Column:
    if rule.function in (Function.SEQUENCE, Function.OF_GROUP):
        return before
    return _after_retract(rule, before, value, kind)


def _extreme(before: Column, value: Column, kind: T.DataType, beats: Callable[[Column, Column], Column]) -> Column:
    # Spark treats 0.0 and -0.0 as equal. As texts, the negative one comes first, as in Java.
    new, old = (F.struct(each, comparable(each, kind)) for each in (value, before))
    return F.when(before.isNull() | (value.isNotNull() & beats(new, old)), value).otherwise(before)


def _combined(before: Column, value: Column, *, alone: Column, both: Column) -> Column:
    """A sum or product that skips nulls. It is `both`, which is null beyond the digits of a decimal, where both are
    there."""
    return F.when(before.isNull(), alone).when(value.isNull(), before).otherwise(both)


def _quotient(before: Column, value: Column, kind: T.DataType) -> Column:
    """Whole numbers are rounded to zero; floating ones are divided by IEEE 754, by zero as well."""
    if isinstance(kind, T.DecimalType):
        return before
    if not isinstance(kind, T.FloatType | T.DoubleType):
        return F.call_function("div", before, value)
    infinity = F.when(value.cast("string").startswith("-"), F.lit(float("-inf"))).otherwise(F.lit(float("inf")))
    return F.when(value == 0, before * infinity.cast(kind)).otherwise(before / F.nullif(value, F.lit(0)).cast(kind))


def _joined(rule: FieldRule, first: Column, second: Column) -> Column:
    """Both texts with the delimiter between them; of a blank one and another, the other."""
    literal = f"\\Q{rule.delimiter}\\E"
    if rule.distinct:
        there = F.split(first, literal, -1)
        parts = F.array_distinct(F.split(second, literal, -1))
        fresh = F.filter(parts, lambda part: ~part.rlike(BLANK) & ~F.array_contains(there, part))
        both = F.array_join(F.concat(F.array(first), fresh), rule.delimiter)
    else:
        both = F.concat(first, F.lit(rule.delimiter), second)
    return F.when(_is_blank(second), first).when(_is_blank(first), second).otherwise(both)


def _is_blank(text: Column) -> Column:
    return text.isNull() | text.rlike(BLANK)
