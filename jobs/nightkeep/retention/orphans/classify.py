"""File names -> the place and the kind of each, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import polars as pl

from nightkeep.protocol.foreign_tables import folders_of_others
from nightkeep.protocol.table_files import TableFiles, TableFolder
from nightkeep.storage import LocalStorage, Storage, at_once, is_within

KEPT = "_nightkeep"
"""Our own folder in a table's folder. Engines skip it, as its name begins with an underscore."""

NESTED = "nested"
"""The column with the folder of another table, recognized by one of its files."""


def own_folder(table_files: TableFiles) -> str:
    """Our own folder of the table, where its quarantines are."""
    return below(table_files.home, KEPT)


def below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def walk_folders(table_files: TableFiles) -> tuple[str, ...]:
    """Folders to walk so that every place is covered and no file is seen twice."""
    folders = sorted({place.folder for place in table_files.places})
    return tuple(f for f in folders if not any(_holds(other, f) for other in folders if other != f))


def vouched(table_files: TableFiles, *, outside: bool) -> TableFiles:
    """The table's places without those that others may share. `outside` keeps them: the caller vouches for them."""
    own = tuple(place for place in table_files.places if outside or not place.shared)
    # A place without known kinds: no file in it is ever removed.
    return replace(table_files, places=own or (TableFolder(table_files.home, ()),))


def is_home_for(table_files: TableFiles, name: str, home: str) -> bool:
    """Whether a file of the table may be restored to `name`.

    The name must be spelled as a listing spells it, be outside of our own folder, and be below a place with known kinds
    or, if no place contains it, below `home`.
    """
    if {"", ".", "..", KEPT} & set(name.split("/")) or "\0" in name:
        return False
    holding = [place for place in table_files.places if is_within(place.folder, name)]
    deepest = max(holding, key=lambda place: len(place.folder), default=None)
    return is_within(home, name) if deepest is None else bool(deepest.kinds)


def kinds(table_files: TableFiles) -> pl.Enum:
    """The type of the column `kind`."""
    return pl.Enum(sorted({kind.name for place in table_files.places for kind in place.kinds}))


def classify(files: pl.DataFrame, table_files: TableFiles) -> pl.DataFrame:
    """Files in the table's folders, in any order, with three more columns; `files` has a column `name`.

    `place`: the index of the most specific place that contains the file. `kind`: null if it is unknown. `nested`: the
    folder of another table, with a trailing slash, if this file shows that there is one; mostly null.
    """
    parts = []
    order = sorted(range(len(table_files.places)), key=lambda index: -len(table_files.places[index].folder))
    for index in order:
        place = table_files.places[index]
        inside = pl.col("name").str.starts_with(f"{place.folder}/") if place.folder else pl.lit(value=True)
        here, files = files.filter(inside), files.filter(~inside)
        parts.append(_in_place(here, place, table_files).with_columns(pl.lit(index, pl.UInt16).alias("place")))
    return pl.concat(parts)


def unkept(files: pl.DataFrame, table_files: TableFiles) -> pl.DataFrame:
    """`files` without those in our own folder."""
    return files.filter(~pl.col("name").str.starts_with(f"{own_folder(table_files)}/"))


def foreign(files: pl.DataFrame, nested: Iterable[tuple[int, str]]) -> pl.Series:
    """For each of `files`, whether it is in one of the `nested` folders: (place, folder with a trailing slash)."""
    mask = pl.repeat(value=False, n=len(files), dtype=pl.Boolean, eager=True)
    groups: dict[tuple[int, int], list[str]] = {}
    for place, folder in nested:
        groups.setdefault((place, folder.count("/")), []).append(folder)
    for (place, depth), folders in sorted(groups.items()):
        prefix = files["name"].str.extract(rf"\A((?:[^/]*/){{{depth}}})", 1)
        inside = prefix.is_in(folders).fill_null(value=False)
        mask = mask | (inside & (files["place"] == place))
    return mask


def bare(column: str) -> pl.Expr:
    """The last part of each name."""
    return pl.col(column).str.extract(r"([^/]*)\z", 1)


def stored(storage: Storage, names: Sequence[str]) -> pl.DataFrame:
    """The files among `names` that exist: name, bytes, modified_ms. One request per name."""
    # A disk answers faster than threads are handed over.
    answers = map(storage.stat, names) if isinstance(storage, LocalStorage) else at_once(storage.stat, names)
    files = [file for file in answers if file is not None]
    columns = {
        "name": [file.name for file in files],
        "bytes": [file.bytes for file in files],
        "modified_ms": [file.modified_ms for file in files],
    }
    return pl.DataFrame(columns, schema={"name": pl.String, "bytes": pl.Int64, "modified_ms": pl.Int64})


def unless_of_others(files: pl.DataFrame, table_files: TableFiles) -> pl.DataFrame:
    """`files` without those in folders of other tables, for files that were not listed. `files` has a column `name`."""
    if not table_files.any_path or not len(files):
        return files
    folder = pl.col("name").str.extract(r"\A(.*)/[^/]*\z", 1).fill_null("")
    others = folders_of_others(table_files.storage, files.select(folder.unique())["name"].to_list())
    return files.filter(~folder.is_in(sorted(others)))


def _in_place(files: pl.DataFrame, place: TableFolder, table_files: TableFiles) -> pl.DataFrame:
    prefix = f"{place.folder}/" if place.folder else ""
    name = pl.col("name").str.strip_prefix(prefix) if prefix else pl.col("name")
    of = kinds(table_files)
    kind: pl.Expr = pl.lit(None, dtype=of)
    for file_kind in reversed(place.kinds):
        kind = (
            pl.when(name.str.contains(rf"\A(?:{file_kind.pattern})\z"))
            .then(pl.lit(file_kind.name, dtype=of))
            .otherwise(kind)
        )
    kind = pl.when(pl.col("name").is_in(table_files.unreadable)).then(pl.lit(None, dtype=of)).otherwise(kind)
    signs = [name.str.extract(rf"\A(?:{pattern})\z", 1) for pattern in table_files.foreign]
    sign = pl.coalesce(*(pl.when(s.str.len_bytes() > 0).then(s) for s in signs)) if signs else pl.lit(None, pl.String)
    return files.with_columns(kind.alias("kind"), (pl.lit(prefix) + sign + pl.lit("/")).alias(NESTED))


def _holds(folder: str, other: str) -> bool:
    return not folder or other.startswith(f"{folder}/")
