"""Partitions by values of type fixed, which Iceberg's Java writes otherwise than Avro: read in either way, swept and
expired, and left out of runs by name, while other partitions of the table are maintained."""

import io
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Column, Table, Warehouse
from tests.formats.iceberg.runs import address, care_for, configured, folder, opened
from tests.formats.iceberg.sweeping import UUID, aged, listed, now_ms, old, planted, swept

from nightkeep.checking.check import check
from nightkeep.errors import CorruptMetadata
from nightkeep.formats.iceberg.catalog.catalog import open_handle
from nightkeep.formats.iceberg.metadata.avro import Names, read_frame, read_records
from nightkeep.formats.iceberg.metadata.manifest_schema import entry_names
from nightkeep.formats.iceberg.metadata.table_metadata import head
from nightkeep.model import Operation, Outcome, Run
from nightkeep.model.check_values import CheckRequest
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.records.document import CheckStatus
from nightkeep.retention.expire_versions import ExpireOrder, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets

COLUMNS: tuple[Column, ...] = (("id", "long"), ("day", "string"), ("code", "fixed[3]"))
DAYS = ("2026-11-01", "2026-11-02")
CODES = ("616263", "ffffff", "060606", None)
NAMED = "partition values of type fixed[3], which engines write in two ways, are not handled"


@pytest.fixture
def table(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Table]:
    """Two days in three files each, and what came since in partitions by day and code."""
    with configured(iceberg):
        table = iceberg.table()
        iceberg_java.create(table, COLUMNS, Layout(partition=(("day", "identity"),)))
        for start in (0, 100, 200):
            iceberg_java.append(table, rows(start))
        iceberg_java.alter(table, {"change": "add_partition_field", "column": "code", "transform": "identity"})
        for start in (300, 400):
            iceberg_java.append(table, rows(start))
        yield table


def rows(start: int) -> list[tuple[object, ...]]:
    return [(start + n, day, code) for day in DAYS for n, code in enumerate(CODES)]


def manifest(table: Table) -> tuple[bytes, dict[str, Any], Names]:
    """One of the second spec: its bytes, its own schema, and names of its fields."""
    every = [path.read_bytes() for path in sorted((folder(table) / "metadata").glob("*-m[0-9]*.avro"))]
    (data, *_) = [each for each in every if b'"type":"fixed"' in each]
    schema = fastavro.reader(io.BytesIO(data)).writer_schema
    assert isinstance(schema, dict)
    return data, schema, entry_names(opened(table).snapshot().schema, 1)


@pytest.mark.extended
def test_partitions_of_other_specs_are_maintained(table: Table, iceberg_java: IcebergJava, spark: SparkSession) -> None:
    before = iceberg_java.read(table)
    done = care_for(table, operation=Operation.OPTIMIZE)
    assert (done.outcome, [unit.partition for unit in done.units]) == (Outcome.VERIFIED, [f"day={day}" for day in DAYS])
    assert done.plan is not None
    (note,) = [note for note in done.plan.notes if "left out" in note]
    assert note.startswith("8 of 10 partitions are left out, spec-1/day=") and NAMED in note
    assert iceberg_java.read(table) == before
    report = check(CheckRequest(address(table)), spark=spark)
    assert report.status is CheckStatus.PASSED, report
    assert care_for(table, operation=Operation.OPTIMIZE, run_id="again").outcome is Outcome.UNCHANGED


def test_a_table_of_such_partitions_alone_is_refused_by_name(iceberg_java: IcebergJava, iceberg: Warehouse) -> None:
    with configured(iceberg):
        table = iceberg.table()
        iceberg_java.create(table, COLUMNS, Layout(partition=(("code", "identity"),)))
        iceberg_java.append(table, rows(0))
        before = listed(table)
        done = care_for(table, operation=Operation.OPTIMIZE)
        assert done.outcome is Outcome.REFUSED and NAMED in str(done.reason)
        assert listed(table) == before


def test_a_sweep_deletes_what_nothing_needs(table: Table) -> None:
    before = listed(table)
    left = planted(table, f"data/day={DAYS[0]}/code=YWJj/00000-0-{UUID}-00001.parquet", f"metadata/{UUID}-m0.avro")
    aged(folder(table))
    found = swept(table, SweepMode.DELETE)
    assert (found.swept.outcome, frozenset(found.orphans), listed(table)) == (Outcome.VERIFIED, left, before)


def test_an_expiry_keeps_what_the_last_version_needs(table: Table, iceberg_java: IcebergJava) -> None:
    assert care_for(table, operation=Operation.OPTIMIZE).outcome is Outcome.VERIFIED
    old(table)
    before, shown = listed(table), iceberg_java.read(table)
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(now_ms()), Retention(now_ms(), 0))
    run = Run("expiry", "0" * 16, "a", now_ms())
    done = expire_versions(opened(table).retention, order, run, sets=MemorySets, before=lambda _: None)
    assert done.outcome is Outcome.VERIFIED
    metadata, location = open_handle(opened(table).address.location).load()
    assert len(head(metadata, subject=location).snapshots) == 1
    # The files that were packed went with the versions that showed them.
    assert len([name for name in before - listed(table) if name.endswith(".parquet")]) == 6
    assert iceberg_java.read(table) == shown


# Both ways to write


def test_what_java_wrote_reads_as_what_avro_would_write(table: Table) -> None:
    data, schema, names = manifest(table)
    found = list(read_records(data, names, subject="m"))
    number = opened(table).snapshot().schema.spec(1).fields[1].field_id
    values = {record["data_file"][names.by_id[102]][f"p{number}"] for record in found}
    assert values == {None if code is None else bytes.fromhex(code) for code in CODES}
    assert read_frame(data, names, subject="m") is None, "it would take what Java wrote for what Avro has"
    # The same entries, as a library of Avro's writes them.
    plain = written(schema, found, names)
    assert len(plain) != len(data) and list(read_records(plain, names, subject="m")) == found


def test_what_fits_neither_way_is_damage(table: Table) -> None:
    data, schema, names = manifest(table)
    plain = written(schema, list(read_records(data, names, subject="m")), names)
    longer = plain.replace(b'"size": 3', b'"size": 4')
    assert longer != plain
    with pytest.raises(CorruptMetadata, match=r"m: expected .* with a length before each or without, found neither"):
        list(read_records(longer, names, subject="m"))


def written(schema: dict[str, Any], records: list[dict[str, Any]], names: Names) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, [_named(schema, record, names) for record in records])
    return out.getvalue()


def _named(schema: Any, value: Any, names: Names) -> Any:
    """A record by the names of its own schema."""
    if isinstance(schema, list):
        return None if value is None else _named(schema[-1], value, names)
    if isinstance(schema, dict) and schema["type"] == "record":
        called = {field["name"]: names.by_id.get(field["field-id"], f"_{field['name']}") for field in schema["fields"]}
        return {field["name"]: _named(field["type"], value[called[field["name"]]], names) for field in schema["fields"]}
    if isinstance(schema, dict) and schema["type"] == "array":
        return [_named(schema["items"], each, names) for each in value]
    return value
