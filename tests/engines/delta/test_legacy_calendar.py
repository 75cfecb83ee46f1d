"""Files of the hybrid Julian-Gregorian calendar: delta-spark shows the same rows before and after, and so do we."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.formats.delta.log_edits import rewrite_adds
from tests.formats.delta.runs import files, opened, optimize
from tests.formats.delta.runs import shown as ours
from tests.support.extended import some_extended

from nightkeep.errors import RefusedTable
from nightkeep.model import Operation, Outcome

LEGACY = {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY", "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY"}
KINDS = ("TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96")
ZONES = ("America/Los_Angeles", "Asia/Shanghai", "UTC", "Europe/Amsterdam")
DATES = ("0001-01-01", "1000-02-28", "1500-03-01", "1582-10-04", "1582-10-15", "1899-12-31", "2024-02-29")
TIMES = (
    "0001-01-01 00:00:00",
    "1000-02-28 23:59:59.999",
    "1500-03-01 01:02:03.004",
    "1582-10-15 00:00:00",
    "1880-06-01 12:00:00.5",
    "1899-12-31 23:59:59.999",
    "2024-02-29 00:00:00.001",
)
COLUMNS = """(id BIGINT, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, s STRUCT<d: DATE, t: TIMESTAMP>, l ARRAY<DATE>,
    m MAP<DATE, TIMESTAMP>)"""
VALUES = """SELECT {id}, d, t, CAST(d AS TIMESTAMP_NTZ), struct(d, t), array(d, NULL), map(d, t) FROM
    (SELECT DATE '{date}' AS d, TIMESTAMP '{time}' AS t)"""
NULLS = "SELECT 1000, NULL, NULL, NULL, NULL, NULL, NULL"
ZORDER: Mapping[str, Any] = {"full": True, "clustering": {"zorder": ["d", "t"]}}


def made(delta_spark: DeltaSpark, table: Path, kind: str, zone: str) -> Path:
    """Two files of the old calendar and one of the new, each with old and new dates."""
    with delta_spark.configured({"spark.sql.parquet.outputTimestampType": kind, "spark.sql.session.timeZone": zone}):
        delta_spark.sql(f"CREATE TABLE {named(table)} {COLUMNS} USING delta")
        for number, conf in enumerate((LEGACY, {}, LEGACY)):
            pairs = enumerate(zip(DATES, TIMES, strict=True))
            rows = [VALUES.format(id=100 * number + at, date=date, time=time) for at, (date, time) in pairs]
            with delta_spark.configured(conf):
                insert = " UNION ALL ".join([*rows, NULLS])
                delta_spark.sql(f"INSERT INTO {named(table)} SELECT /*+ COALESCE(1) */ * FROM ({insert})")
    return table


def with_footer(table: Path, told: Mapping[bytes, bytes | None]) -> None:
    """Files of the old calendar, written anew with other keys in the footer; None takes one away."""
    sizes = {}
    for path in table.glob("*.parquet"):
        held = dict(pq.read_metadata(path).metadata)
        if b"org.apache.spark.legacyDateTime" in held:
            keys = {key: value for key, value in {**held, **told}.items() if value is not None}
            pq.write_table(pq.read_table(path).replace_schema_metadata(keys), path)
            (table / f".{path.name}.crc").unlink(missing_ok=True)
        sizes[path.name] = path.stat().st_size
    rewrite_adds(table, lambda add: add.update(size=sizes[add["path"]]))


@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "zone"), some_extended(list(product(KINDS, ZONES)), keep=3))
def test_every_operation_keeps_what_delta_spark_shows(
    delta_spark: DeltaSpark, tmp_path: Path, kind: str, zone: str
) -> None:
    table = made(delta_spark, tmp_path / "t", kind, zone)
    before = delta_spark.read(table)

    assert ours(table) == before
    for condition in (f"d = DATE '{DATES[2]}'", f"s.t <= TIMESTAMP '{TIMES[4]}'", f"t < TIMESTAMP '{TIMES[1]}'"):
        assert ours(table, condition) == delta_spark.read(table, where=condition), condition

    assert optimize(table, **ZORDER).outcome is Outcome.VERIFIED
    assert delta_spark.read(table) == ours(table) == before
    held = [
        pq.read_metadata(table / file.name).metadata or {} for u in opened(table).snapshot().units for file in u.files
    ]
    assert not any(b"org.apache.spark.legacyDateTime" in told for told in held)


@pytest.mark.extended
def test_packing_and_persisting_deletes_too(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = made(delta_spark, tmp_path / "t", KINDS[0], ZONES[0])
    delta_spark.sql(
        f"ALTER TABLE {named(table)} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        *(f"DELETE FROM {named(table)} WHERE id IN ({number}, {number + 2})" for number in (0, 101, 201)),
    )
    before = delta_spark.read(table)
    assert optimize(table, operation=Operation.PERSIST_DELETES, full=True).outcome is Outcome.VERIFIED
    assert delta_spark.read(table) == before
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    assert delta_spark.read(table) == ours(table) == before


OF_SPARK_2 = {
    b"org.apache.spark.version": b"2.4.8",
    b"org.apache.spark.legacyDateTime": None,
    b"org.apache.spark.timeZone": None,
}
UNKNOWN = {b"org.apache.spark.timeZone": b"Nowhere/City"}


def of_spark_2(delta_spark: DeltaSpark, table: Path, kind: str, times: Sequence[str]) -> Path:
    with delta_spark.configured({"spark.sql.parquet.outputTimestampType": kind, **LEGACY}):
        delta_spark.sql(f"CREATE TABLE {named(table)} (id BIGINT, d DATE, s STRUCT<d: DATE>, t TIMESTAMP) USING delta")
        for number, (date, time) in enumerate(zip(DATES, times, strict=False)):
            day = f"DATE '{date}'"
            delta_spark.sql(f"INSERT INTO {named(table)} SELECT {number}, {day}, struct({day}), TIMESTAMP '{time}'")
    with_footer(table, OF_SPARK_2)
    return table


def test_dates_of_spark_2_need_no_zone(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = of_spark_2(delta_spark, tmp_path / "t", KINDS[0], ["1901-01-01 00:00:00"] * len(DATES))
    before = delta_spark.read(table)
    assert before.column("d") == DATES
    assert ours(table) == before
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    assert delta_spark.read(table) == ours(table) == before


@pytest.mark.few(1)
@pytest.mark.parametrize("told", [OF_SPARK_2, UNKNOWN], ids=["none", "unknown"])
def test_old_times_of_an_unknown_zone_are_refused_before_anything_is_published(
    delta_spark: DeltaSpark, tmp_path: Path, told: Mapping[bytes, bytes | None]
) -> None:
    """delta-spark takes the zone of its own process for it, so that two of them show different rows."""
    table = made(delta_spark, tmp_path / "t", KINDS[0], "Asia/Shanghai")
    with_footer(table, told)
    held = files(table)
    document = optimize(table, full=True)
    assert document.outcome is Outcome.REFUSED, document.reason
    assert "times before 1900 in the Julian calendar" in document.reason
    assert {name for name in files(table).keys() ^ held.keys() if "nk-" not in name} == set()
    with pytest.raises(RefusedTable, match="time zone"):
        ours(table)


def test_a_file_without_sparks_version_is_of_the_new_calendar(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = made(delta_spark, tmp_path / "t", KINDS[0], "Asia/Shanghai")
    with_footer(table, {b"org.apache.spark.version": None})
    before = delta_spark.read(table)
    assert ours(table) == before
    assert optimize(table, full=True).outcome is Outcome.VERIFIED
    assert delta_spark.read(table) == before
