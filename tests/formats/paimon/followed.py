"""A small table of each merge engine that readers follow, rounds of rows for it, and what readers are told of it."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.formats.paimon.changelogs import Change, applied, newest

from nightkeep.formats.views import open_view
from nightkeep.model import Address, Outcome
from nightkeep.records import RunDocument

COLUMNS = [("k", "INT NOT NULL"), ("n", "BIGINT"), ("note", "STRING")]
ENGINES: Mapping[str, Mapping[str, str]] = {
    "deduplicate": {},
    "by sequence": {"sequence.field": "n"},
    "silent": {
        "changelog-producer.row-deduplicate": "true",
        "changelog-producer.row-deduplicate-ignore-fields": "note",
    },
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "aggregation.remove-record-on-delete": "true",
    },
}
Rows = dict[tuple[Any, ...], Change]
Maintain = Callable[..., RunDocument]
"""An upgrade or a compaction of ours, full or not."""
Add = Callable[[PaimonJava, Path, int], object]


def created(engine: PaimonJava, table: Path, options: Mapping[str, str]) -> Path:
    """The table with its first round of rows."""
    engine.create(table, Layout(COLUMNS, ["k"], options=options))
    write(engine, table, 0)
    return table


def write(engine: PaimonJava, table: Path, number: int) -> int:
    """Each round meets rows of earlier ones again, deletes some of them, and leaves some as they are."""
    keys = range(10 * number, 10 * number + 40)
    rows = [("-D" if number and k % 7 == number else "+I", k, number if k % 2 else 3, f"{number % 2}") for k in keys]
    return engine.write(table, rows, Writer(user="writer"))


def read(engine: PaimonJava, table: Path) -> Rows:
    """Rows by their key."""
    return {(row[0],): tuple(row) for row in engine.read(table).rows}


def assert_told_as_by_java(
    engine: PaimonJava, folder: Path, options: Mapping[str, str], name: str, *, maintain: Maintain, full: Sequence[bool]
) -> None:
    """Of a table with one of ENGINES: readers see every kind of change, and come to what batch readers see."""
    ours = created(engine, folder / "ours", {**options, **ENGINES[name]})
    seen = seen_beside_java(engine, ours, maintain=maintain, full=full)
    assert {"+I", "-U", "+U", "-D"} == {kind for kind, *_ in seen}
    if name != "silent":
        # What a table keeps silent about, its readers do not hold.
        assert applied({}, seen, [0]) == read(engine, ours)


def seen_beside_java(
    engine: PaimonJava, ours: Path, *, maintain: Maintain, full: Sequence[bool], add: Add = write
) -> Sequence[Change]:
    """What streaming readers see of a table that we compact in rounds, with new rows before each but the first.

    They see the same of a copy that Java compacts. One reader goes on all the time, one is stopped and resumed after
    every commit."""
    java = Path(shutil.copytree(ours, ours.with_name("java")))
    resume = dict.fromkeys((ours, java), newest(engine, ours) + 1)
    streams = {table: engine.open_stream(table) for table in resume}
    seen = {table: [*engine.follow(stream).rows] for table, stream in streams.items()}
    resumed = {table: [*rows] for table, rows in seen.items()}
    for number, wholly in enumerate(full):
        for table in resume if number else ():
            add(engine, table, number)
        document = maintain(ours, full=wholly)
        assert document.outcome is Outcome.VERIFIED, document.reason
        engine.compact(java, Compaction(full=wholly, user="compactor", single_pick=True))
        for table in resume:
            seen[table] += engine.follow(streams[table]).rows
            step = engine.changes(table, since=resume[table])
            resumed[table] += step.rows
            resume[table] = step.next or 0
        assert sorted(map(repr, seen[ours])) == sorted(map(repr, seen[java])), number
    assert seen[ours] == resumed[ours]
    return seen[ours]


def unreported_in_spark(table: Path, version: int, spark: SparkSession) -> Callable[[], int]:
    """A function that counts by Spark the wrong changes that a version of ours tells."""
    relation = open_view(Address("paimon", str(table), "t"), spark)
    held = [relation.version(number) for number in range(version + 1)]
    units = sorted(held[version].units)  # type: ignore[union-attr]
    return lambda: sum(relation.unreported(version, version - 1, units).values())


def assert_spark_counts_wrong_changes(table: Path, version: int | None, spark: SparkSession) -> pa.Table:
    """The newest changelog of the table, of which Spark finds nothing wrong but what is made wrong here."""
    assert version is not None
    unreported = unreported_in_spark(table, version, spark)
    path = max(table.rglob("changelog-nk-*.parquet"), key=lambda each: each.stat().st_mtime)
    rows = pq.read_table(path)
    assert unreported() == 0
    for change, count in ((rows.slice(2), 2), (pa.concat_tables([rows, rows.slice(0, 3)]), 3), (rows, 0)):
        pq.write_table(change, path, store_schema=False, store_decimal_as_integer=True)
        assert unreported() == count
    return rows
