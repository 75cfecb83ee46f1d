"""Tables with data and deletes in ORC, in Avro and in several formats: what engines read before us, they read after."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import cycle
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Column, Warehouse, array, mapping, struct
from tests.formats.iceberg.golden_shapes import TYPE_ROWS, TYPES
from tests.formats.iceberg.nights import Nights
from tests.formats.iceberg.runs import address, configured
from tests.support.extended import some_extended

import nightkeep
from nightkeep.checking.check import check
from nightkeep.model.check_values import CheckRequest
from nightkeep.records.document import CheckStatus

DATA, DELETES = "write.format.default", "write.delete.format.default"
KINDS = {"orc": ("orc",), "avro": ("avro",), "mixed": ("orc", "avro", "parquet")}
COLUMNS: tuple[Column, ...] = (
    *TYPES,
    ("by number", mapping("int", array(struct(("p", "decimal(5,1)"), ("q", "uuid"))))),
    ("by name", mapping("string", struct(("r", "timestamp")))),
)
WITH_TIME = (*COLUMNS, ("time of day", "time"))
"""Spark has no times of day."""
_NESTED = (
    [None, None, None, None],
    [
        [[1, [{"p": "1.5", "q": "00000000-0000-0000-0000-000000000001"}, None]], [2, None], [3, []]],
        [["a", {"r": "2024-01-01T00:00:00.000001"}], ["b", None]],
        "23:59:59.999999",
        None,
    ],
    [[], [], "00:00:00", None],
)


@pytest.fixture
def lake(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Nights]:
    with configured(iceberg):
        yield Nights(iceberg_java, iceberg.table())


def in_format(lake: Nights, kind: str, key: str = DATA) -> None:
    lake.alter({"change": "set_properties", "properties": {key: kind}})


def typed_rows(start: int) -> list[list[Any]]:
    """A row of nulls, and two with a value of every type. Java writes no time of the last second before 1970 to ORC
    files as it is, and Arrow none before 1970 with a fraction of a second."""
    rows = [deepcopy([*row, *nested]) for row, nested in zip(TYPE_ROWS, _NESTED, strict=True)]
    at, local_at = (column[0] for column in COLUMNS[12:14])
    assert (at, local_at) == ("at", "local_at")
    rows[1][12:14] = ["1969-12-31T23:59:58Z", "1969-12-31T23:59:58"]
    for row in rows:
        row[0] += start
    return rows


def write(lake: Nights, kinds: Sequence[str], version: int, columns: Sequence[Column] = COLUMNS) -> None:
    """Two files of each format, from each of which a row is deleted by key, and one by position."""
    lake.create(columns, format_version=version)
    for number, kind in zip(range(2 * len(kinds)), cycle(kinds)):
        in_format(lake, kind)
        rows = [row[: len(columns)] for row in typed_rows(10 * number)]
        lake.java.append(lake.table, rows)
        lake.java.cdc(lake.table, [("-D", rows[0]), ("+I", rows[1]), ("+I", rows[1])], keys=("id",))


def formats(lake: Nights, content: int) -> set[str]:
    return {each["file_format"].lower() for each in lake.live(content)}


def require_checked(lake: Nights, spark: SparkSession) -> None:
    report = check(CheckRequest(address(lake.table)), spark=spark)
    assert report.status is CheckStatus.PASSED, report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "version"),
    some_extended([("mixed", 2), ("orc", 3), ("avro", 3), ("orc", 2), ("mixed", 3), ("avro", 2)], keep=2),
)
def test_every_type_stays_as_it_is(
    kind: str, version: int, lake: Nights, iceberg_spark: IcebergSpark, spark: SparkSession
) -> None:
    write(lake, KINDS[kind], version)
    if kind == "avro":
        in_format(lake, "orc", DELETES)
    before = iceberg_spark.read(lake.table)
    assert before == lake.rows and formats(lake, 0) == formats(lake, 2) == set(KINDS[kind])
    lake.persist()
    assert lake.live(2) == [] and formats(lake, 0) == set(KINDS[kind])
    assert iceberg_spark.read(lake.table) == before
    require_checked(lake, spark)

    wanted = "orc" if kind == "orc" else "parquet"
    in_format(lake, wanted)
    lake.night(full=True)
    assert iceberg_spark.read(lake.table) == before == lake.rows
    assert formats(lake, 0) == {wanted} and lake.live(1) == []
    require_checked(lake, spark)


@pytest.mark.parametrize("kind", ["orc", "avro", "mixed"])
def test_java_reads_what_we_convert_and_pack(kind: str, lake: Nights) -> None:
    write(lake, KINDS[kind], 3, (*WITH_TIME, ("nothing", "unknown")))
    lake.persist()
    in_format(lake, "orc")
    lake.night(full=True)
    assert formats(lake, 0) == {"orc"} and lake.live(1, 2) == []


@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_our_reader_shows_what_java_shows(kind: str, lake: Nights) -> None:
    write(lake, KINDS[kind], 2, WITH_TIME)
    found = nightkeep.read(f"iceberg:{address(lake.table).location}").read_all()
    assert sorted(found.column("id").to_pylist()) == sorted(row[0] for row in lake.rows.rows)
    of_one = {row[0]: row for row in lake.rows.rows}[2]
    (shown,) = found.filter(pc.equal(found.column("id"), 2)).to_pylist()
    assert shown["text"] == of_one[7] and shown["counts"] == [tuple(each) for each in of_one[16]]
