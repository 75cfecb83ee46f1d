"""Small and worn files of a bucket -> tasks that write one file each, or only remove files without rows.

Which files are small or worn is as in AppendCompactCoordinator.java. Bins and a second run that finds nothing to do are
those of the other formats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nightkeep.clustering.layout_names import packed_mark, run_of
from nightkeep.clustering.packing import is_settled, packing, packing_work
from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, option_bool, option_int
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonDataFile, PaimonSnapshot
from nightkeep.formats.paimon.rewrite.append.append_files import AppendFile, append_files
from nightkeep.formats.paimon.rewrite.append.inputs import AppendInputs, AppendPack
from nightkeep.formats.paimon.rewrite.append.prune import PruneTask, with_pruning
from nightkeep.formats.paimon.rewrite.append.sizing import sizes_of
from nightkeep.model import Request
from nightkeep.protocol import Work

_UNAWARE = -1
"""Option bucket of a table whose rows have no bucket."""


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

    picked = packing(append_files(bucket), sizes, full=request.full, is_settled=settled)
    return None if picked is None else with_pruning(packing_work(picked, lambda f: AppendInputs(bucket, f)), bucket)


def _option_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    bucket = option_int(schema, "bucket", _UNAWARE)
    if bucket != _UNAWARE:
        yield f"bucket = {bucket} of a table without keys is not handled", "its rows are read in the order of writing"
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
