"""A partition of a hand-made table -> one new file with its rows: a rewrite with no rule and no kernel of ours."""

import json
import uuid
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from tests.formats.delta.hand_made import NOW_MS, SCHEMA, statistics
from tests.support.table_storage import storage_of

from nightkeep.formats.delta.data.columns import COMMIT_VERSION, ROW_ID
from nightkeep.formats.delta.format import DeltaTable
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DeltaUnit
from nightkeep.kernels.arrow_buffers import without_views
from nightkeep.model import Clustering, Curve, Intent, Operation, Rewrite, Run, TaskCost, View, run_token

NO_COST = TaskCost(0.0, 0.0, 0, "")
BY_ID = Intent(Operation.OPTIMIZE, "day >= '2026-11-01'", Clustering(("id", "price"), Curve.Z))


def a_run(run_id: str = "night", *, now_ms: int = NOW_MS) -> Run:
    """A new attempt of the run."""
    return Run(run_id, run_token(run_id, Operation.OPTIMIZE), uuid.uuid4().hex[:8], now_ms)


def laid_anew(table: DeltaTable, unit: DeltaUnit, run: Run, intent: Intent = BY_ID) -> Rewrite:
    """The surviving rows in one file, or in none where there are none; row ids go with their rows."""
    batches = [*map(without_views, table.gate.rows(unit, table.gate.survivors(unit, View.MERGED)))]
    rows = pa.Table.from_batches(batches) if batches else pa.table({})
    if not rows.num_rows:
        return Rewrite(unit.key, DeltaEdit(unit.files, (), intent), (), 0, 0, (), NO_COST)
    folder = unit.files[0].name.rpartition("/")[0]
    name = f"{folder}/part-00000-nk-{run.token}-{uuid.uuid4()}.snappy.parquet"
    data = rows.select(SCHEMA.names)
    tracked = unit.schema.row_tracking
    if tracked is not None:
        data = data.append_column(tracked.row_id, rows.column(ROW_ID))
        data = data.append_column(tracked.commit_version, rows.column(COMMIT_VERSION))
    with storage_of(table).create(name) as sink:
        pq.write_table(data, sink, store_schema=False)
    add = {
        "path": quote(name, safe="/="),
        "partitionValues": dict(unit.stored_partition),
        "size": len(storage_of(table).read(name)),
        "modificationTime": NOW_MS,
        "dataChange": False,
        "stats": statistics(rows.select(SCHEMA.names)),
    }
    return Rewrite(unit.key, DeltaEdit(unit.files, (add,), intent), (name,), rows.num_rows, 0, (), NO_COST)


def numbers_of(file: DeltaDataFile) -> dict[str, object]:
    found: dict[str, object] = json.loads(file.stats or "{}")
    return found
