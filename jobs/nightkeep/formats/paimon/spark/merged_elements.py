"""Arrays and maps of a column, as JSON -> the array or map that its merge function makes of two, in Spark.

An element is a struct: its `text`, the `key` by which it is distinguished, the `rank` that orders elements of one key,
whether a nested key leaves it out (`skipped`), and the texts of its `fields` where they are merged one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nightkeep.formats.paimon.metadata.element_rules import ElementRule, NullKeys
from nightkeep.formats.paimon.metadata.merge_engine import FieldRule, Function, MergeRules
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.metadata.types import PaimonType
from nightkeep.formats.paimon.spark.nested_values import stored_type
from nightkeep.spark.view import column, comparable


def with_elements(
    rows: DataFrame, schema: PaimonSchema, rules: MergeRules, change: Callable[[Column, PaimonType, FieldRule], Column]
) -> DataFrame:
    """`rows` with every column of OF_ELEMENTS changed."""
    typed = [(column(i), field.type, rules.fields[field.name]) for i, field in enumerate(schema.fields)]
    changed = {name: change(F.col(name), kind, rule) for name, kind, rule in typed if rule.elements is not None}
    return rows.withColumns(changed) if changed else rows


def alike(value: Column, kind: PaimonType, rule: FieldRule) -> Column:
    """A text of `nested_text` -> the text that `as_text` has for the value."""
    return as_text(parsed(value, kind, rule), rule)


def parsed(value: Column, kind: PaimonType, rule: FieldRule) -> Column:
    """The elements of a text of `nested_text`; null for null."""
    options = _rule(rule)
    ids = {child.name: f"$.f{child.id}" for child in kind.children[0].type.children}
    texts = F.from_json(value, "array<string>")
    partial = rule.function is Function.NESTED_PARTIAL_UPDATE

    def element(text: Column) -> Column:
        keys = [F.get_json_object(text, ids[name]) for name in options.key]
        fields = F.array(*(F.get_json_object(text, path) for path in ids.values())) if partial else F.lit(None)
        return F.struct(
            text.alias("text"),
            _key(text, keys, rule).alias("key"),
            _rank(text, kind, options, ids).alias("rank"),
            _skipped(text, keys, options).alias("skipped"),
            fields.cast("array<string>").alias("fields"),
        )

    return F.transform(texts, element)


def as_text(elements: Column, rule: FieldRule) -> Column:
    """A text that is equal for equal values: elements without an order are sorted."""

    def text(each: Column) -> Column:
        return F.to_json(each["fields"]) if rule.function is Function.NESTED_PARTIAL_UPDATE else each["text"]

    texts = F.transform(elements, lambda each: F.when(each["text"].isNotNull(), text(each)))
    return F.to_json(F.array_sort(texts) if rule.is_unordered else texts, {"ignoreNullFields": "false"})


def added(rule: FieldRule, left: Column, right: Column) -> Column:
    """`agg(left, right)`."""
    options, every = _rule(rule), F.concat(_some(left), _some(right))
    match rule.function:
        case Function.COLLECT if not rule.distinct:
            made = every
        case Function.COLLECT if options.rows:
            made = F.concat(_some(left), F.array_except(_some(right), _some(left)))
        case Function.COLLECT:
            made = F.array_distinct(every)
        case Function.MERGE_MAP:
            made = F.concat(F.filter(_some(left), _not_in(_some(right))), _some(right))
        case _:
            return F.when(right.isNull(), left).otherwise(_nested(rule, left, right))
    return F.when(left.isNotNull() | right.isNotNull(), made)


def added_older(rule: FieldRule, held: Column, value: Column) -> Column:
    """`aggReversed(held, value)`: a column that ignores retracts has its default."""
    if rule.function is Function.COLLECT and not rule.ignores_retracts:
        return added(rule, held, value)
    return added(rule, value, held)


def taken_back(rule: FieldRule, held: Column, gone: Column) -> Column:
    """`retract(held, gone)`; of a function without inverse `held`."""
    if rule.ignores_retracts or rule.function is Function.NESTED_PARTIAL_UPDATE:
        return held
    if rule.function is Function.COLLECT:
        left = F.aggregate(gone, held, lambda some, each: _without_first(some, each["key"]))
    elif rule.function is Function.MERGE_MAP:
        left = F.filter(held, _not_in(gone))
    else:
        counted = F.filter(held, lambda each: ~each["skipped"])
        counted = _newest(counted, by_rank=False) if _rule(rule).key else counted
        left = F.filter(counted, _not_in(F.filter(gone, lambda each: ~each["skipped"])))
    return F.when(held.isNull() | gone.isNull(), held).otherwise(left)


def _rule(rule: FieldRule) -> ElementRule:
    assert rule.elements is not None
    return rule.elements


def _key(text: Column, keys: list[Column], rule: FieldRule) -> Column:
    if rule.function is Function.MERGE_MAP:
        return F.get_json_object(text, "$.key")
    if keys:
        return F.to_json(F.array(*keys), {"ignoreNullFields": "false"})
    return F.coalesce(F.concat(F.lit("="), text), F.lit(""))


def _rank(text: Column, kind: PaimonType, options: ElementRule, ids: Mapping[str, str]) -> Column:
    """The sequence fields as a struct that Spark orders as Paimon does, null first."""
    types = {child.name: stored_type(child.type) for child in kind.children[0].type.children}
    parts = [F.lit(0)]
    for name in options.sequence:
        value = F.get_json_object(text, ids[name]).cast(types[name])
        # Spark treats 0.0 and -0.0 as equal. As texts, the negative one comes first, as in Java.
        parts += [value, comparable(value, types[name])]
    return F.struct(*(part.alias(f"r{n}") for n, part in enumerate(parts)))


def _skipped(text: Column, keys: list[Column], options: ElementRule) -> Column:
    skipped = text.isNull()
    for key in keys if options.null_keys is NullKeys.IGNORE else ():
        skipped = skipped | key.isNull()
    return skipped


def _some(elements: Column) -> Column:
    return F.coalesce(elements, F.array())


def _nested(rule: FieldRule, left: Column, right: Column) -> Column:
    options = _rule(rule)
    counted = F.filter(F.concat(_some(left), _some(right)), lambda each: ~each["skipped"])
    if rule.function is Function.NESTED_PARTIAL_UPDATE:
        return _partly(counted)
    if options.key:
        return _newest(counted, by_rank=True)
    if options.limit is None:
        return counted
    old, new = (F.filter(_some(side), lambda each: ~each["skipped"]) for side in (left, right))
    room = F.lit(options.limit) - F.size(_some(left))
    more = F.concat(old, F.slice(new, F.lit(1), F.greatest(room, F.lit(0))))
    return F.when(left.isNotNull() & (room <= 0), left).otherwise(more)


def _newest(elements: Column, *, by_rank: bool) -> Column:
    """The last element of each key among those of the greatest rank."""
    numbered = F.transform(elements, lambda each, place: F.struct(each.alias("each"), place.alias("place")))

    def is_beaten(one: Column) -> Column:
        def beats(other: Column) -> Column:
            same, later = other["each"]["key"] == one["each"]["key"], other["place"] > one["place"]
            if not by_rank:
                return same & later
            mine, its = one["each"]["rank"], other["each"]["rank"]
            return same & ((its > mine) | (its.eqNullSafe(mine) & later))

        return F.exists(numbered, beats)

    return F.transform(F.filter(numbered, lambda one: ~is_beaten(one)), lambda one: one["each"])


def _partly(elements: Column) -> Column:
    """One element of each key, with the last text of every field that is not null."""

    def whole(last: Column) -> Column:
        same = F.filter(elements, lambda each: each["key"] == last["key"])
        fields = F.transform(
            last["fields"],
            lambda _, n: F.try_element_at(
                F.filter(F.transform(same, lambda each: F.get(each["fields"], n)), Column.isNotNull), F.lit(-1)
            ),
        )
        return F.struct(last["text"], last["key"], last["rank"], last["skipped"], fields.alias("fields"))

    return F.transform(_newest(elements, by_rank=False), whole)


def _not_in(others: Column) -> Callable[[Column], Column]:
    return lambda one: ~F.exists(others, lambda other: other["key"] == one["key"])


def _without_first(elements: Column, key: Column) -> Column:
    place = F.array_position(F.transform(elements, lambda each: each["key"]), key).cast("int")
    left = F.concat(
        F.slice(elements, F.lit(1), F.greatest(place - 1, F.lit(0))), F.slice(elements, place + 1, F.size(elements))
    )
    return F.when(place > 0, left).otherwise(elements)
