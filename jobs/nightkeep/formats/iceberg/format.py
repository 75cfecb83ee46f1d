"""Address -> the opened Iceberg table: a catalog's table, and the functions of the format's rooms on it."""

from __future__ import annotations

from dataclasses import replace

from nightkeep.clustering.format_layout import FormatLayout
from nightkeep.clustering.wide_task import wide_writes
from nightkeep.formats.iceberg.catalog.catalog import TableHandle, open_handle
from nightkeep.formats.iceberg.catalog.description import describe, described
from nightkeep.formats.iceberg.commit.commits import commits_of
from nightkeep.formats.iceberg.gate.gate import gate_of
from nightkeep.formats.iceberg.metadata.moved_units import proven_units
from nightkeep.formats.iceberg.metadata.own_format import require_iceberg_only
from nightkeep.formats.iceberg.metadata.pending_changes import IcebergEdit
from nightkeep.formats.iceberg.metadata.snapshot import IcebergSnapshot, IcebergUnit, outline
from nightkeep.formats.iceberg.metadata.versions import digest, read_staged, read_version
from nightkeep.formats.iceberg.reading.past import past_of
from nightkeep.formats.iceberg.reading.reading import reading_of
from nightkeep.formats.iceberg.reading.version_writers import written_since
from nightkeep.formats.iceberg.retention.retained_files import retained_files
from nightkeep.formats.iceberg.rewrite.health import health
from nightkeep.formats.iceberg.rewrite.manifest_work import merge_manifests
from nightkeep.formats.iceberg.rewrite.optimize import LAYOUT, layout_metrics, refuse_unhandled, shredding_note
from nightkeep.formats.iceberg.rewrite.own_order import cluster_files, own_clustering, require_columns, sort_order_note
from nightkeep.formats.iceberg.rewrite.persist_plan import (
    filter_note,
    left_out_note,
    persist_deletes,
    refuse_delete_format,
    refuse_persisting,
    streaming_note,
)
from nightkeep.formats.iceberg.rewrite.reserved_names import refuse_lineage_names, refuse_position_name
from nightkeep.formats.iceberg.rewrite.respec import refuse_respec, respec_files
from nightkeep.formats.iceberg.rewrite.rewrite import IcebergTask, rewrite
from nightkeep.model import Address, Operation, Request
from nightkeep.protocol import Bound, OperationRules, Table
from nightkeep.protocol.table_files import of_any_format
from nightkeep.storage import Storage

IcebergRules = OperationRules[IcebergSnapshot, IcebergUnit, IcebergTask]
IcebergTable = Table[IcebergSnapshot, IcebergUnit, IcebergTask, IcebergEdit]

_OPTIMIZE: IcebergRules = OperationRules(
    (refuse_unhandled, refuse_lineage_names, require_columns, refuse_respec),
    (respec_files, cluster_files, Bound(FormatLayout.pack_files, LAYOUT), merge_manifests),
    (sort_order_note, shredding_note),
    left_out_note,
)
_PERSIST_DELETES: IcebergRules = OperationRules(
    (refuse_persisting, refuse_position_name, refuse_delete_format),
    (persist_deletes,),
    (streaming_note, filter_note),
    left_out_note,
)


def open_table(address: Address) -> IcebergTable:
    """Open `CATALOG/NAMESPACE.TABLE`. Raises AddressError for a catalog or a table that is not there."""
    return table_of(address, open_handle(address.location))


def table_of(address: Address, handle: TableHandle) -> IcebergTable:
    storage = handle.storage
    return Table(
        address=address,
        operations={
            Operation.OPTIMIZE: _of_iceberg_only(_OPTIMIZE, storage),
            Operation.PERSIST_DELETES: _of_iceberg_only(_PERSIST_DELETES, storage),
        },
        snapshot=Bound(Bound(read_version, address), handle),
        units=proven_units,
        digest=Bound(digest, handle),
        staged=Bound(Bound(read_staged, address), handle),
        rewrite=Bound(rewrite, storage),
        gate=gate_of(storage),
        reading=reading_of(address, handle),
        past=past_of(handle),
        writers=written_since,
        commits=commits_of(address, handle),
        wide=wide_writes(storage),
        layout=LAYOUT.layout_reading(storage),
        own_clustering=own_clustering,
        layout_metrics=layout_metrics,
        health=health,
        described=Bound(described, handle),
        description=Bound(describe, handle),
        retention=of_any_format(retained_files(address, handle)),
        outline=Bound(Bound(outline, address), handle),
    )


def _of_iceberg_only(rules: IcebergRules, storage: Storage) -> IcebergRules:
    return replace(rules, refuse=(*rules.refuse, Bound(_refuse_other_formats, storage)))


def _refuse_other_formats(storage: Storage, snapshot: IcebergSnapshot, request: Request) -> None:
    require_iceberg_only(snapshot.table.name, storage, snapshot.metadata)
