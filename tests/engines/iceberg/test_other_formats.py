"""Tables with data and deletes in ORC, in Avro and in several formats: what engines read before us, they read after."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import cycle
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Column, Warehouse, array, mapping, struct
from tests.drivers.json_lines import EngineError
from tests.formats.iceberg.golden_shapes import TYPE_ROWS, TYPES
from tests.formats.iceberg.nights import Nights
from tests.formats.iceberg.optimized_lake import by
from tests.formats.iceberg.runs import address, care_for, configured
from tests.support.extended import some_extended

import nightkeep
from nightkeep.checking.check import check
from nightkeep.model import Operation, Outcome
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
Fault = Callable[[pa.RecordBatch], pa.RecordBatch]


def with_column(batch: pa.RecordBatch, name: str, changed: Callable[[Any], Any]) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch if place < 0 else batch.set_column(place, batch.schema.field(place), changed(batch.column(place)))


def without_null(column: Any) -> Any:
    return pa.StructArray.from_arrays([pc.fill_null(column.field("x"), 0)], fields=list(column.type))


FAULTS: Mapping[str, Fault] = {
    "loses a null in a struct": lambda batch: with_column(batch, "s", without_null),
    "takes a value for another": lambda batch: with_column(
        batch, "n", lambda column: pc.if_else(pc.equal(column, 5), pa.scalar(6, pa.int32()), column)
    ),
}


def faulty(fault: Fault) -> type[orc.ORCFile]:
    """Arrow's reader of ORC files, with a fault."""

    class Faulty(orc.ORCFile):
        def read_stripe(self, n: int, columns: list[str] | None = None) -> pa.RecordBatch:
            return fault(super().read_stripe(n, columns))

    return Faulty


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
    some_extended([("mixed", 2), ("orc", 3), ("avro", 3), ("orc", 2), ("mixed", 3), ("avro", 2)], keep=1),
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


