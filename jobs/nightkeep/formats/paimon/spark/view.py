"""A Paimon version -> Spark DataFrames: Spark's Parquet reader, an anti-join for vectors, a window for merging.

Shares metadata and the vector codec with the other rooms, but no code that rewrites, looks up or verifies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import and_
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.branch import location_and_branch
from nightkeep.formats.paimon.metadata.changelog import changelog_rules, lowest_level_counts
from nightkeep.formats.paimon.metadata.changelog_files import with_changelog
from nightkeep.formats.paimon.metadata.features import refuse_schema
from nightkeep.formats.paimon.metadata.file_formats import format_of
from nightkeep.formats.paimon.metadata.merge_engine import (
    MergeRules,
    merge_rules,
    sequence_descends,
    sequence_fields,
    skips_retracts,
)
from nightkeep.formats.paimon.metadata.record_expiry import record_age
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, has_vectors, keeps_first_row, skips_level0
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile
from nightkeep.formats.paimon.spark.append_view import AppendView
from nightkeep.formats.paimon.spark.changelog_check import Sides, lifted_files, unreported
from nightkeep.formats.paimon.spark.data_files import (
    LIVE_KINDS,
    PaimonStoredFile,
    Placed,
    numbered_files,
    shared_files,
    stored_rows,
    times_alike,
    uncompared,
)
from nightkeep.formats.paimon.spark.deletion_vectors import vector_positions, without_deleted
from nightkeep.formats.paimon.spark.doubled_keys import READABLE, doubled_keys
from nightkeep.formats.paimon.spark.expired_rows import is_expired
from nightkeep.formats.paimon.spark.largest_run import ReadsRows, largest_runs, met_rows
from nightkeep.formats.paimon.spark.lowest_level import lowest_level_only
from nightkeep.formats.paimon.spark.merged_elements import alike, as_text, parsed, with_elements
from nightkeep.formats.paimon.spark.merging import merged
from nightkeep.formats.paimon.spark.statistics_check import misstated
from nightkeep.formats.paimon.spark.stored_times import is_finer_than_spark
from nightkeep.formats.paimon.spark.versions import PaimonVersions, lasting_facts, published_rows
from nightkeep.model import Address, UnitKey, View
from nightkeep.spark.shared_files import SHOWN, hidden_at, hidden_where, read_apart, shown_by_some
from nightkeep.spark.stored_files import BROADCAST_POSITIONS, broadcast_few, no_rows, words_of
from nightkeep.spark.view import Side, TableVersion, UnitState, column, comparable


def open_table(address: Address, spark: SparkSession) -> PaimonView | AppendView:
    """The view of the table, with its latest schema. Raises RefusedTable for features that Spark's readers lack."""
    relation = PaimonView(address, spark)
    refuse_schema(address.name, relation.table, location_and_branch(address.location)[1])
    if not relation.table.primary_keys:
        return AppendView(address, spark)
    for field in relation.table.select((*relation.table.trimmed_keys, *sequence_fields(relation.table))):
        if is_finer_than_spark(field.type):
            raise RefusedTable(
                address.name,
                f"{field.name} is {field.type} and orders rows",
                "Spark has no nanoseconds; use microseconds, TIMESTAMP(6)",
            )
    return relation


