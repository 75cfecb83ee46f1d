"""Tables with clustering columns (CLUSTER BY): the layout that the table itself asks for, and the files it is for.

The domain delta.clustering of the planned version decides, whatever earlier versions had: files that were clustered by
other columns are clustered again. Files of another clustering provider are left to it, also small and worn ones
(PROTOCOL.md, "Clustered Table").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.metadata.clustering import is_of_others, provider_of, stated_columns
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.leaf_columns import leaves
from nightkeep.formats.delta.metadata.schema import DeltaSchema
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot, DeltaUnit
from nightkeep.formats.delta.rewrite.optimize import LAYOUT, DeltaCluster, DeltaPack
from nightkeep.model import Clustering, Curve, Request
from nightkeep.model.counted import counted
from nightkeep.protocol import OpenWide, Work


def own_clustering(snapshot: DeltaSnapshot) -> Clustering | None:
    """The table's clustering columns along Hilbert's curve. None if it has none, or some that are refused."""
    schema = snapshot.schema
    if not schema.clustering or schema.partition_columns or any(_fault(schema, path) for path in schema.clustering):
        return None
    names = {leaf.stored: ".".join(leaf.path) for leaf in leaves(schema)}
    return Clustering(tuple(names[path] for path in schema.clustering), Curve.HILBERT)


def refuse_clustering(snapshot: DeltaSnapshot, request: Request) -> None:
    """Raises RefusedTable for clustering columns that rows cannot be clustered by, and for a request to cluster such a
    table by others; CorruptMetadata for a domain that cannot be understood."""
    name, schema = snapshot.table.name, snapshot.schema
    columns = stated_columns(snapshot.raw_protocol, snapshot.domains)
    if columns and schema.partition_columns:
        feature = "it has clustering columns (table feature clustering) and partition columns"
        raise RefusedTable(name, feature, "the protocol allows one of the two: ALTER TABLE ... CLUSTER BY NONE")
    for fault in (_fault(schema, path) for path in columns):
        if fault is not None:
            raise RefusedTable(name, f"table feature clustering: {fault}", "name others: ALTER TABLE ... CLUSTER BY")
    own = own_clustering(snapshot)
    if own is not None and request.clustering not in (None, own):
        raise RefusedTable(
            name,
            f"{request.clustering} of a table with clustering columns of its own (table feature clustering)",
            f"optimize clusters it by {', '.join(own.columns)}: leave out --zorder and --hilbert, or name other "
            "columns by ALTER TABLE ... CLUSTER BY",
        )


def require_columns(snapshot: DeltaSnapshot, request: Request) -> None:
    """As FormatLayout.require_columns, for the layout that the table asks for, if it does."""
    LAYOUT.require_columns(snapshot, _as_asked(snapshot, request))


def cluster_files(
    snapshot: DeltaSnapshot, unit: DeltaUnit, request: Request
) -> Work[DeltaPack | DeltaCluster | OpenWide] | None:
    """The work that `cluster_work` picks, by the table's own columns if it has any."""
    return LAYOUT.cluster_files(snapshot, _without_others(unit), _as_asked(snapshot, request))


def pack_files(snapshot: DeltaSnapshot, unit: DeltaUnit, request: Request) -> Work[DeltaPack] | None:
    """The work that `packing` picks; none for a table that is clustered."""
    return LAYOUT.pack_files(snapshot, unit, _as_asked(snapshot, request))


def note_of_others(snapshot: DeltaSnapshot) -> str | None:
    """A note on the files of a clustered table that are left to other providers."""
    if not snapshot.schema.clustering:
        return None
    left = [file for unit in snapshot.units for file in unit.files if is_of_others(file)]
    if not left:
        return None
    providers = sorted({str(provider_of(file)) for file in left})
    size = sum(file.bytes for file in left)
    return f"{counted(len(left), 'file')} of {size:,} bytes clustered by {', '.join(providers)} stay as they are"


def _as_asked(snapshot: DeltaSnapshot, request: Request) -> Request:
    own = own_clustering(snapshot)
    return request if own is None else replace(request, clustering=own)


def _without_others(unit: DeltaUnit) -> DeltaUnit:
    if not unit.schema.clustering:
        return unit
    files: Sequence[DeltaDataFile] = tuple(file for file in unit.files if not is_of_others(file))
    return replace(unit, files=files)


def _fault(schema: DeltaSchema, path: tuple[str, ...]) -> str | None:
    """Why rows cannot be clustered by a column of the domain; None if they can."""
    every = leaves(schema)
    leaf = next((leaf for leaf in every if leaf.stored == path), None)
    if leaf is None:
        return f"its column {'.'.join(path)} is no column of the table, nor a field of one that is no struct"
    name = ".".join(leaf.path)
    if not leaf.ordered:
        return f"its column {name} is of type {leaf.type}, whose statistics have no bounds"
    if Counter(".".join(each.path) for each in every)[name] > 1:
        return f"its column {name} has the name of a field within another column"
    return "its columns name one twice" if schema.clustering.count(path) > 1 else None
