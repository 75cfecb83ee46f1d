"""Tables of format version 1: the rows that Iceberg Java reads, of all shapes that its metadata had over the years."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.lake_rows import Rows
from tests.formats.iceberg.golden_shapes import evolved, first_version, specs
from tests.formats.iceberg.runs import address, care_for, configured
from tests.formats.iceberg.shown import OnDisk, canonical_rows
from tests.support.read_conditions import require_filters_agree

import nightkeep
from nightkeep.formats.iceberg.metadata.snapshot import load
from nightkeep.model import Address, Operation, Outcome


def named(java: IcebergJava, table: Table) -> None:
    """A file without field ids, read by the table's name mapping, which knows an older name of a column."""
    java.create(table, (("id", "long"), ("name", "string")), Layout(format_version=1))
    file = Path(java.describe(table)["location"].removeprefix("file:")) / "data" / "foreign.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", None]}), file)
    java.commit(table, java.adopt(table, f"file:{file}".replace("file://", "file:/")), kind="append")
    java.alter(table, {"change": "rename_column", "name": "name", "to": "label"})
    mapping = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["name", "label"]}]
    properties = {"schema.name-mapping.default": json.dumps(mapping)}
    java.alter(table, {"change": "set_properties", "properties": properties})
    java.append(table, [[3, "c"]])


def removed(java: IcebergJava, table: Table) -> None:
    """Partition fields of version 1 stay as void ones. A column of the spec is renamed."""
    first_version(java, table)
    java.alter(table, {"change": "remove_partition_field", "name": "day"})
    java.alter(table, {"change": "rename_column", "name": "day", "to": "date"})
    java.append(table, [[99, "2026-12-01", None, None][: len(java.describe(table)["schema"]["fields"])]])


MADE: Mapping[str, Callable[[IcebergJava, Table], None]] = {
    "partitioned": first_version,
    "evolved": lambda java, table: evolved(java, table, 1),
    "specs": lambda java, table: specs(java, table, 1),
    "named": named,
    "removed": removed,
    "empty": lambda java, table: java.create(table, (("id", "int"),), Layout(format_version=1)) and None,
}


def shown(table: Table, **options: Any) -> tuple[pa.Table, Rows]:
    found = nightkeep.read(str(address(table)), **options).read_all()
    metadata = load(Address("iceberg", "c/db.t", "t"), OnDisk(table), reads_only=True)  # type: ignore[arg-type]
    return found, canonical_rows(found, metadata.schema, found.column_names).ordered()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", MADE)
def test_rows_are_those_of_java(iceberg_java: IcebergJava, iceberg: Warehouse, name: str) -> None:
    table = iceberg.table()
    MADE[name](iceberg_java, table)
    assert table.document()["format-version"] == 1
    with configured(iceberg):
        found, rows = shown(table)
        assert rows == iceberg_java.read(table, columns=found.column_names).ordered()
        text = str(address(table))
        require_filters_agree(lambda where: nightkeep.read(text, where=where).read_all(), found, seed=len(name))
        for snapshot in table.document()["snapshots"]:
            number = snapshot["snapshot-id"]
            past = nightkeep.read(text, version=number).read_all()
            assert past.num_rows == len(iceberg_java.read(table, snapshot=number).rows)


def without(*names: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for each in names:
            document.pop(each, None)

    return change


def oldest(document: dict[str, Any]) -> None:
    """As the first releases wrote it: one schema, one spec without ids of its fields, no UUID, no refs."""
    (spec,) = document["partition-specs"]
    document["partition-spec"] = [{k: v for k, v in f.items() if k != "field-id"} for f in spec["fields"]]
    (schema,) = document["schemas"]
    document["schema"] = {k: v for k, v in schema.items() if k not in ("schema-id", "identifier-field-ids")}
    without(
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "schemas",
        "current-schema-id",
        "table-uuid",
        "refs",
        "sort-orders",
        "default-sort-order-id",
        "statistics",
        "partition-statistics",
        "metadata-log",
    )(document)
    for snapshot in document["snapshots"]:
        snapshot.pop("schema-id", None)


def embedded(document: dict[str, Any], table: Table) -> None:
    """Snapshots without manifest lists name their manifests themselves."""
    for snapshot in document["snapshots"]:
        whole = load(Address("iceberg", "c/db.t", "t"), OnDisk(table), snapshot["snapshot-id"], reads_only=True)  # type: ignore[arg-type]
        snapshot.pop("manifest-list")
        snapshot["manifests"] = [manifest.path for manifest in whole.manifests]


@pytest.mark.parametrize("shape", ["oldest", "embedded", "no snapshot summary"])
def test_metadata_of_early_releases(iceberg_java: IcebergJava, iceberg: Warehouse, shape: str) -> None:
    table = iceberg.table()
    first_version(iceberg_java, table)
    whole = iceberg_java.read(table).ordered()
    document = table.document()
    if shape == "embedded":
        embedded(document, table)
    elif shape == "oldest":
        oldest(document)
    else:
        for snapshot in document["snapshots"]:
            snapshot.pop("summary")
    table.metadata.write_text(json.dumps(document))
    # Hadoop's checksum is of what was there before.
    (table.metadata.parent / f".{table.metadata.name}.crc").unlink(missing_ok=True)
    with configured(iceberg):
        found, rows = shown(table)
    other = iceberg.table("db.again")
    iceberg_java.register(other, table.metadata)
    assert rows == iceberg_java.read(other, columns=found.column_names).ordered() == whole


@pytest.mark.few(1)
@pytest.mark.parametrize("version", [1, 2])
def test_partitions_of_days_that_python_has_not(iceberg_java: IcebergJava, iceberg: Warehouse, version: int) -> None:
    """Read with their rows; left alone by operations, which go on with the other partitions."""
    table = iceberg.table()
    columns = (("id", "int"), ("day", "date"), ("at", "timestamp"))
    fields = (("day", "identity"), ("at", "day"))
    iceberg_java.create(table, columns, Layout(partition=fields, format_version=version))
    for start in (0, 10):
        iceberg_java.append(
            table,
            [
                [start + 1, "-0001-01-01", "2026-11-01T00:00:00"],
                [start + 2, "12026-01-01".rjust(12, "+"), None],
                [start + 3, "2026-11-01", "-0044-03-15T00:00:00"],
                [start + 4, "2026-11-01", "2026-11-01T00:00:00"],
                [start + 5, "0001-01-01", "2026-11-01T00:00:00"],
            ],
        )
    with configured(iceberg):
        found, rows = shown(table)
        expected = iceberg_java.read(table, columns=found.column_names).ordered()
        assert rows == expected and len(rows.rows) == 10
        assert nightkeep.read(str(address(table)), where="day = DATE '2026-11-01'").read_all().num_rows == 4
        if version > 1:
            told = care_for(table, operation=Operation.OPTIMIZE)
            assert told.outcome is Outcome.VERIFIED, told.reason
            assert iceberg_java.read(table, columns=found.column_names).ordered() == expected
