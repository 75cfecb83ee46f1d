"""Address -> the opened Paimon table: a store, and the functions of the format's rooms that read and write it."""

from __future__ import annotations

from collections.abc import Sequence

from nightkeep.formats.paimon.commit.commits import commits_of
from nightkeep.formats.paimon.commit.writers import refuse_compacting_writers, refuse_unconditional_writers
from nightkeep.formats.paimon.gate import history
from nightkeep.formats.paimon.gate.gate import gate_of
from nightkeep.formats.paimon.metadata.pending_changes import BucketEdit
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.metadata.snapshot_files import digest
from nightkeep.formats.paimon.metadata.versions import read_staged, read_version
from nightkeep.formats.paimon.reading.reading import reading_of
from nightkeep.formats.paimon.retention.retained_files import retained_files
from nightkeep.formats.paimon.retention.table_files import never_written
from nightkeep.formats.paimon.rewrite.compact import (
    compact_levels,
    refuse_keyless,
    refuse_other_compactions,
    refuse_vectors,
)
from nightkeep.formats.paimon.rewrite.lag import layout_metrics, waiting_rows
from nightkeep.formats.paimon.rewrite.rewrite import UpgradeTask, rewrite
from nightkeep.formats.paimon.rewrite.upgrade import (
    file_indexes_go,
    lift_level0,
    refuse_append_table,
    refuse_modified_vectors,
    refuse_without_vectors,
)
from nightkeep.model import Address, Operation
from nightkeep.protocol import Bound, OperationRules, Table
from nightkeep.protocol.table_files import of_any_format
from nightkeep.storage import Storage, open_storage

PaimonTable = Table[PaimonSnapshot, Bucket, UpgradeTask, BucketEdit]


def open_table(address: Address) -> PaimonTable:
    """Open the table at `address.location`. Raises AddressError where there is no folder."""
    return table_of(address, open_storage(address.location))


def table_of(address: Address, storage: Storage) -> PaimonTable:
    writers = (Bound(refuse_compacting_writers, storage), Bound(refuse_unconditional_writers, storage))
    upgrades = (refuse_append_table, refuse_without_vectors, refuse_modified_vectors, *writers)
    compactions = (refuse_keyless, refuse_vectors, refuse_other_compactions, *writers)
    return Table(
        address=address,
        operations={
            Operation.UPGRADE: OperationRules(upgrades, (lift_level0,), (file_indexes_go, waiting_rows)),
            Operation.OPTIMIZE: OperationRules(compactions, (compact_levels,), (file_indexes_go,)),
        },
        snapshot=Bound(Bound(read_version, address), storage),
        units=units,
        digest=Bound(digest, storage),
        staged=Bound(Bound(read_staged, address), storage),
        rewrite=Bound(rewrite, storage),
        gate=gate_of(storage),
        reading=reading_of(address, storage),
        commits=commits_of(address, storage),
        layout_metrics=layout_metrics,
        retention=of_any_format(retained_files(address, storage)),
        never_written=Bound(Bound(never_written, address), storage),
        watch=Bound(history.watch, storage),
    )


def units(snapshot: PaimonSnapshot) -> Sequence[Bucket]:
    return snapshot.units
