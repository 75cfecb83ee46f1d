"""A batch of change files -> one snapshot, by one or several writers. Applying the same batch again changes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nightkeep.api.call_context import new_engine
from nightkeep.discovery import knowing
from nightkeep.errors import UsageError
from nightkeep.formats.iceberg.catalog.catalog import open_handle
from nightkeep.formats.iceberg.metadata.versions import read_version
from nightkeep.formats.iceberg.upsert import routing, sink
from nightkeep.formats.iceberg.upsert.batch import ChangeBatch, ChangeMode, Distribution
from nightkeep.formats.iceberg.upsert.sink import Applied
from nightkeep.formats.iceberg.upsert.writer import WriterTarget, WrittenChanges
from nightkeep.model import Address, Run
from nightkeep.policy import load_usable
from nightkeep.spark.engine import Engine
from nightkeep.tasks import Exchange, Mapper, Piece, inline, inline_exchange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASK_MEMORY = 2 << 30


def apply_changes(
    table: str,
    files: Sequence[str | Path],
    *,
    batch_id: str,
    mode: str,
    key: str | None = None,
    distribution: str = "none",
    writers: int = 1,
    policy: str | Path | None = None,
    master: str = "local[*]",
    spark: SparkSession | None = None,
) -> Applied:
    """Apply the change rows of `files` to an Iceberg table. Further calls with the same batch id change nothing.

    Several writers run on Spark. Raises what `apply_batch` raises, and UsageError for invalid arguments."""
    loaded = load_usable(policy or "tables.yaml", text=None if policy else "version: 1")
    address = knowing(loaded, (table,)).effective(table).address
    keys = tuple(filter(None, (key or "").split(",")))
    paths = tuple(str(Path(file).absolute()) for file in files)
    try:
        batch = ChangeBatch(batch_id, paths, ChangeMode(mode), Distribution(distribution), keys, writers)
    except ValueError as failure:
        raise UsageError(str(failure)) from failure
    with _engine(batch, master, spark) as engine:
        return apply_batch(address, batch, Workers(engine.mapper(), engine.exchange()) if engine else Workers())


def _engine(batch: ChangeBatch, master: str, spark: SparkSession | None) -> AbstractContextManager[Engine | None]:
    """The Engine for several writers; None for a single one, which needs no Spark."""
    if batch.writers == 1:
        return nullcontext()
    return new_engine(master, _TASK_MEMORY, spark)


@dataclass(frozen=True, slots=True)
class Workers:
    """Where writers run; by default in this process."""

    mapper: Mapper = inline
    exchange: Exchange = inline_exchange


def apply_batch(address: Address, batch: ChangeBatch, workers: Workers) -> Applied:
    """Write the batch and commit it, unless it is committed already.

    Raises UsageError and RefusedTable before anything is written, and EvidenceError if it is unknown whether the commit
    happened.
    """
    if address.format != "iceberg":
        raise UsageError(f"{address.name}: expected an Iceberg table to apply changes to, found {address.format}")
    handle = open_handle(address.location)
    before = sink.find_applied(handle, batch)
    if before is not None:
        return before
    target = sink.target_of(handle, read_version(address, handle), batch)
    written = _written(target, batch, workers)
    run = Run(batch.batch_id, target.operation.hex[:16], os.urandom(4).hex(), time.time_ns() // 1_000_000)
    return sink.commit_batch(address, handle, target, batch, written, run=run)


def _written(target: WriterTarget, batch: ChangeBatch, workers: Workers) -> Sequence[WrittenChanges]:
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
    target: WriterTarget
    writers: int

    def __call__(self, source: tuple[int, str]) -> Iterator[Piece]:
        for part, place, rows in routing.scatter_changes(self.target, *source, writers=self.writers):
            yield Piece(part, place, rows)


@dataclass(frozen=True, slots=True)
class _Gather:
    target: WriterTarget

    def __call__(self, part: int, pieces: Iterator[Piece]) -> WrittenChanges:
        ordered = sorted(pieces, key=lambda piece: piece.place)
        return routing.gather_changes(self.target, part, [piece.rows for piece in ordered])
