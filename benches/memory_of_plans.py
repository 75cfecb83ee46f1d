"""Peaks of planned work on a Delta or an Iceberg table, each in a process of its own, without Spark."""

from __future__ import annotations

import json
import multiprocessing
import os
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

from nightkeep.formats import open_table
from nightkeep.model import Address, Clustering, Curve, Operation, Request, Rewrite, Run, Verified, VerifyLevel
from nightkeep.protocol import OpenPlan, OpenTable, SomeEdit
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.verify import verify
from nightkeep.tasks import CostMeter, inline

RUN = Run("bench", "b" * 16, "ab" * 4, 1_767_268_800_000)
FILE_ROWS = 1 << 18
TARGET_BYTES = 32 << 20
KINDS = ("delta packing", "delta z-order", "iceberg packing", "iceberg z-order")
_FIELDS = (("id", "long"), ("amount", "long"), ("status", "string"), ("note", "string"))


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """`rows` of one unit, and the operation on all of its files."""

    kind: str
    rows: int
    task_bytes: int
    folder: str

    @property
    def format(self) -> str:
        return self.kind.partition(" ")[0]

    @property
    def address(self) -> Address:
        place = f"{self.folder}/table" if self.format == "delta" else "memory/db.table"
        return Address(self.format, place, "table")

    @property
    def request(self) -> Request:
        curve = Clustering(("amount", "id"), Curve.Z) if self.kind.endswith("z-order") else None
        return Request(
            Operation.OPTIMIZE,
            RUN.now_ms,
            full=True,
            clustering=curve,
            target_bytes=TARGET_BYTES,
            task_bytes=self.task_bytes,
        )


def peaks(case: PlannedCase) -> tuple[int, ...]:
    """Peak bytes of the rewrite, and of the gate at each level. Raises SystemExit if the gate does not agree."""
    os.environ["PYICEBERG_CATALOG__MEMORY__URI"] = f"sqlite:///{case.folder}/catalog.db"
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as apart:
        apart.submit(_made, case).result()
        peak, rewrites = apart.submit(_rewritten, case).result()
        return (peak, *(apart.submit(_proven, case, rewrites, level).result() for level in VerifyLevel))


def _chunks(case: PlannedCase) -> Iterator[pa.Table]:
    random = np.random.default_rng(1)
    for start in range(0, case.rows, FILE_ROWS):
        at = np.arange(start, min(start + FILE_ROWS, case.rows))
        ids = random.permutation(at)
        yield pa.table(
            {
                "id": ids,
                "amount": random.integers(0, 1_000_000, len(at)),
                "status": pa.array(_STATES[at % len(_STATES)]),
                "note": pa.array(np.char.add("note of ", ids.astype("U12"))),
            }
        )


_STATES = np.array(["new", "paid", "sent", "done"])


def _made(case: PlannedCase) -> None:
    if case.format == "delta":
        _delta(case)
        return
    catalog = SqlCatalog("memory", uri=f"sqlite:///{case.folder}/catalog.db", warehouse=f"file://{case.folder}")
    catalog.create_namespace("db")
    chunks = _chunks(case)
    first = next(chunks)
    table = catalog.create_table("db.table", schema=first.schema)
    for chunk in (first, *chunks):
        table.append(chunk)
    catalog.close()


def _delta(case: PlannedCase) -> None:
    """A log of one commit."""
    folder = Path(case.folder, "table")
    (folder / "_delta_log").mkdir(parents=True)
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in _FIELDS]
    schema = json.dumps({"type": "struct", "fields": fields})
    actions: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": str(uuid.UUID(int=7)),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
                "createdTime": RUN.now_ms,
            }
        },
    ]
    for number, chunk in enumerate(_chunks(case)):
        path = folder / f"part-{number:05}.parquet"
        pq.write_table(chunk, path)
        add = {
            "path": path.name,
            "partitionValues": {},
            "size": path.stat().st_size,
            "modificationTime": RUN.now_ms,
            "dataChange": True,
            "stats": json.dumps({"numRecords": chunk.num_rows}),
        }
        actions.append({"add": add})
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (folder / "_delta_log" / f"{0:020}.json").write_text(text, encoding="utf-8")


def _planned(case: PlannedCase) -> tuple[OpenTable, OpenPlan]:
    table = open_table(case.address)
    planned = plan(table, table.snapshot(), case.request)
    if not planned.units:
        raise SystemExit(f"bench: {case.kind}: expected work, found none")
    return table, planned


def _rewritten(case: PlannedCase) -> tuple[int, Sequence[Rewrite[SomeEdit]]]:
    table, planned = _planned(case)
    meter = CostMeter()
    rewrites = execute(table, planned, RUN, mapper=inline)
    return meter.cost().peak_bytes, rewrites


def _proven(case: PlannedCase, rewrites: Sequence[Rewrite[SomeEdit]], level: VerifyLevel) -> int:
    table, planned = _planned(case)
    candidate = table.commits.stage(table.snapshot(), rewrites, RUN)
    meter = CostMeter()
    found = verify(table, planned, rewrites, candidate, level=level, mapper=inline, task_bytes=case.task_bytes)
    if not isinstance(found, Verified):
        raise SystemExit(f"bench: {case.kind} at level {level}: {found}")
    return meter.cost().peak_bytes
