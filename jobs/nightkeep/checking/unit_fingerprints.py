"""Two views of the same units -> row counts, hash sums and keys of each, and the rows that differ. All in Spark SQL.

Two multisets of rows count as equal if their row counts and two 64-bit sums of row hashes are equal. Only unequal ones
are compared row by row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.checking.shown_values import json_value, readable
from nightkeep.model import Fingerprint, UnitKey, View
from nightkeep.records.check_report import Difference, Row
from nightkeep.spark.shared_files import SHOWN
from nightkeep.spark.view import Side, TableView, column, comparable

SAMPLE_ROWS = 20
"""How many rows of a difference are kept, on either side: enough to recognize a pattern, few enough to read."""

_SEEDS = {"a": 0x6E696768, "b": 0x6B656570}
_ORDER = "order"
_LOW_BITS = 0xFFFFFFFF
_MASK_BITS = 62


@dataclass(frozen=True, slots=True)
class UnitFacts:
    """The facts of one side of one unit. `keys`: the number of distinct keys, with null as a value, None if keys were
    not counted. `unsound`: rows that the format promises a reader never to meet. `order`: a sum of hashes of rows with
    their places, None where no order is promised."""

    content: Fingerprint = field(default_factory=Fingerprint)
    keys: int | None = None
    unsound: int = 0
    order: int | None = None

    def __add__(self, other: UnitFacts) -> UnitFacts:
        keys, order = (_sum(getattr(self, name), getattr(other, name)) for name in ("keys", "order"))
        return UnitFacts(self.content + other.content, keys, self.unsound + other.unsound, order)


Sides = tuple[Sequence[Side], Sequence[UnitKey]]
"""Versions in views, and the units that are measured in each of them."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Units of the group of sides with this number. With `names`, keys are counted, and the units are of one side."""

    number: int
    sides: Sequence[Side]
    units: Sequence[UnitKey]
    names: Sequence[str] = ()
    side: int = 0


def measure(
    relation: TableView, groups: Sequence[Sides], *, keys: Sequence[str] = (), keyed: Collection[UnitKey] = ()
) -> Sequence[Sequence[Mapping[UnitKey, UnitFacts]]]:
    """For each side of each group the facts of its units; zero for a unit without rows and for one that the version
    does not have. Sides of a group share what they read. One Spark query measures all of them.

    Keys are counted in units of `keyed`: those by which readers merge, or `keys` in a table whose readers merge by
    none.
    """
    found = [[dict.fromkeys(units, UnitFacts()) for _ in sides] for sides, units in groups]
    parts = [_Part(number, *group) for number, group in enumerate(groups) if group[1]]
    for part in tuple(parts):
        for number, side in enumerate(part.sides):
            names, units = _counted_keys(relation, side, keys), [unit for unit in part.units if unit in set(keyed)]
            if names and units:
                parts.append(_Part(part.number, [side], units, names, number))
                found[part.number][number] |= dict.fromkeys(units, UnitFacts(keys=0))
    frames = [
        _keys(relation, part, place) if part.names else _sums_of(relation, part, place)
        for place, part in enumerate(parts)
    ]
    # A side without files has no places.
    union = partial(DataFrame.unionByName, allowMissingColumns=True)
    for row in reduce(union, frames).collect() if frames else ():
        part, facts = parts[row["part"]], _facts(row.asDict())
        for number in [part.side] if part.names else _bits(row[SHOWN]):
            units_of = found[part.number][number]
            units_of[part.units[row["unit"]]] += facts
    return found


def _sums_of(relation: TableView, part: _Part, place: int) -> DataFrame:
    """One row for each unit and set of sides that show the same rows: its index, the bits of the sides, the row count
    and the sums of hashes of these rows, and `place` as `part`."""
    rows = relation.shown(part.sides, part.units, payload=_digests(relation.schema))
    sums = [*_SEEDS, *([_ORDER] if "place" in rows.columns else [])]
    hashed = rows.withColumn(_ORDER, F.xxhash64(*_SEEDS, "place")) if _ORDER in sums else rows
    return hashed.groupBy("unit", SHOWN).agg(*_sums(sums)).withColumn("part", F.lit(place))


def _keys(relation: TableView, part: _Part, place: int) -> DataFrame:
    """One row for each unit with rows: its index, the number of its distinct keys, and `place` as `part`. Shuffles all
    keys."""
    keys = {f"key{i}": _exact(relation.schema, name) for i, name in enumerate(part.names)}
    distinct = relation.rows(part.sides[0], part.units, payload=keys).groupBy("unit", *keys).agg(F.lit(1))
    return distinct.groupBy("unit").agg(F.count(F.lit(1)).alias("keys")).withColumn("part", F.lit(place))


