"""Folder of a table -> refusal if it has metadata files of another table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.iceberg.metadata.locations import stored_name
from nightkeep.formats.iceberg.metadata.metadata_beginning import table_id
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, objects, text
from nightkeep.storage import ListedFile, Storage

_VERSION: Final = re.compile(r"[.]metadata[.]json(?:[.]gz)?\Z")
_THREADS: Final = 8
_AT_ONCE: Final = 10_000


def require_alone(table: str, storage: Storage, folder: str, loaded: tuple[Raw, str]) -> tuple[str, ...]:
    """Names of metadata files in `folder` that cannot be read. Raises RefusedTable for one of another table.

    The data files of such a table may be in the same folders. Only files that the current metadata's log does not name
    are read. A truncated file is allowed: a killed writer left it, and it is no table's current version. What cannot be
    read at all is not the metadata that the catalog names: it stays where it is.
    """
    raw, location = loaded
    own = text(raw, "table-uuid", subject=location)
    log = objects(raw, "metadata-log", subject=location)
    in_log = {stored_name(text(entry, "metadata-file", subject=location)) for entry in log} | {stored_name(location)}
    others = [file for file in storage.list(folder) if file.name not in in_log and _VERSION.search(file.name)]
    unreadable: list[str] = []
    for name, owner in _tables(storage, others):
        if isinstance(owner, CorruptMetadata):
            unreadable.append(name)
        elif owner not in (None, own):
            feature = f"{name} in its folder is the metadata of another table, {owner}"
            raise RefusedTable(
                table, feature, "give each table a folder of its own; its catalog shows which of the two is in use"
            )
    return tuple(unreadable)


def _tables(storage: Storage, files: Sequence[ListedFile]) -> Iterator[tuple[str, str | CorruptMetadata | None]]:
    """Yield each file's name and its table's UUID; None for a file that is gone or truncated, and the failure for one
    that cannot be read."""

    def id_of(file: ListedFile) -> str | CorruptMetadata | None:
        try:
            return table_id(storage, file)
        except MissingFile:
            return None
        except CorruptMetadata as failure:
            return failure

    with ThreadPoolExecutor(_THREADS) as threads:
        for start in range(0, len(files), _AT_ONCE):
            some = files[start : start + _AT_ONCE]
            yield from zip((file.name for file in some), threads.map(id_of, some), strict=True)
