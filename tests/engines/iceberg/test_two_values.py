"""An identity partition's value is in the manifest and in the data file. Where both differ, Java shows the manifest's
and other readers the file's: such files are refused by name before anything is published."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg.runs import address, care_for, configured

import nightkeep
from nightkeep.errors import RefusedTable
from nightkeep.model import Operation, Outcome

NAMED = "identity partition values unlike the rows'"


@dataclass(frozen=True)
class Case:
    """A partition's value as Java takes it, and the values of a data file in it."""

    type: str
    value: Any
    stored: list[Any]
    kind: pa.DataType


LONG = "a text of more than sixteen characters: "
DIFFERENT = {
    "another number": Case("int", 1, [2, 2], pa.int32()),
    "several numbers": Case("int", 1, [1, 2], pa.int32()),
    "another text": Case("string", "a", ["b", "b"], pa.string()),
    "text that ends otherwise": Case("string", f"{LONG}a", [f"{LONG}a", f"{LONG}b"], pa.string()),
    "null in the file": Case("string", "a", ["a", None], pa.string()),
    "null as partition": Case("string", None, ["a", None], pa.string()),
    "another day": Case("date", "2026-11-01", [date(2026, 11, 2)] * 2, pa.date32()),
    "another decimal": Case("decimal(9, 2)", "1.10", [Decimal("1.11")] * 2, pa.decimal128(9, 2)),
    "NaN in the file": Case("double", 1.0, [1.0, float("nan")], pa.float64()),
    "another zero": Case("double", 0.0, [0.0, -0.0], pa.float64()),
}
EQUAL = {
    "number": Case("int", 1, [1, 1], pa.int32()),
    "text": Case("string", f"{LONG}a", [f"{LONG}a"] * 2, pa.string()),
    "null": Case("string", None, [None, None], pa.string()),
    "zero": Case("double", 0.0, [0.0, 0.0], pa.float64()),
    "NaN": Case("double", "NaN", [float("nan")] * 2, pa.float64()),
    "day": Case("date", "2026-11-01", [date(2026, 11, 1)] * 2, pa.date32()),
}
Made = Callable[[Case, str], Table]


@pytest.fixture
def made(iceberg_java: IcebergJava, iceberg: Warehouse, tmp_path: Path) -> Made:
    """A table of four files of two rows in one partition, with rows that equality deletes by the partition column hide
    only for who takes the partition's value; and a second partition, of which all agree."""

    def make(case: Case, metrics: str) -> Table:
        table = iceberg.table()
        columns = [("id", "long"), ("p", case.type), ("q", "int")]
        properties = {"write.metadata.metrics.default": metrics}
        layout = Layout(partition=(("p", "identity"), ("q", "identity")), properties=properties)
        iceberg_java.create(table, columns, layout)
        for number in range(4):
            file = tmp_path / f"{number}.parquet"
            stored = {"id": [2 * number, 2 * number + 1], "p": pa.array(case.stored, case.kind)}
            pq.write_table(pa.table({**stored, "q": pa.array([1, 1], pa.int32())}), file)
            adopted = iceberg_java.adopt(table, file, partition=[case.value, 1])
            iceberg_java.commit(table, adopted, kind="append")
            iceberg_java.append(table, [[100 + number, case.value, 2]])
        for q, doomed in ((1, (0, 3)), (2, (100,))):
            rows = [[number, case.value] for number in doomed]
            deletes = iceberg_java.equality_deletes(table, rows, keys=["id", "p"], partition=[case.value, q])
            iceberg_java.commit(table, deletes)
        return table

    return make


@pytest.mark.few(3)
@pytest.mark.parametrize("metrics", ["full", "none"])
@pytest.mark.parametrize("name", DIFFERENT)
def test_a_partition_with_two_values_is_refused_by_name(
    made: Made, iceberg_java: IcebergJava, iceberg: Warehouse, name: str, metrics: str
) -> None:
    with configured(iceberg):
        table = made(DIFFERENT[name], metrics)
        before = iceberg_java.read(table)
        for operation in (Operation.PERSIST_DELETES, Operation.OPTIMIZE):
            done = care_for(table, operation=operation)
            notes = [] if done.plan is None else [note for note in done.plan.notes if NAMED in note]
            refused = done.outcome is Outcome.REFUSED and NAMED in str(done.reason)
            assert refused or (notes and all("q=1" not in unit.partition for unit in done.units)), done
            assert done.committed_version is None or not refused
            assert iceberg_java.read(table) == before
        with pytest.raises(RefusedTable, match=NAMED):
            nightkeep.read(str(address(table))).read_all()


@pytest.mark.few(2)
@pytest.mark.parametrize("metrics", ["full", "none"])
@pytest.mark.parametrize("name", EQUAL)
def test_equal_values_are_proven_without_statistics(
    made: Made, iceberg_java: IcebergJava, iceberg: Warehouse, name: str, metrics: str
) -> None:
    with configured(iceberg):
        table = made(EQUAL[name], metrics)
        before = iceberg_java.read(table)
        assert nightkeep.read(str(address(table))).read_all().num_rows == len(before.rows)
        for operation in (Operation.PERSIST_DELETES, Operation.OPTIMIZE):
            done = care_for(table, operation=operation)
            assert done.outcome is Outcome.VERIFIED, done
            assert iceberg_java.read(table) == before


@pytest.mark.few(1)
@pytest.mark.parametrize("metrics", ["truncate(16)", "full", "none"])
def test_spark_writes_such_a_file_of_text_that_is_no_utf_8(
    iceberg_spark: IcebergSpark, iceberg: Warehouse, metrics: str
) -> None:
    """Java writes the partition's value and the bounds with replacement characters, the file with the bytes."""
    with configured(iceberg):
        table = iceberg.table()
        iceberg_spark.attach(iceberg)
        iceberg_spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {iceberg.name}.db")
        properties = f"TBLPROPERTIES ('write.metadata.metrics.default' = '{metrics}')"
        columns = "(id BIGINT, p STRING)"
        iceberg_spark.sql(f"CREATE TABLE {table.sql} {columns} USING iceberg PARTITIONED BY (p) {properties}")
        for number in range(3):
            values = f"({number}, cast(X'C328FF41' AS STRING)), ({number + 10}, 'b')"
            iceberg_spark.sql(f"INSERT INTO {table.sql} VALUES {values}")
        before = iceberg_spark.read(table, columns=["id", "hex(p)"])
        done = care_for(table, operation=Operation.OPTIMIZE)
        assert done.outcome is Outcome.REFUSED, done
        assert NAMED in str(done.reason)
        assert done.committed_version is None
        assert iceberg_spark.read(table, columns=["id", "hex(p)"]) == before
        with pytest.raises(RefusedTable, match=NAMED):
            nightkeep.read(str(address(table))).read_all()


def test_a_replacement_character_that_is_stored_is_a_value_like_any_other(
    iceberg_java: IcebergJava, iceberg: Warehouse
) -> None:
    with configured(iceberg):
        table = iceberg.table()
        iceberg_java.create(table, [("id", "long"), ("p", "string")], Layout(partition=(("p", "identity"),)))
        for number in range(3):
            iceberg_java.append(table, [[number, "a\ufffdb"]])
        before = iceberg_java.read(table)
        done = care_for(table, operation=Operation.OPTIMIZE)
        assert done.outcome is Outcome.VERIFIED, done
        assert iceberg_java.read(table) == before