def _bits(shown: int) -> list[int]:
    return [number for number in range(shown.bit_length()) if shown >> number & 1]


def _sum(left: int | None, right: int | None) -> int | None:
    return left if right is None else right if left is None else left + right


def _counted_keys(relation: TableView, side: Side, keys: Sequence[str]) -> Sequence[str]:
    """The columns whose values are counted. A merge leaves one row per key, so that there is nothing to count."""
    if not relation.keys:
        return keys
    return () if side.view is View.MERGED else relation.keys


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """The rows of one unit, joined. `difference` compares multisets: a row that one side has more often counts.

    `gone`: rows that only the first side has, whose key the other side lacks as well. `new`: the reverse. Both ignore
    copies, and values of rows with keys: the number of rows and the sums of their hashes show those.
    """

    difference: Difference = field(default_factory=Difference)
    gone: int = 0
    new: int = 0

    def counts(self, *, sums_agree: bool) -> tuple[int, int]:
        """The rows that are missing, and those that are extra. Where row counts and sums of hashes agree, nothing else
        could show other copies or other values, so these count then."""
        if sums_agree and not self.gone and not self.new:
            return self.difference.missing_count, self.difference.extra_count
        return self.gone, self.new


def compare_rows(
    relation: TableView, base: Side, other: Side, units: Sequence[UnitKey], *, keys: Sequence[str] = ()
) -> Mapping[UnitKey, ComparedRows]:
    """For each of `units`, as multisets: the rows of `base` that `other` lacks (missing), and the reverse (extra).

    `keys` identify the rows of a table whose readers merge by none.
    """
    if not units:
        return {}
    values = {column(i): _exact(relation.schema, f.name) for i, f in enumerate(relation.schema.fields)}
    sides = [
        relation.rows(side, units, payload=values).select("unit", *values, F.lit(sign).alias("sign"))
        for side, sign in ((base, 1), (other, -1))
    ]
    # Reads each side once; two EXCEPT ALL would read each twice.
    on_one_side = (F.max("sign") == F.min("sign")).alias("alone")
    net = sides[0].union(sides[1]).groupBy("unit", *values).agg(F.sum("sign").alias("net"), on_one_side)
    rows = net.where(F.col("net") != 0).withColumn("is_extra", F.col("net") < 0).persist()
    try:
        counts, samples, columns = _counts(rows), _samples(rows, relation), _differing_columns(rows, relation)
        unpaired = _unpaired(rows, _key_columns(relation, relation.keys or keys))
    finally:
        rows.unpersist()
    return {
        unit: ComparedRows(
            Difference(
                missing_count=counts.get((place, False), 0),
                extra_count=counts.get((place, True), 0),
                missing_rows=tuple(samples.get((place, False), ())),
                extra_rows=tuple(samples.get((place, True), ())),
                columns=columns.get(place, ()),
            ),
            *unpaired.get(place, (0, 0)),
        )
        for place, unit in enumerate(units)
    }


# ---- hashes ----


def _digests(schema: T.StructType) -> dict[str, Column]:
    values = [F.col(column(i)) for i in range(len(schema.fields))]
    parts = [part for value, f in zip(values, schema.fields, strict=True) for part in _hashed(value, f.dataType)]
    return {name: F.xxhash64(F.lit(seed), *_nulls(values), *parts) for name, seed in _SEEDS.items()}


def _nulls(values: Sequence[Column]) -> list[Column]:
    """Which values are null, as bits of one long for each 62 columns.

    xxhash64 leaves out nulls, so (null, 1) and (1, null) would hash alike. With a flag beside each value, two hashes of
    4 M rows of 6 columns take 1.3 CPU s instead of 1.1.
    """
    bits = [
        F.when(value.isNull(), F.lit(1 << place % _MASK_BITS)).otherwise(F.lit(0)).cast("long")
        for place, value in enumerate(values)
    ]
    groups = [bits[start : start + _MASK_BITS] for start in range(0, len(bits), _MASK_BITS)]
    return [reduce(Column.bitwiseOR, group) for group in groups]


def _hashed(value: Column, kind: T.DataType) -> list[Column]:
    """The values of a column that go into the hash of a row."""
    parts = [value]
    if isinstance(kind, T.FloatType | T.DoubleType):
        # xxhash64 also takes -0.0 for 0.0; only their texts differ.
        parts.append(F.when(value == 0, value.cast("string")))
    return parts


def _exact(schema: T.StructType, name: str) -> Column:
    position = schema.fieldNames().index(name)
    return comparable(F.col(column(position)), schema[position].dataType)


