"""File names -> whether a folder belongs to another table, of any format. One list for all formats that sweep."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.storage import ListedFile, Storage, at_once, open_storage, spelled


@dataclass(frozen=True, slots=True)
class Sign:
    """Files by which a table of a format is recognized: those in its `folder` whose whole name matches `pattern`.

    `whole`: any file below the folder, at any depth, is a sign too, as no other program uses that folder name.
    Patterns must mean the same to RE2 and to Rust's regex.
    """

    format: str
    folder: str
    pattern: str = "[^/]+"
    whole: bool = False


SIGNS: Final = (
    Sign("Delta", "_delta_log", whole=True),
    Sign("Hudi", ".hoodie", whole=True),
    Sign("Iceberg", "metadata", r"[^/]+\.metadata\.json(?:\.gz)?"),
    Sign("Paimon", "schema", "schema-[0-9]+"),
)
"""Every table of a format has each of the format's signs."""
_TRACES: Final = (Sign("Iceberg", "metadata", r"version-hint\.text"), Sign("Paimon", "snapshot", "snapshot-[0-9]+"))
"""Most tables of the format have these too. A table that lost its signs may still have them."""


def foreign_patterns(folder: str = r"[^\x00]+") -> Iterator[str]:
    """Patterns of file names which show that a deeper folder is another table's. The only group is that folder.

    `folder` is a pattern of the folders to consider.
    """
    for sign in (*SIGNS, *_TRACES):
        yield f"({folder})/{re.escape(sign.folder)}/{sign.pattern}"


def require_one_format(table: str, storage: Storage, home: str, *, own: Collection[str]) -> None:
    """Raises RefusedTable if the table's folder `home` also has metadata of another format.

    The files that the other table needs are unknown. `own` are formats whose signs belong to this table.
    """
    for sign in SIGNS:
        folder = f"{home}/{sign.folder}" if home else sign.folder
        file = None if sign.format in own else _first(storage, sign, folder)
        if file is not None:
            feature = f"{file.name} in its folder is the metadata of a table of {sign.format}'s"
            location = spelled(storage, home) if home else storage.root
            raise RefusedTable(table, feature, _whose_folder(sign.format, location))


def folders_of_others(storage: Storage, folders: Collection[str]) -> frozenset[str]:
    """Those of the folders that are another table's, of whatever format, or below one. The store's root is not looked
    at: it is the folder of the table that asks."""
    above = {folder: tuple(_ancestors(folder)) for folder in folders}
    looked_at = sorted({each for chain in above.values() for each in chain})
    found = {
        each
        for each, is_other in zip(looked_at, at_once(partial(_is_table, storage), looked_at), strict=True)
        if is_other
    }
    return frozenset(folder for folder, chain in above.items() if not found.isdisjoint(chain))


def _ancestors(folder: str) -> Iterator[str]:
    parts = folder.split("/") if folder else []
    return ("/".join(parts[:end]) for end in range(1, len(parts) + 1))


def _is_table(storage: Storage, folder: str) -> bool:
    return any(_first(storage, sign, f"{folder}/{sign.folder}") is not None for sign in (*SIGNS, *_TRACES))


def suggested_address(storage: Storage) -> str | None:
    """The address of the table whose metadata is in the folder; None if no format that is handled has a sign there."""
    found = (sign.format for sign in SIGNS if _first(storage, sign, sign.folder) is not None)
    return next(filter(None, (_address(format, storage.root) for format in found)), None)


def suggested_for_path(path: str) -> str | None:
    """As `suggested_address`, for a local path without a format before it; None where no folder is."""
    return suggested_address(open_storage(os.path.abspath(path))) if os.path.isdir(path) else None


def _first(storage: Storage, sign: Sign, folder: str) -> ListedFile | None:
    listed = (file for file in storage.list(folder) if re.fullmatch(f"{re.escape(folder)}/{sign.pattern}", file.name))
    deeper = (file for batch in (storage.walk(folder) if sign.whole else ()) for file in batch)
    return next(listed, None) or next(deeper, None)


def _whose_folder(format: str, location: str) -> str:
    """The advice for a folder with metadata of another format. Which of the two tables is in use is unknown."""
    meant = _address(format, location)
    first = f"if that is the table you mean, its address is {meant}" if meant else f"{format} tables are not handled"
    return f"{first}; where it is another one, give each table a folder of its own, and delete nothing before that"


def _address(format: str, location: str) -> str | None:
    """How a table of this format is addressed; None for a format that is not handled."""
    addresses = {"Delta": f"delta:{location}", "Paimon": f"paimon:{location}"}
    return addresses.get(format, "iceberg:CATALOG/NAMESPACE.TABLE" if format == "Iceberg" else None)
