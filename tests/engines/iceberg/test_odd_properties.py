"""Table properties with values that no engine's documentation lists: read as Java reads, and written as it writes."""

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.json_lines import EngineError
from tests.formats.iceberg.runs import COLUMNS, DAYS, address, care_for, configured, row

import nightkeep
from nightkeep.model import Operation, Outcome

ODD = (
    ("write.parquet.compression-codec", ""),
    ("write.parquet.compression-codec", " zstd"),
    ("write.parquet.compression-codec", "uncompressed"),
    ("write.parquet.compression-level", ""),
    ("write.parquet.page-size-bytes", ""),
    ("write.parquet.dict-size-bytes", "many"),
    ("write.parquet.row-group-size-bytes", ""),
    ("write.target-file-size-bytes", ""),
    ("write.metadata.compression-codec", ""),
    ("write.metadata.previous-versions-max", ""),
    ("write.metadata.metrics.default", ""),
    ("write.metadata.metrics.max-inferred-column-defaults", ""),
    ("write.metadata.path", ""),
    ("write.data.path", ""),
    ("write.manifest.compression-codec", ""),
    ("write.avro.compression-codec", ""),
    ("write.avro.compression-codec", "lzo"),
    ("write.manifest.compression-codec", "lzo"),
    ("write.object-storage.enabled", ""),
    ("commit.manifest.target-size-bytes", ""),
    ("write.parquet.bloom-filter-enabled.column.amount", ""),
    ("schema.name-mapping.default", ""),
    ("gc.enabled", ""),
    ("write.format.default", ""),
)
"""Properties and odd values of theirs."""


SPARK_READS = "write.target-file-size-bytes"
"""Java's library appends files of any size. Spark reads this property, so Spark is asked too."""


def writes(iceberg_java: IcebergJava, spark: IcebergSpark | None, table: Table) -> bool:
    try:
        iceberg_java.append(table, [row(DAYS[1], 7)])
        if spark is not None:
            spark.attach(table.warehouse)
            spark.sql(f"INSERT INTO {table.sql} SELECT * FROM {table.sql}")
    except EngineError:
        return False
    return True


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "value"), ODD)
def test_an_odd_property(
    iceberg_java: IcebergJava, iceberg: Warehouse, name: str, value: str, request: pytest.FixtureRequest
) -> None:
    table = iceberg.table()
    iceberg_java.create(table, COLUMNS, Layout(partition=(("day", "identity"),)))
    for start in (0, 100):
        iceberg_java.append(table, [row(DAYS[0], number) for number in range(start, start + 20)])
    try:
        iceberg_java.alter(table, {"change": "set_properties", "properties": {name: value}})
    except EngineError:
        pytest.skip("Java sets no such property")
    with configured(iceberg):
        assert nightkeep.read(str(address(table))).read_all().num_rows == 40
        before = iceberg_java.read(table).ordered()
        told = care_for(table, operation=Operation.OPTIMIZE)
        assert told.outcome in (Outcome.VERIFIED, Outcome.REFUSED), told.reason
        written = writes(iceberg_java, request.getfixturevalue("iceberg_spark") if name == SPARK_READS else None, table)
        print(f"ODD {name}={value!r}: engines write {written}, ours {told.outcome} {told.reason}")
        assert told.outcome is Outcome.VERIFIED or not written, told.reason
        if told.outcome is Outcome.VERIFIED and not written:
            assert iceberg_java.read(table).ordered() == before
