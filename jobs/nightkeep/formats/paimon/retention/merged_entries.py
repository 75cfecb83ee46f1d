"""Manifest lists -> one row for each file of their entries: its name, and ADDs less DELETEs of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Final

import polars as pl

from nightkeep.encodings.avro_container import Record
from nightkeep.encodings.avro_schemas import Schema
from nightkeep.formats.paimon.metadata.entries import ADD, decoding, entry_identity, read_list, read_manifest
from nightkeep.formats.paimon.metadata.locations import BranchFolders
from nightkeep.formats.paimon.retention.evidence import StatedList, require_own_name, require_rows
from nightkeep.formats.paimon.retention.manifest_evidence import require_kind, require_line
from nightkeep.storage import Storage


def merged_entries(
    storage: Storage,
    lists: Sequence[StatedList],
    where: BranchFolders,
    *,
    changelog: bool = False,
    appended: bool = False,
) -> pl.DataFrame:
    """One row per file in the lists' manifests. `adds` is the number of ADDs less DELETEs."""
    own = changelog and not appended
    entries = pl.concat([_entries(storage, stated, where, changelog=own) for stated in lists])
    if appended:
        entries = entries.filter(pl.col("source").is_null() | (pl.col("source") == _APPEND))
    keys = ("name", "level", "identity")
    return entries.group_by(keys).agg(pl.col("adds").cast(pl.Int64).sum(), pl.col("bytes", "extra", "outside").first())


def _entries(storage: Storage, stated: StatedList, where: BranchFolders, *, changelog: bool) -> pl.DataFrame:
    """All entries of a list. Their rows must add up to the stated count."""
    folder = cache(where.folder)
    parts, schemas = [pl.DataFrame(schema=_COLUMNS)], list[Schema]()
    for meta in read_list(storage, stated.name).records:
        container = read_manifest(storage, meta)
        records, name = container.records, f"manifest/{meta['_FILE_NAME']}"
        schemas.append(container.schema)
        require_own_name(container, name)
        with decoding(name, "entries of data files, and bounds of them in its list"):
            require_kind(meta, records, where, changelog=changelog)
            require_line(meta, records, where)
            parts.append(_frame(records, folder))
    entries = pl.concat(parts)
    rows = int(entries.select((pl.col("rows") * pl.col("adds")).sum()).item())
    require_rows(stated.rows, rows, schemas, subject=f"manifest/{stated.name}")
    return entries


def _frame(records: Iterable[Record], folder: Callable[[bytes, int], str]) -> pl.DataFrame:
    rows = [_row(record, folder(record["_PARTITION"], record["_BUCKET"])) for record in records]
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


def _row(record: Record, folder: str) -> tuple[object, ...]:
    file = record["_FILE"]
    rest = entry_identity(record)[4:]
    identity = repr(rest) if any(rest) else ""
    extra = [f"{folder}/{name}" for name in file.get("_EXTRA_FILES") or ()]
    adds = 1 if record["_KIND"] == ADD else -1
    size, rows, source = file["_FILE_SIZE"], file["_ROW_COUNT"], file.get("_FILE_SOURCE")
    name, outside = f"{folder}/{file['_FILE_NAME']}", bool(file.get("_EXTERNAL_PATH"))
    return name, file["_LEVEL"], identity, adds, size, rows, source, extra, outside


_APPEND: Final = 0
"""Values of _FILE_SOURCE on disk (C/manifest/FileSource.java). A file without one counts as appended."""
_COLUMNS: Final = pl.Schema(
    {
        "name": pl.String(),
        "level": pl.Int32(),
        "identity": pl.String(),
        "adds": pl.Int8(),
        "bytes": pl.Int64(),
        "rows": pl.Int64(),
        "source": pl.Int32(),
        "extra": pl.List(pl.String()),
        "outside": pl.Boolean(),
    }
)
