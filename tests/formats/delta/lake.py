"""Delta tables of any columns, and operations done to them as a night does: planned, proven, published."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64
from tests.support.table_storage import storage_of

from nightkeep.formats.delta.data.columns import DeltaFileReader
from nightkeep.formats.delta.data.write import DeltaFileWriter
from nightkeep.formats.delta.deletes.vectors import DeltaVectorWriter, read_vector
from nightkeep.formats.delta.format import DeltaTable, open_table
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.naming import DeltaNaming
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.model import Address, Committed, Operation, Plan, Request, Run, Verified, VerifyLevel
from nightkeep.model.variant_type import is_variant
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.publish import publish
from nightkeep.stages.verify import verify
from nightkeep.tasks import Exchange, Mapper, inline, inline_exchange

TYPES: Mapping[pa.DataType, Any] = {
    pa.int8(): "byte",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}
ROW_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
}
_RUNS = count()


@dataclass
class Lake:
    """A table in `folder`; `partitioned` names its last columns. Written with our own writer: volume is cheap."""

    folder: Path
    schema: pa.Schema
    partitioned: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "_delta_log").mkdir(parents=True)
        fields = [{"name": f.name, "type": _type(f.type), "nullable": True, "metadata": {}} for f in self.schema]
        writers = ["deletionVectors", "rowTracking", "domainMetadata"]
        has_variants = any(is_variant(field.type) for field in self.schema)
        variants = ["variantType", "variantShredding"] if has_variants else []
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors", *variants],
            "writerFeatures": [*(writers if "delta.enableRowTracking" in self.properties else writers[:1]), *variants],
        }
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "createdTime": 0,
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": self.partitioned,
            "configuration": {"delta.enableDeletionVectors": "true", **self.properties},
        }
        self._commit([{"protocol": protocol}, {"metaData": metadata}])

    @property
    def table(self) -> DeltaTable:
        return open_table(Address("delta", str(self.folder), "lake"))

    @property
    def snapshot(self) -> DeltaSnapshot:
        return self.table.snapshot()

    @property
    def files(self) -> list[DeltaDataFile]:
        return [file for unit in self.snapshot.units for file in unit.files]

    def append(self, rows: pa.Table, *, files: int = 1, partition: Mapping[str, str | None] | None = None) -> None:
        """One commit of `files` files of one partition, rows in their order."""
        before, naming = self.snapshot, DeltaNaming(Run("", "f" * 16, uuid.uuid4().hex, 0))
        schema, mark = before.schema, before.row_id_high_water_mark
        if schema.row_tracking is not None:
            rows = rows.append_column("_metadata.row_id", pa.nulls(rows.num_rows, pa.int64()))
            rows = rows.append_column("_metadata.row_commit_version", pa.nulls(rows.num_rows, pa.int64()))
        writer = DeltaFileWriter(storage_of(self.table), schema, naming, partition or {}, now_ms=0)
        written = writer.write([rows], rows_per_file=-(-rows.num_rows // files))
        actions, base = [], -1 if mark is None else mark
        for file in written:
            add = {**file.add, "dataChange": True}
            if schema.assigns_row_ids:
                add |= {"baseRowId": base + 1, "defaultRowCommitVersion": before.version + 1}
            actions.append({"add": add})
            base += file.rows
        if schema.assigns_row_ids:
            domain = {"domain": "delta.rowTracking", "configuration": json.dumps({"rowIdHighWaterMark": base})}
            actions.append({"domainMetadata": {**domain, "removed": False}})
        self._commit(actions)

    def mark(self, deleted: Mapping[str, Iterable[int]]) -> None:
        """Delete positions of files, by path, in one commit and one file of vectors."""
        storage = storage_of(self.table)
        writer, actions = DeltaVectorWriter(storage, ""), []
        for file in self.files:
            if file.path not in deleted:
                continue
            vector = writer.add(read_vector(storage, file) | BitMap64(deleted[file.path]))
            old = {key: file.raw[key] for key in ("path", "deletionVector", "partitionValues") if key in file.raw}
            actions.append({"remove": {**old, "deletionTimestamp": 1, "dataChange": True}})
            stats = json.dumps(json.loads(file.stats or "{}") | {"tightBounds": False})
            actions.append(
                {"add": {**file.raw, "deletionVector": vector.descriptor, "stats": stats, "dataChange": True}}
            )
        writer.close()
        self._commit(actions)

    def plan(self, request: Request) -> Plan:
        return plan(self.table, self.snapshot, request)

    def run(self, request: Request, *, mapper: Mapper = inline, exchange: Exchange = inline_exchange) -> Plan:
        """Plan, rewrite, prove every row, publish; the plan, which may be empty. Row ids are rows, too."""
        table, found = self.table, self.plan(request)
        if not found.units:
            return found
        number = next(_RUNS)
        run = Run(f"run-{number}", f"{number:016x}", uuid.uuid4().hex[:8], request.now_ms)
        rewrites = execute(table, found, run, mapper=mapper, exchange=exchange)
        candidate = table.commits.stage(table.snapshot(found.version), rewrites, run)
        checked = verify(table, found, rewrites, candidate, level=VerifyLevel.FULL, mapper=inline)
        assert isinstance(checked, Verified), checked
        assert isinstance(publish(table, checked, run), Committed)
        return found

    def rows(self, columns: Sequence[str] | None = None) -> list[str]:
        """Live rows by each vector's positions, row ids included, spelled out (NaN equals itself then) and sorted."""
        found = []
        for unit in self.snapshot.units:
            for file in unit.files:
                hidden = read_vector(storage_of(self.table), file)
                held = DeltaFileReader(storage_of(self.table), unit, file).read(columns).to_pylist()
                found += [repr(row) for position, row in enumerate(held) if position not in hidden]
        return sorted(found)

    def read(self, file: DeltaDataFile) -> pa.Table:
        """What is in a file, by pyarrow alone."""
        return pq.read_table(self.folder / file.name, partitioning=None)

    def unit(self, key: str = "") -> DeltaUnit:
        return next(unit for unit in self.snapshot.units if unit.key.partition == key)

    def _commit(self, actions: Sequence[Mapping[str, Any]]) -> None:
        log = self.folder / "_delta_log"
        version = len(list(log.glob("[0-9]*.json")))
        told = [{"commitInfo": {"timestamp": version, "operation": "WRITE"}}, *actions]
        # delta-rs and DuckDB misread escaped characters from U+20000 on.
        lines = [json.dumps(action, ensure_ascii=False) for action in told]
        with open(log / f"{version:020d}.json", "x", encoding="utf-8", newline="\n") as file:
            file.write("\n".join(lines) + "\n")


def request(operation: Operation = Operation.OPTIMIZE, **asked: Any) -> Request:
    return Request(operation=operation, now_ms=1_795_000_000_000, **asked)


def _type(kind: pa.DataType) -> Any:
    if is_variant(kind):
        return "variant"
    if isinstance(kind, pa.StructType):
        fields = [{"name": f.name, "type": _type(f.type), "nullable": True, "metadata": {}} for f in kind]
        return {"type": "struct", "fields": fields}
    if isinstance(kind, pa.ListType):
        return {"type": "array", "elementType": _type(kind.value_type), "containsNull": True}
    return TYPES[kind]
