"""Address -> the opened Delta table: a store, and the functions of the format's rooms that read and write it."""

from __future__ import annotations

from dataclasses import replace

from nightkeep.clustering.format_layout import FormatLayout
from nightkeep.clustering.wide_task import wide_writes
from nightkeep.errors import AddressError
from nightkeep.formats.delta.commit.commits import commits_of
from nightkeep.formats.delta.commit.writers import refuse_writers
from nightkeep.formats.delta.gate.gate import gate_of
from nightkeep.formats.delta.metadata.description import describe, described
from nightkeep.formats.delta.metadata.log_state import digest
from nightkeep.formats.delta.metadata.naming import LOG
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.metadata.versions import read_staged, read_version
from nightkeep.formats.delta.reading.past import past_of
from nightkeep.formats.delta.reading.reading import reading_of
from nightkeep.formats.delta.reading.version_writers import written_since
from nightkeep.formats.delta.retention.retained_files import retained_files
from nightkeep.formats.delta.rewrite.delete import delete_rows, refuse_deletes
from nightkeep.formats.delta.rewrite.health import health
from nightkeep.formats.delta.rewrite.optimize import LAYOUT, refuse_unhandled
from nightkeep.formats.delta.rewrite.own_clustering import (
    cluster_files,
    note_of_others,
    own_clustering,
    pack_files,
    refuse_clustering,
    require_columns,
)
from nightkeep.formats.delta.rewrite.persist import prune_vectors, refuse_new_vectors
from nightkeep.formats.delta.rewrite.rewrite import DeltaTask, columns, matching_rows, rewrite
from nightkeep.formats.delta.upkeep.after_commit import checkpoint_if_due
from nightkeep.formats.delta.upkeep.log_cleanup import carry_out_upkeep, plan_upkeep
from nightkeep.model import Address, Operation
from nightkeep.protocol import Bound, OperationRules, RowChanges, Table, units_of
from nightkeep.protocol.foreign_tables import suggested_address
from nightkeep.protocol.log_upkeep import LogUpkeep
from nightkeep.protocol.table_files import of_any_format
from nightkeep.storage import Storage, open_storage

DeltaRules = OperationRules[DeltaSnapshot, DeltaUnit, DeltaTask]
DeltaTable = Table[DeltaSnapshot, DeltaUnit, DeltaTask, DeltaEdit]


def open_table(address: Address) -> DeltaTable:
    """Open the table at `address.location`. Raises AddressError where there is no table."""
    storage = open_storage(address.location)
    if not storage.list(LOG):
        other = suggested_address(storage)
        hint = "" if other is None else f"; did you mean {other}?"
        raise AddressError(f"{address}: expected a Delta table, found nothing in its folder {LOG}{hint}")
    return table_of(address, storage)


def table_of(address: Address, storage: Storage) -> DeltaTable:
    writers = Bound(refuse_writers, storage)
    optimize: DeltaRules = OperationRules(
        (refuse_unhandled, refuse_clustering, require_columns, writers),
        (cluster_files, pack_files),
        left_out=note_of_others,
    )
    persist: DeltaRules = OperationRules((refuse_unhandled, refuse_new_vectors, writers), (prune_vectors,))
    delete: DeltaRules = OperationRules((refuse_unhandled, refuse_deletes, writers), (delete_rows,))
    return Table(
        address=address,
        operations={Operation.OPTIMIZE: optimize, Operation.PERSIST_DELETES: persist},
        snapshot=Bound(Bound(read_version, address), storage),
        units=units_of,
        digest=Bound(digest, storage),
        staged=Bound(Bound(read_staged, address), storage),
        rewrite=Bound(rewrite, storage),
        gate=gate_of(storage),
        reading=reading_of(address, storage),
        past=past_of(address, storage),
        writers=Bound(written_since, storage),
        commits=replace(commits_of(address, storage), afterwards=Bound(Bound(checkpoint_if_due, address), storage)),
        wide=wide_writes(storage),
        row_changes=RowChanges({Operation.DELETE: delete}, columns, Bound(matching_rows, storage)),
        layout=LAYOUT.layout_reading(storage),
        own_clustering=own_clustering,
        layout_metrics=Bound(FormatLayout.layout_metrics, LAYOUT),
        health=Bound(health, storage),
        described=described,
        description=Bound(Bound(describe, address), storage),
        retention=of_any_format(replace(retained_files(address, storage), log=log_upkeep(address, storage))),
    )


def log_upkeep(address: Address, storage: Storage) -> LogUpkeep:
    return LogUpkeep(
        plan=Bound(Bound(plan_upkeep, address), storage), carry_out=Bound(Bound(carry_out_upkeep, address), storage)
    )