class PaimonView:
    """The check's view of a table with a primary key. A unit is a bucket. Versions are read once and cached."""

    def __init__(self, address: Address, spark: SparkSession) -> None:
        self._spark, self._versions = spark, PaimonVersions(address, spark)

    @property
    def table(self) -> PaimonSchema:
        return self._versions.table

    @property
    def schema(self) -> T.StructType:
        return self._versions.schema

    @property
    def keys(self) -> tuple[str, ...]:
        return self.table.trimmed_keys

    declared_keys: Final[tuple[str, ...]] = ()

    @property
    def published(self) -> View:
        """The view that readers use: levels above 0 of a table whose readers skip level 0, else merged."""
        return View.RAW if skips_level0(self.table) else View.MERGED

    @property
    def compares_with_parent(self) -> bool:
        """Readers of a table with vectors do not see appended rows until they are upgraded, so that the planned version
        can be compared too."""
        return self.published is View.MERGED

    @property
    def notes(self) -> tuple[str, ...]:
        return uncompared(self.table)

    @property
    def silent(self) -> Mapping[str, str]:
        return {"unreported": "compactions of this table write no changelog"}

    @property
    def _fine(self) -> list[str]:
        return [field.name for field in self.table.fields if is_finer_than_spark(field.type)]

    def latest(self) -> int:
        return self._versions.latest()

    def version(self, number: int) -> TableVersion | None:
        return self._versions.read(number, self._state)

    def digest(self, number: int) -> str | None:
        return self._versions.digest(number)

    def rows(self, side: Side, units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        rules = merge_rules(self.table)
        if not self._makes_rows(side):
            return self.shown((side,), units, payload=payload).drop(SHOWN)
        files = numbered_files(self._shown_files(side, units))
        if not files:
            return no_rows(self._spark, self.schema, payload)
        if rules is None:
            shown = self._newest(self._narrow(side, payload, files))
            return shown.where("stays").select("unit", "sound", *payload)
        live = without_deleted(self._spark, self._versions.storage, self._counted(self._compared(files)), files)
        return self._merged(live, rules, side, payload)

    def shown(self, sides: Sequence[Side], units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        if any(self._makes_rows(side) for side in sides):
            return read_apart([self.rows(side, units, payload=payload) for side in sides])
        held = shared_files([list(self._shown_files(side, units)) for side in sides])
        files = {file.number: file for own in held for file in own}
        if not files:
            return no_rows(self._spark, self.schema, payload).withColumn(SHOWN, F.lit(0))
        stored, rules = self._compared(list(files.values())), merge_rules(self.table)
        stored = stored if rules is None else with_elements(stored, self.table, rules, alike)
        is_live = F.col("kind").isin(*LIVE_KINDS)
        for number, side in enumerate(sides):
            hides_retracts = side.view is View.MERGED or skips_retracts(self.table)
            stays = self._stays(side) & is_live if hides_retracts else self._stays(side)
            stored = hidden_where(stored, ~stays, number)
        values = [value.alias(name) for name, value in payload.items()]
        rows = stored.select("unit", self._sound().alias("sound"), "position", SHOWN, *values)
        for number, (side, own) in enumerate(zip(sides, held, strict=True)):
            deleted = vector_positions(self._spark, self._versions.storage, own)
            older = self._older(side, own) if side.view is View.MERGED else None
            for hidden in (deleted, older):
                rows = rows if hidden is None else hidden_at(rows, hidden, number)
        return shown_by_some(rows).select("unit", "sound", SHOWN, *payload)

    def _makes_rows(self, side: Side) -> bool:
        """Whether readers of the side may see rows that no file holds, or rows by the levels of others of their key."""
        return side.view is View.MERGED and (merge_rules(self.table) is not None or lowest_level_counts(self.table))

    def _shown_files(self, side: Side, units: Sequence[UnitKey]) -> Iterator[Placed]:
        return (each for each in self._versions.placed(side.version, units) if _is_shown(each[2], side))

    def _compared(self, files: Sequence[PaimonStoredFile]) -> DataFrame:
        rows = stored_rows(self._spark, self._versions.storage, self._versions.schemas, files)
        return times_alike(rows, self.table)

    def _narrow(
        self,
        side: Side,
        payload: Mapping[str, Column],
        files: Sequence[PaimonStoredFile],
        kept: Callable[[DataFrame], DataFrame] = lambda stored: stored,
    ) -> DataFrame:
        """The live rows of files that a merge chooses from, with the `payload`. `kept` is asked before it is
        evaluated."""
        values = [value.alias(name) for name, value in payload.items()]
        order = [value.alias(f"o{i}") for i, (value, _) in enumerate(self._order())]
        narrow = self._counted(kept(self._compared(files))).select(
            "unit",
            self._sound().alias("sound"),
            "position",
            "kind",
            self._stays(side).alias("stays"),
            *self._stored_keys(),
            *order,
            *values,
        )
        live = without_deleted(self._spark, self._versions.storage, narrow, files)
        return live.where(F.col("kind").isin(*LIVE_KINDS)) if skips_retracts(self.table) else live

    def _older(self, side: Side, files: Sequence[PaimonStoredFile]) -> DataFrame | None:
        """The positions of live rows that have a newer row of their key, as words; None if no row can have one. Reads
        keys and what rows are ordered by."""
        rows: ReadsRows = partial(self._narrow, side, {})
        runs = largest_runs(files, self.table)
        met = met_rows(rows, runs, self._stored_keys(), across_units=bool(self.table.partition_keys))
        if met is None:
            return None
        # Of each key one row is left, and the largest run has no key twice.
        count = sum(file.file.rows for file in runs[1])
        older = words_of(self._ranked(met).where(F.col("place") > 1), F.col("position"))
        return broadcast_few(older, count, BROADCAST_POSITIONS)

    def _merged(self, rows: DataFrame, rules: MergeRules, side: Side, payload: Mapping[str, Column]) -> DataFrame:
        first = [direction(value) for value, direction in self._order()]
        age = F.row_number().over(Window.partitionBy("unit", *self._stored_keys()).orderBy(*first))
        rows = with_elements(rows, self.table, rules, parsed)
        kinds = {field.name: field.dataType for field in rows.schema}
        made = merged(
            rows.withColumn("place", -age),
            by=["unit", *self._stored_keys()],
            place=F.col("place"),
            fields=[(column(i), name, kinds[column(i)]) for i, name in enumerate(self.schema.names)],
            rules=rules,
            merges_single=has_vectors(self.table),
        )
        shown = with_elements(made, self.table, rules, lambda value, _, rule: as_text(value, rule))
        values = [value.alias(name) for name, value in payload.items()]
        return shown.where(self._stays(side)).select("unit", self._sound().alias("sound"), *values)

    def misstated(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        listed = {file.name: lasting_facts(file) for _, _, file in self._versions.placed(since, units)}
        files = numbered_files(
            (place, bucket, file)
            for place, bucket, file in self._versions.placed(version, units)
            if file.level > 0 and listed.get(file.name) != lasting_facts(file)
        )
        if not files:
            return {}
        schemas = self._versions.schemas
        stored = stored_rows(self._spark, self._versions.storage, schemas, files)
        return {units[place]: count for place, count in misstated(stored, schemas, files).items()}

    def unreported(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        before, after = (
            self._versions.snapshots[since],
            with_changelog(self._versions.storage, self._versions.snapshots[version]),
        )
        rules = changelog_rules(self._versions.schemas.by_id[int(str(after.raw["schemaId"]))])
        if rules is None or (rules.silent_if_equal and self._fine):
            return {}
        held = [(place, before.by_key[key]) for place, key in enumerate(units) if key in before.by_key]
        now = [(place, after.by_key[key]) for place, key in enumerate(units) if key in after.by_key]
        sides = Sides(
            self._stored((p, b, file) for p, b in now for file in b.changelog),
            self._stored(lifted_files(held, now, rules.lowest_known)),
            *(
                known if known is None else self._counted(known)
                for side in (held, now)
                for known in [
                    self._stored((p, b, f) for p, b in side for f in b.files if f.level >= rules.lowest_known)
                ]
            ),
        )
        silent = rules.compared(self.table) if rules.silent_if_equal else None
        counts = unreported(sides, self.schema, keys=self._stored_keys(), silent=silent, once=rules.of_first_rows)
        return dict.fromkeys(units, 0) | {units[place]: count for place, count in counts.items()}

    def doubled(self, sides: Sequence[Side], units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        if sides[1].view is View.MERGED or self._makes_rows(sides[0]):
            return {}
        before, after = shared_files([list(self._shown_files(side, units)) for side in sides])
        taken = {file.number for file in largest_runs(before, self.table)[0]}
        kept = [file for file in after if file.number in taken and format_of(file.file.name) in READABLE]
        counts = doubled_keys(self._spark, self._versions.storage, kept) if kept else {}
        return {units[place]: counts.get(place, 0) for place in {file.unit for file in kept}}

    def _counted(self, rows: DataFrame) -> DataFrame:
        """The rows that readers do not ignore for their level."""
        return lowest_level_only(rows, self._stored_keys()) if lowest_level_counts(self.table) else rows

    def _stored(self, chosen: Iterable[tuple[int, Bucket, PaimonDataFile]]) -> DataFrame | None:
        """Live stored rows of files, each with the index of its bucket. None without files."""
        files = numbered_files(chosen)
        if not files:
            return None
        rows = stored_rows(self._spark, self._versions.storage, self._versions.schemas, files)
        return without_deleted(self._spark, self._versions.storage, rows, files)

    def _state(self, unit: Bucket) -> UnitState:
        is_raw = self.published is View.RAW
        return UnitState(
            identity=(frozenset((f.name, f.level) for f in unit.files), unit.index_files, unit.vectors),
            bytes=sum(file.bytes for file in unit.files),
            rows=published_rows(unit) if is_raw else None,
            waiting=frozenset(f.name for f in unit.files if is_raw and f.level == 0),
        )

    def _stored_keys(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.keys))]

    def _column(self, name: str) -> Column:
        """A table column for comparing: values are equal where Paimon treats them as equal."""
        position = self.schema.fieldNames().index(name)
        return comparable(F.col(column(position)), self.schema[position].dataType)

    def _sound(self) -> Column:
        """Whether a row is live and stored under its own key: readers find it by the stored key and show its values."""
        keys = zip(self._stored_keys(), self.keys, strict=True)
        same = [F.col(stored).eqNullSafe(self._column(name)) for stored, name in keys]
        return reduce(and_, same, F.col("kind").isin(*LIVE_KINDS))

    def _stays(self, side: Side) -> Column:
        """Whether a row that readers see has not expired."""
        age = record_age(self.table)
        if age is None or side.expiry_clock is None:
            return F.expr("true")
        time = F.col(column(self.schema.fieldNames().index(age.field.name)))
        return ~F.coalesce(is_expired(time, age, side.expiry_clock), F.expr("false"))

    def _order(self) -> list[tuple[Column, Callable[[Column], Column]]]:
        """The order by which a row is the newest of its key, each column with its direction, newest first.

        A row without a sequence value is older than any row with one, in both directions. Engines differ on rows that
        tie on everything; here the file written last wins.
        """
        first = F.asc_nulls_last if sequence_descends(self.table) else F.desc_nulls_last
        fields = [(value, first) for name in sequence_fields(self.table) for value in self._ordered(name)]
        return [
            *fields,
            (F.col("sequence"), F.asc if keeps_first_row(self.table) else F.desc),
            (F.col("level"), F.asc),
            (F.col("newest"), F.desc),
        ]

    def _ordered(self, name: str) -> list[Column]:
        # Spark treats 0.0 and -0.0 as equal. As texts, the negative one comes first, as in Java.
        return [F.col(column(self.schema.fieldNames().index(name))), self._column(name)]

    def _newest(self, rows: DataFrame) -> DataFrame:
        return self._ranked(rows).where((F.col("place") == 1) & F.col("kind").isin(*LIVE_KINDS)).drop("place")

    def _ranked(self, rows: DataFrame) -> DataFrame:
        """The rows with their `place` among those of their key, the newest first."""
        first = [direction(F.col(f"o{i}")) for i, (_, direction) in enumerate(self._order())]
        of_key = Window.partitionBy("unit", *self._stored_keys()).orderBy(*first)
        return rows.withColumn("place", F.row_number().over(of_key))


def _is_shown(file: PaimonDataFile, side: Side) -> bool:
    return file.name not in side.without and (side.view is View.MERGED or file.level > 0)
