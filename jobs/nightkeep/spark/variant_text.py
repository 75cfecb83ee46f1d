"""A variant as text that is equal for equal values, however they are encoded or shredded. Made by Spark alone.

Neither schema_of_variant nor to_json does: JSON writes a date and a text alike, and 1.5 as a double and as a decimal.
The schema keeps these apart but for the values of an array, whose types it merges. So the text of a variant is its
schema and its JSON; one with an array is taken apart, level by level, and each scalar is one line of its path, its type
and its JSON. Whole numbers and decimals are one type: what is shredded into decimals comes back as decimals.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_NODES = "array<struct<path: string, kind: string, value: variant>>"
_OBJECT, _ARRAY = "OBJECT<", "ARRAY<"
_NUMBER = r"BIGINT|DECIMAL\([0-9]+,[0-9]+\)"
_STATE = f"struct<open: {_NODES}, done: array<string>>"


def variant_text(value: Column) -> Column:
    """The text; null for a null, not for a variant that is null."""
    schema, json = F.schema_of_variant(value), F.to_json(value)
    # Half of the time of the lines, and less. A name may have any text, and is in the JSON as well.
    whole = F.concat(F.regexp_replace(schema, _NUMBER, "NUMBER"), F.lit(" "), json)
    return F.when(value.isNull(), None).when(schema.contains(_ARRAY), _lines(value, json)).otherwise(whole)


def _lines(value: Column, json: Column) -> Column:
    start = F.struct(F.array(_node(F.lit(""), value)).alias("open"), F.array().alias("done")).cast(_STATE)
    # No deeper than there are brackets. A level without nodes costs nothing.
    brackets = F.length(json) - F.length(F.translate(json, "{[", ""))
    lines = F.aggregate(F.sequence(F.lit(0), brackets), start, _next_level, lambda state: state["done"])
    return F.array_join(F.sort_array(lines), "\n")


def _node(path: Column, value: Column) -> Column:
    return F.struct(path.alias("path"), F.schema_of_variant(value).alias("kind"), value.alias("value"))


def _next_level(state: Column, _: Column) -> Column:
    nodes = state["open"]
    inner = F.flatten(F.transform(nodes, _values_of))
    lines = F.concat(state["done"], F.transform(nodes, _line))
    opened = F.struct(inner.alias("open"), lines.alias("done")).cast(_STATE)
    return F.when(F.size(nodes) == 0, state).otherwise(opened)


def _line(node: Column) -> Column:
    """Of an object or array, its kind alone: its values have lines of their own."""
    kind, text = node["kind"], F.to_json(node["value"])
    return F.concat(
        node["path"],
        F.when(kind.startswith(_OBJECT), F.lit(" OBJECT"))
        .when(kind.startswith(_ARRAY), F.lit(" ARRAY"))
        .when(kind.rlike(_NUMBER), F.concat(F.lit(" NUMBER "), text))
        .otherwise(F.concat(F.lit(" "), kind, F.lit(" "), text)),
    )


def _values_of(node: Column) -> Column:
    """The values of an object or array, with their paths. A name may have any text, so its length precedes it."""
    path, value, kind = node["path"], node["value"], node["kind"]
    fields = F.transform(
        F.map_entries(value.cast("map<string, variant>")),
        lambda field: _node(
            F.concat(path, F.lit("."), F.length(field["key"]), F.lit(":"), field["key"]), field["value"]
        ),
    )
    items = F.transform(
        value.cast("array<variant>"), lambda item, index: _node(F.concat(path, F.lit("["), index, F.lit("]")), item)
    )
    return (
        F.when(kind.startswith(_OBJECT), fields.cast(_NODES))
        .when(kind.startswith(_ARRAY), items.cast(_NODES))
        .otherwise(F.array().cast(_NODES))
    )
