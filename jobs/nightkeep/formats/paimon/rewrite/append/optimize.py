"""Small and worn files of a bucket -> tasks that write one file each, or only remove files without rows.

Which files are small or worn is as in AppendCompactCoordinator.java. Bins and a second run that finds nothing to do are
those of the other formats; of buckets that keep the order of rows, bins are of neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightkeep.clustering.layout_names import packed_mark, run_of
from nightkeep.clustering.packing import is_settled, packing, packing_work
from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, keeps_order, option_bool
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, PaimonSnapshot
from nightkeep.formats.paimon.rewrite.append.append_files import AppendFile, append_files
from nightkeep.formats.paimon.rewrite.append.inputs import AppendInputs, AppendPack
from nightkeep.formats.paimon.rewrite.append.ordered_bins import ordered_bins
from nightkeep.formats.paimon.rewrite.append.prune import PruneTask, with_pruning
from nightkeep.formats.paimon.rewrite.append.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.protocol import Work


def refuse_keys(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable for a table with a primary key: its files are sorted runs, which packing would mix."""
    if snapshot.schema.primary_keys:
        feature = f"{request.operation} of a table with a primary key is not handled"
        raise RefusedTable(snapshot.table.name, feature, "use upgrade, which compacts its sorted runs")


def refuse_unhandled(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable for the first feature of a table without keys, or of its files, that we do not handle."""
    for feature, advice in (*_option_features(snapshot.schema), *_file_features(snapshot)):
        raise RefusedTable(snapshot.table.name, feature, advice)


def pack_files(snapshot: PaimonSnapshot, bucket: Bucket, request: Request) -> Work[AppendPack | PruneTask] | None:
    """The work that `packing` picks, and the pruning of vectors; none for a clustered table."""
    if request.clustering is not None:
        return None
    sizes = sizes_of(snapshot.schema, request)
    mark = packed_mark(sizes.target)

    def settled(files: Sequence[AppendFile]) -> bool:
        return is_settled(files, lambda file: run_of(file.name, mark), lambda file: file.file.created_ms)

    files = append_files(bucket)
    neighbours = (lambda chosen: ordered_bins(files, chosen, sizes.target)) if keeps_order(snapshot.schema) else None
    picked = packing(files, sizes, full=request.full, is_settled=settled, bins_of=neighbours)
    return None if picked is None else with_pruning(packing_work(picked, lambda f: AppendInputs(bucket, f)), bucket)


def refuse_order(snapshot: PaimonSnapshot, request: Request) -> None:
    """Raises RefusedTable for a clustering of rows that are read in the order of writing."""
    if request.clustering is not None and keeps_order(snapshot.schema):
        feature = f"clustering of bucket = {snapshot.schema.options['bucket']} is not handled"
        advice = "its rows are read in the order of writing; if none needs it, set bucket-append-ordered = false"
        raise RefusedTable(snapshot.table.name, feature, advice)


def _option_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    if option_bool(schema, "clustering.incremental"):
        yield "option clustering.incremental = true is not handled", "the engine keeps levels of clustered files"


def _file_features(snapshot: PaimonSnapshot) -> Iterator[tuple[str, str]]:
    for bucket in snapshot.units:
        for file in bucket.files:
            yield from _features(bucket.path(file), file)


def _features(path: str, file: PaimonDataFile) -> Iterator[tuple[str, str]]:
    if file.record.get("_WRITE_COLS") is not None:
        yield f"{path} has only some columns of its rows, which is not handled", "compact the table with its engine"
    if file.record.get("_FIRST_ROW_ID") is not None:
        yield f"{path} has row ids, which is not handled", "compact the table with its engine"
    if file.level != 0:
        yield f"{path} is on level {file.level} of a table without keys, which is not handled", "use its engine"