@pytest.mark.slow
@pytest.mark.parametrize("fault", some_extended(FAULTS, keep=1))
def test_a_fault_of_arrows_reader_is_found_by_the_check(
    fault: str, lake: Nights, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rewrite and the gate decode by it, and see the same wrong rows; the check decodes by ORC's in Java."""
    lake.create([("id", "int"), ("n", "int"), ("s", struct(("x", "int")))], properties={DATA: "orc"})
    for start in (0, 2):
        lake.append([[start, None, {"x": None}], [start + 1, 5, {"x": 7}]])
    monkeypatch.setattr(orc, "ORCFile", faulty(FAULTS[fault]))
    done = care_for(lake.table, operation=Operation.OPTIMIZE, full=True)
    assert done.outcome is Outcome.VERIFIED, done.reason
    report = check(CheckRequest(address(lake.table)), spark=spark)
    assert report.status is CheckStatus.FAILED and "missing" in str(report), report


@pytest.mark.parametrize("kind", some_extended(["mixed", "orc", "avro"], keep=1))
def test_java_reads_what_we_convert_and_pack(kind: str, lake: Nights) -> None:
    write(lake, KINDS[kind], 3, (*WITH_TIME, ("nothing", "unknown")))
    lake.persist()
    in_format(lake, "orc")
    lake.night(full=True)
    assert formats(lake, 0) == {"orc"} and lake.live(1, 2) == []


@pytest.mark.parametrize("kind", some_extended(["orc", "avro"], keep=1))
def test_our_reader_shows_what_java_shows(kind: str, lake: Nights) -> None:
    write(lake, KINDS[kind], 2, WITH_TIME)
    found = nightkeep.read(f"iceberg:{address(lake.table).location}").read_all()
    assert sorted(found.column("id").to_pylist()) == sorted(row[0] for row in lake.rows.rows)
    of_one = {row[0]: row for row in lake.rows.rows}[2]
    (shown,) = found.filter(pc.equal(found.column("id"), 2)).to_pylist()
    assert shown["text"] == of_one[7] and shown["counts"] == [tuple(each) for each in of_one[16]]


@pytest.mark.parametrize("kind", some_extended(["avro", "mixed", "orc"], keep=1))
def test_columns_that_change_between_files(kind: str, lake: Nights, spark: SparkSession) -> None:
    """Renamed, added, widened and dropped, also within a struct; and a key that is renamed. Java reads no default in
    place of a column that an ORC file lacks."""
    inner = struct(("x", "int"), ("y", "string"))
    lake.create([("id", "int"), ("n", "int"), ("f", "float"), ("d", "decimal(9,2)"), ("s", inner)], format_version=3)
    formats_in_turn = cycle(KINDS[kind])
    in_format(lake, next(formats_in_turn))
    lake.append([[n, n, n / 4, f"{n}.25", {"x": n, "y": f"y {n}"}] for n in range(4)])
    lake.alter(
        {"change": "rename_column", "name": "id", "to": "key"},
        {"change": "change_type", "name": "n", "type": "long"},
        {"change": "change_type", "name": "f", "type": "double"},
        {"change": "change_type", "name": "d", "type": "decimal(12,2)"},
        {"change": "rename_column", "name": "s.x", "to": "renamed"},
        {"change": "add_column", "parent": "s", "name": "z", "type": "timestamp"},
        {"change": "add_column", "name": "size", "type": "int", **({"default": 7} if kind == "avro" else {})},
    )
    in_format(lake, next(formats_in_turn))
    fresh = [2**40, 0.5, "1234567890.25", {"renamed": 1, "y": None, "z": "2026-11-01T00:00:00.000001"}, None]
    lake.append([[10, *fresh], [11, *fresh]])
    lake.delete([[1], [11]], "key")
    lake.alter({"change": "drop_column", "name": "d"})
    lake.persist()
    require_checked(lake, spark)
    in_format(lake, next(formats_in_turn) if kind == "mixed" else "orc")
    lake.night(full=True)
    require_checked(lake, spark)
    assert sorted(row[0] for row in lake.rows.rows) == [0, 2, 3, 10]
    assert {row[-1] for row in lake.rows.rows if row[0] < 10} == {7 if kind == "avro" else None}


def test_defaults_that_java_does_not_read_are_refused(lake: Nights) -> None:
    lake.create([("id", "int")], format_version=3, properties={DATA: "orc"})
    for number in range(2):
        lake.append([[number]])
    lake.alter({"change": "add_column", "name": "size", "type": "int", "default": 7})
    with pytest.raises(EngineError, match="ORC cannot read default value"):
        lake.java.read(lake.table)
    done = care_for(lake.table, operation=Operation.OPTIMIZE, full=True)
    assert done.outcome is Outcome.REFUSED and "default values in ORC files" in str(done.reason)


@pytest.mark.parametrize("kind", some_extended(["orc", "avro"], keep=1))
def test_files_without_ids_are_read_by_the_name_mapping(
    kind: str, lake: Nights, iceberg_spark: IcebergSpark, tmp_path: Path
) -> None:
    """Iceberg's Spark does; its Java takes the names that columns have now."""
    lake.create([("id", "long"), ("name", "string"), ("tags", array("string"))])
    stored = {"id": [1, 2, 3], "name": ["a", None, "c"], "tags": [["x"], [], None]}
    file = tmp_path / f"adopted.{kind}"
    (write_orc if kind == "orc" else write_avro)(file, stored)
    lake.commit(lake.java.adopt(lake.table, file, rows=3), kind="append")
    lake.alter({"change": "rename_column", "name": "name", "to": "title"})
    lake.append([[4, "d", []]])
    lake.delete([["c"]], "title")
    before = iceberg_spark.read(lake.table)
    assert before.rows == ((1, "a", ["x"]), (2, None, []), (4, "d", []))
    for operation in (Operation.PERSIST_DELETES, Operation.OPTIMIZE):
        done = care_for(lake.table, run_id=operation, operation=operation, full=True)
        assert done.outcome is Outcome.VERIFIED, done.reason
        assert iceberg_spark.read(lake.table) == before
    assert formats(lake, 0) == {"parquet"}


def write_orc(file: Path, stored: dict[str, list[Any]]) -> None:
    orc.write_table(pa.table({"id": stored["id"], "name": stored["name"], "tags": stored["tags"]}), file)


def write_avro(file: Path, stored: dict[str, list[Any]]) -> None:
    kinds = {"id": "long", "name": ["null", "string"], "tags": ["null", {"type": "array", "items": ["null", "string"]}]}
    record = {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in kinds.items()]}
    rows = [dict(zip(stored, values, strict=True)) for values in zip(*stored.values(), strict=True)]
    with file.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(record), rows)


