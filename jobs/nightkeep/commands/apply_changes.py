"""A batch of change files -> one snapshot, by as many writers as are asked for; applying it again changes nothing."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nightkeep.commands.exit_status import parsed
from nightkeep.errors import UsageError
from nightkeep.formats.iceberg.format import open_table
from nightkeep.formats.iceberg.upsert import routing, sink
from nightkeep.formats.iceberg.upsert.batch import Batch, Distribution, Mode
from nightkeep.formats.iceberg.upsert.sink import Applied
from nightkeep.formats.iceberg.upsert.writer import Target, Written
from nightkeep.model import Address, Run
from nightkeep.policy import load_usable
from nightkeep.redaction import redacted_output
from nightkeep.spark.engine import Engine
from nightkeep.tasks import Exchange, Mapper, Piece, inline, inline_exchange


@dataclass(frozen=True, slots=True)
class Workers:
    """Where writers run: in this process unless told otherwise."""

    mapper: Mapper = inline
    exchange: Exchange = inline_exchange


def apply_batch(address: Address, batch: Batch, workers: Workers) -> Applied:
    """Write the batch and commit it, unless it is committed already.

    Raises UsageError, RefusedTable before anything is written; EvidenceError where a commit's fate is unknown.
    """
    if address.format != "iceberg":
        raise UsageError(f"{address.name}: expected an Iceberg table to apply changes to, found {address.format}")
    table = open_table(address)
    before = sink.applied(table, batch)
    if before is not None:
        return before
    target = sink.target_of(table, table.snapshot(), batch)
    written = _written(target, batch, workers)
    run = Run(batch.batch_id, target.operation.hex[:16], os.urandom(4).hex(), time.time_ns() // 1_000_000)
    return sink.commit_batch(table, target, batch, written, run=run)


def _written(target: Target, batch: Batch, workers: Workers) -> Sequence[Written]:
    numbers = range(batch.writers)
    if batch.distribution is Distribution.HASH and batch.writers > 1:
        scatter, gather = _Scatter(target, batch.writers), _Gather(target)
        return workers.exchange(scatter, gather, list(enumerate(batch.files)), parts=batch.writers, label="apply")
    dealt = routing.Dealt(target, batch.files, batch.writers)
    if target.keys and batch.writers > 1:
        routing.require_apart(target, workers.mapper(routing.KeysOf(dealt), numbers, label="keys"))
    return workers.mapper(dealt, numbers, label="apply")


@dataclass(frozen=True, slots=True)
class _Scatter:
    target: Target
    writers: int

    def __call__(self, source: tuple[int, str]) -> Iterator[Piece]:
        for part, place, rows in routing.scattered(self.target, *source, writers=self.writers):
            yield Piece(part, place, rows)


@dataclass(frozen=True, slots=True)
class _Gather:
    target: Target

    def __call__(self, part: int, pieces: Iterator[Piece]) -> Written:
        ordered = sorted(pieces, key=lambda piece: piece.place)
        return routing.gathered(self.target, part, [piece.rows for piece in ordered])


@redacted_output()
def apply_job(argv: Sequence[str]) -> int:
    """Apply the batch of `argv`, print what became of it as JSON. Raises as `apply_batch`."""
    arguments = _parse(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    policy = load_usable(arguments.policy, text=None if arguments.policy else "version: 1")
    address = policy.effective(arguments.table).address
    batch = _batch(arguments)
    with _engine(batch) as engine:
        applied = apply_batch(address, batch, Workers(engine.mapper(), engine.exchange()) if engine else Workers())
    sys.stdout.write(json.dumps(asdict(applied)) + "\n")
    return 0


def _engine(batch: Batch) -> Any:
    """One writer needs no Spark."""
    if batch.writers == 1:
        return nullcontext()
    return Engine(master=os.environ.get("NIGHTKEEP_MASTER", "local[*]"), task_memory_bytes=2 << 30)


def _batch(arguments: argparse.Namespace) -> Batch:
    files = tuple(str(Path(file).absolute()) for file in arguments.files)
    keys = tuple(filter(None, (arguments.key or "").split(",")))
    mode, distribution = Mode(arguments.mode), Distribution(arguments.distribution)
    try:
        return Batch(arguments.batch_id, files, mode, distribution, keys, arguments.writers)
    except ValueError as failure:
        raise UsageError(str(failure)) from failure


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--table", required=True, help="name or address: iceberg:CATALOG/NAMESPACE.TABLE")
    parser.add_argument("--policy", help="tables.yaml, where --table is a name of it")
    parser.add_argument("--batch-id", required=True, help="the batch's own name: applied once, however often it is run")
    parser.add_argument("--mode", required=True, choices=[str(each) for each in Mode])
    parser.add_argument("--key", help="equality fields, separated by commas; the table's identifier fields by default")
    parser.add_argument("--distribution", default="none", choices=[str(each) for each in Distribution])
    parser.add_argument("--writers", type=int, default=1, help="more than one run on Spark")
    parser.add_argument("files", nargs="+", help="change files in their order: Parquet or JSON Lines")
    return parsed(parser, argv)
