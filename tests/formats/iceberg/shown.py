"""Tables of any engine's catalog -> what our reader and gate show of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64
from tests.drivers.iceberg_tables import Table
from tests.drivers.lake_rows import Rows, rows_of

from nightkeep.formats.iceberg.data.columns import every_column
from nightkeep.formats.iceberg.data.conform import stored
from nightkeep.formats.iceberg.deletes.vectors import read_vectors
from nightkeep.formats.iceberg.gate.scan import rows, survivors
from nightkeep.formats.iceberg.metadata.content_files import ContentFile
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit, load
from nightkeep.formats.iceberg.metadata.types import arrow_schema, parquet_field
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.model import Address
from nightkeep.storage import LocalStorage, Storage

STORAGE = LocalStorage("/")


def read_vector(storage: Storage, file: ContentFile, rows: int | None) -> BitMap64:
    """One vector, of a data file of so many rows."""
    ((_, positions),) = read_vectors(storage, [(file, rows)])
    return positions


@dataclass(frozen=True)
class OnDisk:
    """A table as its newest metadata file has it, whatever catalog that is in."""

    table: Table
    storage: LocalStorage = STORAGE
    commits_any_version: bool = True

    def load(self) -> tuple[dict[str, Any], str]:
        return self.table.document(), f"file://{self.table.metadata}"


def snapshot_of(table: Table, version: int | None = None) -> IcebergSnapshot:
    address = Address("iceberg", f"{table.warehouse.name}/{table.name}", table.name)
    return load(address, OnDisk(table), version)  # type: ignore[arg-type]


def only_unit(table: Table) -> IcebergUnit:
    (unit,) = snapshot_of(table).units
    return unit


def shown(table: Table, version: int | None = None) -> pa.Table:
    """The rows that the gate sees, with every column it sees."""
    snapshot = snapshot_of(table, version)
    batches = [
        without_views(batch) for unit in snapshot.units for batch in rows(STORAGE, unit, survivors(STORAGE, unit))
    ]
    schema = arrow_schema(snapshot.schema.current)
    lineage = every_column(snapshot.schema)[len(schema) :]
    schema = pa.schema([*schema, *[pa.field(name, pa.int64()) for name in lineage]])
    return pa.Table.from_batches(batches, schema)


def canonical_rows(found: pa.Table, schema: IcebergSchema, columns: Sequence[str] | None = None) -> Rows:
    """As Java's reader answers: in the order of their JSON, a uuid as text."""
    types = {field.name: parquet_field(field).type for field in schema.current.fields}
    names = [field.name for field in schema.current.fields] if columns is None else columns
    arrays = [found.column(name) for name in names]
    told = [
        pa.chunked_array([stored(chunk, types[name], name) for chunk in array.chunks], types[name])
        if name in types and array.type != types[name]
        else array
        for name, array in zip(names, arrays, strict=True)
    ]
    return rows_of(pa.table(told, names=list(names))).ordered()
