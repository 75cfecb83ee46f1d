"""Address -> the opened Paimon table: a store, and the functions of the format's rooms that read and write it."""

from __future__ import annotations

from nightkeep.clustering.format_layout import FormatLayout
from nightkeep.clustering.wide_task import wide_writes
from nightkeep.formats.paimon.commit.commits import commits_of
from nightkeep.formats.paimon.commit.writers import refuse_compactions_by_others, refuse_unconditional_writers
from nightkeep.formats.paimon.gate import history
from nightkeep.formats.paimon.gate.gate import gate_of
from nightkeep.formats.paimon.metadata.branch import as_branch, location_and_branch
from nightkeep.formats.paimon.metadata.description import describe, described
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.row_totals import require_totals
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import digest
from nightkeep.formats.paimon.metadata.snapshot_order import refuse_unstamped_files
from nightkeep.formats.paimon.metadata.versions import read_staged, read_version
from nightkeep.formats.paimon.reading.past import past_of
from nightkeep.formats.paimon.reading.reading import reading_of
from nightkeep.formats.paimon.reading.version_writers import written_since
from nightkeep.formats.paimon.retention.retained_files import retained_files
from nightkeep.formats.paimon.retention.table_files import never_written
from nightkeep.formats.paimon.rewrite.append import optimize
from nightkeep.formats.paimon.rewrite.append.delete import delete_rows, refuse_deletes
from nightkeep.formats.paimon.rewrite.append.update import refuse_updates, update_rows
from nightkeep.formats.paimon.rewrite.compact import compact_levels, refuse_other_compactions, refuse_vectors
from nightkeep.formats.paimon.rewrite.expired_rows import expiry_clock
from nightkeep.formats.paimon.rewrite.health import health
from nightkeep.formats.paimon.rewrite.lag import waiting_rows
from nightkeep.formats.paimon.rewrite.table_kinds import (
    in_keyed,
    in_keyless,
    layout_metrics,
    of_keyed,
    of_keyless,
    suits,
)
from nightkeep.formats.paimon.rewrite.tasks import PaimonTask, columns, matching_rows, rewrite
from nightkeep.formats.paimon.rewrite.upgrade import (
    file_indexes_go,
    refuse_append_table,
    refuse_modified_vectors,
    refuse_without_vectors,
    upgrade_level0,
)
from nightkeep.model import Address, Operation
from nightkeep.protocol import Bound, OperationRules, RowChanges, Table, units_of
from nightkeep.protocol.table_files import of_any_format
from nightkeep.storage import Storage, open_storage

PaimonRules = OperationRules[PaimonSnapshot, Bucket, PaimonTask]
PaimonTable = Table[PaimonSnapshot, Bucket, PaimonTask, BucketEdit]


def open_table(address: Address) -> PaimonTable:
    """Open the table at `address.location`. Raises AddressError where there is no folder, or no such branch."""
    folder, branch = location_and_branch(address.location)
    return table_of(address, as_branch(open_storage(folder), branch))


def table_of(address: Address, storage: Storage) -> PaimonTable:
    writers = (
        Bound(refuse_compactions_by_others, storage),
        Bound(refuse_unconditional_writers, storage),
        require_totals,
    )
    upgrades = (refuse_append_table, refuse_without_vectors, refuse_modified_vectors, refuse_unstamped_files, *writers)
    upgrade: PaimonRules = OperationRules(
        upgrades, (upgrade_level0,), (file_indexes_go, Bound(waiting_rows, storage)), clock=expiry_clock
    )
    optimizes: PaimonRules = OperationRules(
        (
            Bound(of_keyed, refuse_vectors),
            Bound(of_keyed, refuse_other_compactions),
            refuse_unstamped_files,
            Bound(of_keyless, optimize.refuse_unhandled),
            Bound(of_keyless, optimize.refuse_order),
            Bound(of_keyless, Bound(FormatLayout.require_columns, optimize.LAYOUT)),
            *writers,
        ),
        (
            Bound(in_keyed, compact_levels),
            Bound(in_keyless, optimize.cluster_files),
            Bound(in_keyless, optimize.pack_files),
        ),
        (file_indexes_go,),
        clock=expiry_clock,
    )
    delete: PaimonRules = OperationRules((refuse_deletes, *writers), (delete_rows,))
    update: PaimonRules = OperationRules((refuse_updates, *writers), (update_rows,), (file_indexes_go,))
    changes = {Operation.DELETE: delete, Operation.UPDATE: update}
    return Table(
        address=address,
        operations={Operation.UPGRADE: upgrade, Operation.OPTIMIZE: optimizes},
        snapshot=Bound(Bound(read_version, address), storage),
        units=units_of,
        digest=Bound(digest, storage),
        staged=Bound(Bound(read_staged, address), storage),
        rewrite=Bound(rewrite, storage),
        gate=gate_of(storage),
        reading=reading_of(address, storage),
        past=past_of(address, storage),
        writers=Bound(written_since, storage),
        commits=commits_of(address, storage),
        wide=wide_writes(storage),
        row_changes=RowChanges(changes, columns, Bound(matching_rows, storage)),
        layout=optimize.layout_reading(storage),
        layout_metrics=layout_metrics,
        health=Bound(health, storage),
        described=described,
        description=Bound(describe, storage),
        retention=of_any_format(retained_files(address, storage)),
        never_written=Bound(Bound(never_written, address), storage),
        suits=Bound(suits, storage),
        watch=Bound(history.watch, storage),
    )
