"""Partitions by values of type fixed, which Iceberg's Java writes otherwise than Avro: read in either way, swept and
expired, and left out of runs by name, while other partitions of the table are cared for."""

import io
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pytest
from tests.engines.iceberg_java import IcebergJava, Layout
from tests.engines.iceberg_tables import Column, Table, Warehouse
from tests.iceberg.iceberg_caring import care_for, configured, folder, opened
from tests.iceberg.iceberg_sweeping import UUID, aged, listed, now_ms, old, planted, swept

from nightkeep.errors import CorruptMetadata
from nightkeep.expire import ExpireOrder, expire
from nightkeep.formats.iceberg.avro import read_frame, read_records
from nightkeep.formats.iceberg.manifest_schema import entry_names
from nightkeep.formats.iceberg.table_metadata import head
from nightkeep.model import Operation, Outcome, Run
from nightkeep.sweep.inline import InlineSets
from nightkeep.sweep.order import Mode
from nightkeep.territory import ExpireRequest, Retention

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


def manifests(table: Table) -> list[Path]:
    return sorted((folder(table) / "metadata").glob("*-m[0-9]*.avro"))


def test_partitions_of_other_specs_are_cared_for(table: Table, iceberg_java: IcebergJava) -> None:
    before = iceberg_java.read(table)
    done = care_for(table, operation=Operation.OPTIMIZE)
    assert (done.outcome, [unit.partition for unit in done.units]) == (
        Outcome.VERIFIED,
        [f"day={day}" for day in DAYS],
    )
    assert done.plan is not None
    (note,) = [note for note in done.plan.notes if "left out" in note]
    assert note.startswith("8 of 10 partitions are left out, spec-1/day=") and NAMED in note
    assert iceberg_java.read(table) == before


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
    left = planted(
        table, f"data/day={DAYS[0]}/code=YWJj/00000-0-{UUID}-00001.parquet", f"metadata/{UUID}-m0.avro"
    )  # fmt: skip
    aged(folder(table))
    found = swept(table, Mode.DELETE)
    assert (found.swept.outcome, frozenset(found.orphans), listed(table)) == (Outcome.VERIFIED, left, before)


def test_an_expiry_keeps_what_the_last_version_needs(table: Table, iceberg_java: IcebergJava) -> None:
    assert care_for(table, operation=Operation.OPTIMIZE).outcome is Outcome.VERIFIED
    old(table)
    before, shown = listed(table), iceberg_java.read(table)
    order = ExpireOrder(Mode.DELETE, ExpireRequest(now_ms()), Retention(now_ms(), 0))
    run = Run("expiry", "0" * 16, "a", now_ms())
    done = expire(opened(table), order, run, sets=InlineSets, before=lambda _: None)
    assert done.outcome is Outcome.VERIFIED
    metadata, location = opened(table).handle.load()
    assert len(head(metadata, subject=location).snapshots) == 1
    # The files that were packed went with the versions that showed them.
    assert len([name for name in before - listed(table) if name.endswith(".parquet")]) == 6
    assert iceberg_java.read(table) == shown


# Both ways to write


def test_what_java_wrote_reads_as_what_avro_would_write(table: Table) -> None:
    schema = opened(table).snapshot().schema
    names = entry_names(schema, 1)
    last = manifests(table)[-1]
    (data,) = [path.read_bytes() for path in manifests(table) if b"fixed" in path.read_bytes()][:1]
    found = list(read_records(data, names, subject=str(last)))
    field = schema.spec(1).fields[1]
    values = {record["data_file"]["partition"][f"p{field.field_id}"] for record in found}
    assert values == {None if code is None else bytes.fromhex(code) for code in CODES}
    assert read_frame(data, names, subject="") is None, "it would take what Java wrote for what Avro has"
    # The same entries, as a library of Avro's writes them.
    told = fastavro.reader(io.BytesIO(data)).writer_schema
    assert isinstance(told, dict)
    plain = written(told, found, names.by_id)
    assert plain != data
    assert list(read_records(plain, names, subject="")) == found


def written(schema: object, records: list[dict[str, object]], by_id: object) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, [back(schema, record, by_id) for record in records])  # type: ignore[arg-type]
    return out.getvalue()


def back(schema: object, value: object, by_id: object) -> object:
    """A record with the names that its own schema has."""
    if isinstance(schema, list):
        return None if value is None else back(schema[-1], value, by_id)
    if isinstance(schema, dict) and schema["type"] == "record":
        assert isinstance(value, dict) and isinstance(by_id, dict)
        return {
            field["name"]: back(field["type"], value[by_id.get(field["field-id"], f"_{field['name']}")], by_id)
            for field in schema["fields"]
        }
    if isinstance(schema, dict) and schema["type"] == "array":
        assert isinstance(value, list)
        return [back(schema["items"], each, by_id) for each in value]
    return value


def test_what_fits_neither_way_is_damage(table: Table) -> None:
    (path, *_) = [path for path in manifests(table) if b"fixed" in path.read_bytes()]
    schema = opened(table).snapshot().schema
    told = fastavro.reader(io.BytesIO(path.read_bytes())).writer_schema
    assert isinstance(told, dict)
    found = list(read_records(path.read_bytes(), entry_names(schema, 1), subject=""))
    plain = written(told, found, entry_names(schema, 1).by_id)
    other = plain.replace(b'"size": 3', b'"size": 4')
    assert other != plain
    with pytest.raises(CorruptMetadata, match="with a length before each or without, found neither"):
        list(read_records(other, entry_names(schema, 1), subject="m"))