@pytest.mark.parametrize("version", [2, 3])
def test_orc_files_are_sorted_and_clustered_in_their_partitions(version: int, lake: Nights) -> None:
    columns = [("id", "long"), ("day", "date"), ("name", "string")]
    properties = {DATA: "orc", "write.orc.compression-codec": "zstd"}
    lake.create(columns, format_version=version, partition=(("day", "identity"),), properties=properties)
    for start in (0, 300):
        lake.append([[(n * 7919) % 601, f"2026-11-0{1 + n % 2}", f"name {n % 50}"] for n in range(start, start + 300)])
    lake.delete([[5, "2026-11-01"]], "id", "day", partition=["2026-11-01"])
    lake.night(clustering=by("id", "name"))
    assert formats(lake, 0) == {"orc"} and not lake.plan(clustering=by("id", "name")).units
    lake.alter({"change": "sort", "columns": ["id"]})
    lake.night()
    assert {each["sort_order_id"] for each in lake.live(0)} == {1}
    assert not lake.plan().units


def test_times_that_arrow_writes_wrongly_are_refused(lake: Nights) -> None:
    lake.create([("id", "int"), ("at", "timestamp")])
    for n in range(2):
        lake.append([[n, "1969-12-31T23:59:58.500000"]])
    in_format(lake, "orc")
    done = care_for(lake.table, operation=Operation.OPTIMIZE, full=True)
    assert done.outcome is Outcome.REFUSED and "times before 1970 with a fraction of a second" in str(done.reason)


def test_times_beyond_nanoseconds_are_refused(lake: Nights) -> None:
    lake.create([("id", "int"), ("at", "timestamp")])
    for n, kind in enumerate(("orc", "parquet")):
        in_format(lake, kind)
        lake.append([[n, "9999-12-31T00:00:00.000000"]])
    done = care_for(lake.table, operation=Operation.OPTIMIZE, full=True)
    assert done.outcome is Outcome.REFUSED and "outside the years 1678 to 2261" in str(done.reason)


def test_batches_of_changes_are_written_in_orc(lake: Nights) -> None:
    lake.create([("id", "long"), ("v", "string")], properties={DATA: "orc"})
    lake.apply([("+U", {"id": n % 5, "v": f"{n}"}) for n in range(9)], "id")
    lake.apply([("-D", {"id": 1}), ("+U", {"id": 2, "v": "new"})], "id")
    assert formats(lake, 0) == formats(lake, 1) == formats(lake, 2) == {"orc"}
    assert lake.rows.rows == ((0, "5"), (2, "new"), (3, "8"), (4, "4"))
    lake.persist()
    lake.night(full=True)


def test_times_of_the_last_second_before_1970_are_as_java_shows_them(lake: Nights) -> None:
    """Java writes them to ORC files a second late."""
    lake.create([("id", "int"), ("at", "timestamp")], properties={DATA: "orc"})
    for n in range(2):
        lake.append([[n, f"1969-12-31T23:59:59.99999{n}"]])
    lake.night(full=True)
    assert lake.rows.column("at") == ("1970-01-01T00:00:00.999990", "1970-01-01T00:00:00.999991")
