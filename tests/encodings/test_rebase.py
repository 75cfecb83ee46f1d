"""Days and times of the hybrid calendar: what Spark's own functions make of them, in every zone of its table."""

import json
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from nightkeep.encodings.rebase import RebaseZone, is_in_table, may_differ, rebase_zone, rebased_days, rebased_micros

SECOND = 1_000_000
DAY = 86_400 * SECOND
CUTOVER = -12_219_292_800
"""1582-10-15 in UTC."""
YEAR_ONE = -62_135_596_800
MORE_ZONES = (
    "PST",
    "CST",
    "JST",
    "IST",
    "VST",
    "GMT+8",
    "GMT+08:00",
    "GMT-3:30",
    "GMT+24",
    "+08:00",
    "-05:30",
    "UTC+3",
    "Z",
    "UTC",
    "UT-02:00",
)
"""Names that Spark accepts, which its table does not have; Java takes most offsets for GMT."""


@pytest.fixture(scope="module")
def java(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.spark.sql.catalyst.util.RebaseDateTime


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> Sequence[dict[str, Any]]:
    resource = spark._jvm.java.lang.ClassLoader.getSystemResourceAsStream("julian-gregorian-rebase-micros.json")
    return json.loads(bytes(resource.readAllBytes()))


def micros(values: Sequence[int | None]) -> pa.Array:
    return pa.array(values, pa.int64()).cast(pa.timestamp("us", "UTC"))


def rebased(values: Sequence[int], zone: RebaseZone) -> list[int]:
    return rebased_micros(micros(values), zone).cast(pa.int64()).to_pylist()


def instants(switches: Sequence[int], seed: int) -> Iterator[int]:
    """Instants around every switch, and between year 1, 1582 and 1970, in microseconds."""
    yield from (switch * SECOND + by for switch in switches for by in (-1, 0, 1))
    drawn = np.random.default_rng(seed)
    for low, high in ((YEAR_ONE, CUTOVER), (CUTOVER - 10**6, 0)):
        yield from drawn.integers(low * SECOND, high * SECOND, 5).tolist()


@pytest.mark.slow
def test_times_of_every_zone_are_what_spark_makes_of_them(java: Any, table: Sequence[dict[str, Any]]) -> None:
    assert len(table) > 600
    different = {}
    for number, entry in enumerate(table):
        zone = rebase_zone(entry["tz"])
        assert zone is not None, entry["tz"]
        values = [value for value in instants(entry["switches"], number) if is_in_table(micros([value]), zone)]
        assert len(values) > 30
        expected = [java.rebaseJulianToGregorianMicros(entry["tz"], value) for value in values]
        wrong = [v for v, found, told in zip(values, rebased(values, zone), expected, strict=True) if found != told]
        if wrong:
            different[entry["tz"]] = wrong
    assert not different


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE_ZONES)
def test_zones_beside_its_table_too(java: Any, name: str) -> None:
    zone = rebase_zone(name)
    assert zone is not None
    drawn = [*instants([change // SECOND for change, _ in zone.changes], 1), *instants((CUTOVER, YEAR_ONE), 2)]
    values = [value for value in (*drawn, -(10**17)) if is_in_table(micros([value]), zone)]
    assert rebased(values, zone) == [java.rebaseJulianToGregorianMicros(name, value) for value in values]


@pytest.mark.slow
def test_days_are_what_spark_makes_of_them(java: Any) -> None:
    drawn = np.random.default_rng(3).integers(-2_000_000, 100_000, 3000).tolist()
    # Every first day of a century and the days around the end of February, which the calendars disagree about.
    drawn += [-719_164 + 36_525 * century + by for century in range(-5, 17) for by in range(-2, 63)]
    drawn += [-141_427 + by for by in range(-20, 20)]
    found = rebased_days(pa.array(drawn, pa.int32()).cast(pa.date32())).cast(pa.int32()).to_pylist()
    assert found == [java.rebaseJulianToGregorianDays(day) for day in drawn]


def test_a_date_of_the_old_calendar_keeps_its_name() -> None:
    # 1500-03-01 in the Julian calendar is the day that is 1500-03-11 in the Gregorian one.
    old = pa.array([date(1500, 3, 11), None, date(1582, 10, 15), date(2024, 2, 29)])
    assert rebased_days(old).to_pylist() == [date(1500, 3, 1), None, date(1582, 10, 15), date(2024, 2, 29)]


def test_a_29th_of_february_that_is_none_is_the_day_after_the_28th() -> None:
    assert rebased_days(pa.array([date(1500, 3, 10)])).to_pylist() == [date(1500, 3, 1)]


def test_a_time_of_1880_in_los_angeles_moves_by_its_local_mean_time() -> None:
    zone = rebase_zone("America/Los_Angeles")
    assert zone is not None
    of_1880 = -2_840_000_000 * SECOND
    assert rebased([of_1880], zone) == [of_1880 - 422 * SECOND]


@given(st.lists(st.none() | st.integers(-2_208_988_800 * SECOND, 2**62)))
def test_later_times_stay_as_they_are_in_the_same_memory(values: list[int | None]) -> None:
    column = micros(values)
    assert not may_differ(column)
    assert rebased_micros(column, RebaseZone(28_800 * SECOND, 343 * SECOND)) is column


@given(st.lists(st.none() | st.integers(-(10**17), 10**15), min_size=1), st.integers(0, 3))
def test_nulls_and_slices_keep_their_places(values: list[int | None], start: int) -> None:
    zone = rebase_zone("Asia/Shanghai")
    assert zone is not None
    whole, part = rebased_micros(micros(values), zone), rebased_micros(micros(values).slice(start), zone)
    assert part.equals(whole.slice(start))
    assert whole.is_null().to_pylist() == [value is None for value in values]


@pytest.mark.parametrize("name", ["Nowhere/City", "EST", "local"])
def test_a_zone_that_the_table_does_not_have_is_none(name: str) -> None:
    assert rebase_zone(name) is None
