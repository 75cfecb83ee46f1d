"""Peak memory of one task, at one size and at ten times that size.

On a bucket of a Paimon table with keys, and on a unit of a Delta and of an Iceberg table.

Run by `make bench-memory`. Every measurement is a process of its own, without Spark: the rewrite, and the gate at both
levels. Fails if a peak is above `--task-memory` and the constant that docs/policy.md states.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from benches import memory_of_plans

from nightkeep.formats.paimon.data.write import PaimonFileWriter
from nightkeep.formats.paimon.gate.gate import gate_of
from nightkeep.formats.paimon.metadata.binary_row import encode_row
from nightkeep.formats.paimon.metadata.merge_engine import merge_rules
from nightkeep.formats.paimon.metadata.naming import PaimonNaming
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema
from nightkeep.formats.paimon.metadata.snapshot import Bucket, Schemas, data_file
from nightkeep.formats.paimon.metadata.task_memory import BASE_BYTES
from nightkeep.formats.paimon.metadata.types import parse_type
from nightkeep.formats.paimon.metadata.vector_ranges import vector_ranges
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask, rewrite
from nightkeep.formats.paimon.rewrite.steps import Step, StepKind
from nightkeep.model import Run, UnitKey, VerifyLevel
from nightkeep.policy.units import parse_size
from nightkeep.stages.verify import prove
from nightkeep.storage import open_storage
from nightkeep.tasks import CostMeter

KINDS: Mapping[str, Mapping[str, str]] = {
    "deduplicate": {},
    "changelog": {"changelog-producer": "lookup"},
    "partial-update": {"merge-engine": "partial-update", "ignore-delete": "true"},
    "aggregation": {"merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"},
    "no vectors": {"deletion-vectors.enabled": "false"},
}
TYPES = {
    "region": "INT NOT NULL",
    "order_id": "BIGINT NOT NULL",
    "amount": "BIGINT",
    "status": "STRING",
    "note": "STRING",
}
RUN = Run("bench", "b" * 16, "ab" * 4, 1_767_268_800_000)
STATES = np.array(["new", "paid", "sent", "done"])
TARGET_BYTES = 32 << 20
STEP_ROWS = 1 << 17
ALLOWANCE_BYTES = 320 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """A bucket of `base` rows on the top level, and half as many on level 0 in four files. `one_region`: all keys have
    the same first column."""

    kind: str
    base: int
    task_bytes: int
    one_region: bool
    folder: str


def made(case: Case) -> Bucket:
    """The bucket, with its files in the folder."""
    options = {"deletion-vectors.enabled": "true", **KINDS[case.kind]}
    fields = tuple(PaimonField(n, name, parse_type(kind)) for n, (name, kind) in enumerate(TYPES.items()))
    schema = PaimonSchema(0, fields, (), ("region", "order_id"), options)
    empty = Bucket(
        UnitKey("", 0),
        {},
        encode_row((), ()),
        "bucket-0",
        1,
        (),
        (),
        (),
        Schemas(schema, {0: schema}),
        task_bytes=case.task_bytes,
    )
    storage, types = open_storage(case.folder), [fields[0].type, fields[1].type]
    files = []
    for number in range(5):
        level, rows, step = (0, case.base // 8, 16 - number) if number else (5, case.base, 2)
        naming = PaimonNaming(replace(RUN, attempt=f"{number:08}"), empty.key)
        writer = PaimonFileWriter(storage, empty, naming, level=level, now_ms=RUN.now_ms)
        target = TARGET_BYTES if level else 1 << 40
        written = writer.write(chunks(case, rows, step=step, first=number * case.base), target_bytes=target)
        files += [data_file(file.record, types) for file in written]
    return replace(empty, files=tuple(files))


def chunks(case: Case, rows: int, *, step: int, first: int) -> Iterator[pa.Table]:
    """Rows by key, every `step`th number, with sequence numbers from `first`."""
    for start in range(0, rows, STEP_ROWS):
        at = np.arange(start, min(start + STEP_ROWS, rows))
        ids = at * step
        region = pa.array(np.zeros(len(at), np.int32) if case.one_region else (ids >> 20).astype(np.int32))
        yield pa.table(
            {
                "_KEY_region": region,
                "_KEY_order_id": ids,
                "_SEQUENCE_NUMBER": at + first,
                "_VALUE_KIND": np.zeros(len(at), np.int8),
                "region": region,
                "order_id": ids,
                "amount": at % 1000,
                "status": pa.array(STATES[at % len(STATES)]),
                "note": pa.array(np.char.add("note of ", ids.astype("U12"))),
            }
        )


def task_of(bucket: Bucket) -> UpgradeTask:
    """Level 0 goes to level 4, above the rows that it replaces; without vectors all files are merged."""
    schema = bucket.schemas.current
    if schema.options["deletion-vectors.enabled"] == "false":
        step = Step(StepKind.MERGE, bucket.files)
        return UpgradeTask(bucket, (step,), 5, TARGET_BYTES, values_needed=False, looks_up=False)
    lifted = tuple(file for file in bucket.files if file.level == 0)
    needed = merge_rules(schema) is not None or "changelog-producer" in schema.options
    return UpgradeTask(bucket, (Step(StepKind.MERGE, lifted),), 4, TARGET_BYTES, values_needed=needed)


def rewritten(case: Case, bucket: Bucket) -> tuple[int, Bucket]:
    """The peak, and the bucket afterwards."""
    meter, task = CostMeter(), task_of(bucket)
    edit = rewrite(open_storage(case.folder), task, RUN).edit
    peak = meter.cost().peak_bytes
    assert isinstance(edit, BucketEdit)
    types = [field.type for field in bucket.schemas.current.fields[:2]]
    gone = {record["_FILE_NAME"] for record in edit.removed}
    files = [file for file in bucket.files if file.name not in gone]
    files += [data_file(record, types) for record in edit.added]
    after = replace(bucket, files=tuple(files), changelog=tuple(data_file(record, types) for record in edit.changelog))
    if edit.index_record is None:
        return peak, after
    return peak, replace(after, vectors=vector_ranges(edit.index_record), index_records=(edit.index_record,))


def proven(case: Case, base: Bucket, after: Bucket, level: VerifyLevel) -> int:
    """The peak of a proof."""
    found = prove(gate_of(open_storage(case.folder)), base, after, level=level)
    if not found.proven:
        raise SystemExit(f"bench: {case} at level {level}: {found.faults or 'rows differ'}")
    return found.cost.peak_bytes


def idle() -> int:
    return CostMeter().cost().peak_bytes


def measure(case: Case) -> tuple[int, ...]:
    """Peaks of the rewrite and of the gate at each level."""
    Path(case.folder, "bucket-0").mkdir(parents=True)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as apart:
        bucket = apart.submit(made, case).result()
        peak, after = apart.submit(rewritten, case, bucket).result()
        return (peak, *(apart.submit(proven, case, bucket, after, level).result() for level in VerifyLevel))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "kinds", nargs="*", default=[*KINDS, *memory_of_plans.KINDS], help=", ".join((*KINDS, *memory_of_plans.KINDS))
    )
    parser.add_argument("--rows", type=float, default=2, help="millions of rows on the top level at one size")
    parser.add_argument("--task-memory", default="512MB")
    parser.add_argument("--one-region", action="store_true", help="all keys have the same first column")
    arguments = parser.parse_args()
    budget = parse_size(arguments.task_memory)
    limit = max(budget, BASE_BYTES) + ALLOWANCE_BYTES
    print(f"task_memory {budget >> 20} MiB; peaks in MiB of the rewrite, and of the gate at {', '.join(VerifyLevel)}")
    worst = 0
    for kind in arguments.kinds:
        for times in (1, 10):
            rows = int(arguments.rows * 1_000_000) * times
            with tempfile.TemporaryDirectory(prefix="nightkeep-bench-") as folder:
                if kind in KINDS:
                    peaks = measure(Case(kind, rows, budget, arguments.one_region, folder))
                else:
                    peaks = memory_of_plans.peaks(memory_of_plans.PlannedCase(kind, rows, budget, folder))
            worst = max(worst, *peaks)
            print(f"  {kind:16} {times:3} x  {', '.join(f'{peak >> 20:6,}' for peak in peaks)}", flush=True)
    if worst > limit:
        raise SystemExit(f"bench: a peak of {worst >> 20:,} MiB, expected at most {limit >> 20:,}")


if __name__ == "__main__":
    main()