def _sums(names: Sequence[str]) -> list[Column]:
    # Sum halves of the hashes: a sum of 64-bit hashes overflows a long, which is an error in ANSI mode.
    halves = [
        half
        for name in names
        for half in (
            F.sum(F.shiftright(F.col(name), 32)).alias(f"{name}_high"),
            F.sum(F.col(name).bitwiseAND(F.lit(_LOW_BITS))).alias(f"{name}_low"),
        )
    ]
    unsound = F.count_if(~F.col("sound")).alias("unsound")
    return [F.count(F.lit(1)).alias("rows"), unsound, *halves]


def _facts(row: Mapping[str, int | None]) -> UnitFacts:
    whole = {name: _whole(row, name) for name in (*_SEEDS, _ORDER)}
    content = Fingerprint(row.get("rows") or 0, *(whole[name] or 0 for name in _SEEDS))
    return UnitFacts(content, row.get("keys"), row.get("unsound") or 0, whole[_ORDER])


def _whole(row: Mapping[str, int | None], name: str) -> int | None:
    high, low = (row.get(f"{name}_{half}") for half in ("high", "low"))
    return None if high is None or low is None else ((high << 32) + low) % (1 << 64)


# ---- rows ----


_Place = tuple[int, bool]
"""The index of a unit, and whether its rows are extra."""


def _counts(rows: DataFrame) -> Mapping[_Place, int]:
    counted = rows.groupBy("unit", "is_extra").agg(F.sum(F.abs("net")).alias("rows"))
    return {(row["unit"], row["is_extra"]): row["rows"] for row in counted.collect()}


def _unpaired(rows: DataFrame, keys: Sequence[str]) -> Mapping[int, tuple[int, int]]:
    """`gone` and `new` by the index of the unit. Of a key, each row of one side stands for one of the other."""
    gone, new = (F.sum(F.when(F.col("alone") & (sign * F.col("net") > 0), sign * F.col("net"))) for sign in (1, -1))
    sides = [F.coalesce(side, F.lit(0)).alias(name) for side, name in ((gone, "gone"), (new, "new"))]
    counted = rows.groupBy("unit", *keys).agg(*sides)
    if keys:
        more = F.col("gone") - F.col("new")
        counted = counted.groupBy("unit").agg(
            F.sum(F.greatest(more, F.lit(0))).alias("gone"), F.sum(F.greatest(-more, F.lit(0))).alias("new")
        )
    return {row["unit"]: (row["gone"], row["new"]) for row in counted.collect()}


def _samples(rows: DataFrame, relation: TableView) -> Mapping[_Place, list[Row]]:
    schema = relation.schema
    names = [column(i) for i in range(len(schema.fields))]
    # Rows of one key are likely among the first of both sides then.
    keys = _key_columns(relation, relation.keys)
    order = F.row_number().over(Window.partitionBy("unit", "is_extra").orderBy(*keys, *names))
    first = rows.withColumn("place", order).where(F.col("place") <= SAMPLE_ROWS)
    kinds = [rows.schema[name].dataType for name in names]
    shown = [readable(F.col(name), kind).alias(name) for name, kind in zip(names, kinds, strict=True)]
    samples: defaultdict[_Place, list[Row]] = defaultdict(list)
    for row in first.orderBy("unit", "place").select("unit", "is_extra", *shown).collect():
        values = (json_value(row[name], kind) for name, kind in zip(names, kinds, strict=True))
        samples[row["unit"], row["is_extra"]].append(dict(zip(schema.fieldNames(), values, strict=True)))
    return samples


def _differing_columns(rows: DataFrame, relation: TableView) -> Mapping[int, tuple[str, ...]]:
    """The names of the columns that differ, by the index of the unit. Rows of a key that both sides have are compared;
    in a table without keys, all rows are."""
    schema, keys = relation.schema, _key_columns(relation, relation.keys)
    names = {column(i): field.name for i, field in enumerate(schema.fields) if column(i) not in keys}
    if not names:
        return {}
    # Half a hash, as a sum of whole ones overflows.
    halves = {name: F.shiftright(F.xxhash64(F.col(name).isNull(), F.col(name)), 32) for name in names}
    differs = [(F.sum(F.col("net") * half) != 0).alias(name) for name, half in halves.items()]
    both = (F.max("is_extra") & F.max(~F.col("is_extra"))).alias("both")
    pairs = rows.groupBy("unit", *keys).agg(both, *differs).where("both")
    found = pairs.groupBy("unit").agg(*(F.max(name).alias(name) for name in names)).collect()
    return {row["unit"]: tuple(label for name, label in names.items() if row[name]) for row in found}


def _key_columns(relation: TableView, keys: Sequence[str]) -> list[str]:
    places = {field.name: column(i) for i, field in enumerate(relation.schema.fields)}
    return [places[name] for name in keys]
