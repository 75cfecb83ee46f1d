"""Engines agree on the tables that other tests are made of; where one of them is known to fail, it says so here."""

import json
from collections.abc import Callable

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_python import pyiceberg_read
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table
from tests.drivers.json_lines import EngineError
from tests.drivers.lake_rows import Rows
from tests.drivers.lakes_oracle import Lakes
from tests.formats.iceberg.golden_tables import (
    GOLDEN,
    KEPT,
    NOT_READ_BY_DUCKDB,
    NOT_READ_BY_JAVA,
    NOT_READ_BY_PYICEBERG,
    RECIPES,
    known,
)
from tests.support.extended import some_extended

pytestmark = pytest.mark.in_turn("version")

Made = Callable[[str], Table]

FOR_SPARK = ("codecs_v3", "widened_key_v2", "odd_paths_v3", "defaulted_key", "avro_data_v3", "orc_data_v2")


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "name", some_extended([name for name in RECIPES if not known(NOT_READ_BY_JAVA, name)], keep=16)
)
def test_a_recipe_reads_alike(name: str, made: Made, iceberg_java: IcebergJava, lakes: Lakes) -> None:
    table = made(name)
    rows = iceberg_java.read(table)
    if not known(NOT_READ_BY_DUCKDB, name):
        assert lakes.duckdb_read_iceberg(table.metadata) == rows
    live = [entry for entry in iceberg_java.entries(table) if entry["status"] != 2]
    plain = {entry["file_format"] for entry in live} <= {"PARQUET", "PUFFIN"}
    keyed = any(entry["content"] == 2 for entry in live)
    if plain and not keyed and not known(NOT_READ_BY_PYICEBERG, name):
        assert pyiceberg_read(table.metadata) == rows


@pytest.mark.few(1)
@pytest.mark.parametrize("name", FOR_SPARK)
def test_spark_reads_what_duckdb_does_not(
    name: str, made: Made, iceberg_java: IcebergJava, iceberg_spark: IcebergSpark
) -> None:
    table = made(name)
    assert iceberg_spark.read(table) == iceberg_java.read(table)


@pytest.mark.parametrize("version", (2, 3))
def test_a_key_that_was_dropped_still_deletes_for_spark(
    version: int, made: Made, iceberg_java: IcebergJava, iceberg_spark: IcebergSpark
) -> None:
    table = made(f"dropped_key_v{version}")
    assert iceberg_spark.read(table).column("id") == (0, 3, 4, 5, 6)
    with pytest.raises(EngineError, match="Cannot find required field for ID 3"):
        iceberg_java.read(table)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", some_extended(KEPT, keep=6))
def test_kept_bytes_are_the_recipes(name: str, made: Made, golden: Made, iceberg_java: IcebergJava) -> None:
    rows = Rows.of(json.loads((GOLDEN / name / "rows.json").read_text()))
    assert iceberg_java.read(golden(name)) == iceberg_java.read(made(name)) == rows
