"""Table metadata -> where files of the table may be, and which names there are a table's at all.

What makes a folder the table's own: it is in the table's location, or its path names the table as its location does.
Engines' names: OutputFileFactory.java, SnapshotProducer.java, BaseMetastoreTableOperations.java,
PartitionStatsHandler.java, ManifestOutputFileFactory.java; Trino, DuckDB, ClickHouse and pyiceberg have a UUID in
theirs as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from nightkeep.errors import RefusedTable
from nightkeep.formats.iceberg.catalog.claims import Claim, own_folder, require_unclaimed
from nightkeep.formats.iceberg.metadata.features import refuse_structure, unchanged_feature
from nightkeep.formats.iceberg.metadata.locations import require_in, root_of, stored_name
from nightkeep.formats.iceberg.metadata.new_locations import escaped
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, objects, properties, text
from nightkeep.formats.iceberg.retention.foreign_tables import require_alone
from nightkeep.model import Address
from nightkeep.protocol.foreign_tables import foreign_patterns, require_one_format
from nightkeep.protocol.table_files import FileKind, TableFiles, TableFolder
from nightkeep.storage import Storage, is_within


def territory(
    table: Address, storage: Storage, loaded: tuple[Raw, str], claims: tuple[Claim, ...] = ()
) -> TableFiles:  # fmt: skip
    """The table's own folders, as its metadata `loaded` from a location has them.

    Its own is the folder of the metadata file that the catalog names; what metadata names elsewhere, be it the
    location, is shared. What other tables' `claims` are below it is left alone.

    Raises RefusedTable where nobody may delete its files (gc.enabled), where its folder is another table's as well, of
    whatever format, and where its catalog does not tell its metadata file. A second catalog's metadata of the same
    table, committed to there alone, cannot be told from what killed commits left.
    """
    raw, location = loaded
    dry_only = unchanged_feature(table.name, raw)
    _refuse_deletion(table.name, loaded)
    own = own_folder(location)
    home = _folder(text(raw, "location", subject=location))
    require_in(storage, text(raw, "location", subject=location))
    stated = properties(raw, subject=location)
    require_one_format(table.name, storage, home, own={"Iceberg"})
    named = _folders(storage, stated, _DATA_PATHS)
    data = [TableFolder(home, _kinds_in(_folders_of_home(raw, location, whole=home in named)))]
    for folder in named:
        data += _elsewhere(home, folder, _kinds_in(_any_folders(raw, location)), hashed=_HASHED)
    versions = [TableFolder(f"{home}/metadata", _METADATA)]
    for folder in _folders(storage, stated, (_METADATA_PATH,)):
        versions += _elsewhere(home, folder, _METADATA)
    for folder in dict.fromkeys((own, home, *(place.folder for place in (*data, *versions)))):
        require_unclaimed(table.name, storage.root, folder, claims)
    for place in versions:
        require_alone(table.name, storage, place.folder, loaded)
    known = [replace(place, shared=not is_within(own, place.folder)) for place in (*data, *versions)]
    inside = {folder for claim in claims for folder in claim.folders(storage.root) if folder != own}
    known += [TableFolder(folder, ()) for folder in sorted(inside) if any(is_within(p.folder, folder) for p in known)]
    places = tuple({place.folder: place for place in known}.values())
    kept_in = home if is_within(own, home) else own
    return TableFiles(table, storage, kept_in, places, foreign=tuple(foreign_patterns()), dry_only=dry_only)


def refuse_upkeep(table: str, loaded: tuple[Raw, str]) -> None:
    """Raises RefusedTable for a table whose files nobody may delete, or whose metadata we do not write."""
    refuse_structure(table, loaded[0])
    _refuse_deletion(table, loaded)


def _refuse_deletion(table: str, loaded: tuple[Raw, str]) -> None:
    raw, location = loaded
    if properties(raw, subject=location).get("gc.enabled", "true").lower() != "true":
        feature = "the property gc.enabled forbids that files are deleted: other tables may need them"
        raise RefusedTable(table, feature, "set gc.enabled to true if none does")
    if not location:
        feature = "its catalog does not tell which metadata file is the current one"
        raise RefusedTable(table, feature, "use the catalog's own maintenance for this table")


_DATA_PATHS: Final = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
_METADATA_PATH: Final = "write.metadata.path"

_UUID: Final = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
# Readers of a folder skip what begins so, and so does Java's own sweep (HiddenPathFilter.java).
_SHOWN: Final = "[^/_.]"
_NAMED: Final = f"(?:(?:{_SHOWN}[^/]*)?[-_])?{_UUID}(?:[-_][^/]*)?"
_OURS: Final = "(?:[01]{8}-)?[0-9]{5,}-nk-[0-9a-f]{16}-[^/]+"
_HASHED: Final = "(?:[01]{4}/){3}[01]{8}/"
"""Folders of an object store's layout, before a path that names the table (LocationProviders.java)."""

_METADATA: Final = (
    FileKind("manifest-list", f"snap-[0-9]+-{_SHOWN}[^/]*[.]avro"),
    FileKind("manifest", f"(?:{_NAMED}-m[0-9]+|optimized-m-{_UUID}|nk-[0-9a-f]{{16}}-[^/]+-m[0-9]+)[.]avro"),
    # What a checkpoint of Flink's listed for its commit.
    FileKind("manifest", f"{_SHOWN}[^/]*-[0-9]{{5}}-[0-9]+-[0-9]+-[0-9]{{5}}(?:-[^/]+)?[.]avro"),
    FileKind("metadata", f"[0-9]{{5,}}-{_UUID}(?:[.]gz|[.]zstd)?[.]metadata[.]json(?:[.]gz)?"),
    FileKind("statistics", f"{_NAMED}[.](?:stats|puffin)|stats-[0-9]+[^/]*[.]stats"),
    FileKind("partition-statistics", f"partition-stats-[0-9]+-{_UUID}[.](?:parquet|orc|avro)"),
    FileKind("staged", "nk-[0-9a-f]{16}-[^/]+[.]snapshot[.]json"),
)


def _kinds_in(folders: str) -> tuple[FileKind, ...]:
    """Files that writers of data make, in folders that match."""
    return (
        FileKind("deletes", f"{folders}(?:{_NAMED}-deletes|{_OURS}-deletes)[.](?:parquet|orc|avro)"),
        FileKind("vectors", f"{folders}(?:{_NAMED}|{_OURS})[.]puffin"),
        FileKind("data", f"{folders}(?:{_NAMED}|{_OURS})[.](?:parquet|orc|avro)"),
        # Impala's.
        FileKind("data", f"{folders}{_NAMED}_data[.][0-9]+[.]parq"),
    )


def _any_folders(raw: Raw, subject: str) -> str:
    """Those of any layout, at any depth: what is below a folder for data is data."""
    hidden = sorted(f"{_quoted(name)}=[^/]*" for name in _fields(raw, subject) if name[:1] in ("_", "."))
    return f"(?:(?:{'|'.join((f'{_SHOWN}[^/]*', *hidden))})/)*"


def _folders_of_home(raw: Raw, subject: str, *, whole: bool) -> str:
    """Those that writers make in the table's own folder, beside which anybody may keep a copy or an export: `data`,
    those of partitions, as Hive's tables have them, and of an object store's layout; if `whole`, the folder itself."""
    partition = "|".join(sorted(map(_quoted, _fields(raw, subject))))
    partitions = f"(?:(?:{partition})=[^/]*/)"
    patterns = [
        f"data/{_any_folders(raw, subject)}",
        f"(?:[01]{{4}}/){{3}}(?:[01]{{8}}/)?{partitions}*",
        f"{partitions}+",
    ]
    return f"(?:{'|'.join(patterns)}){'?' if whole else ''}"


def _fields(raw: Raw, subject: str) -> frozenset[str]:
    """Names of the partition fields of every spec, as they are in folders."""
    specs = objects(raw, "partition-specs", subject=subject)
    fields = (field for spec in specs for field in objects(spec, "fields", subject=subject))
    return frozenset(escaped(text(field, "name", subject=subject)) for field in fields)


def _elsewhere(home: str, folder: str, kinds: tuple[FileKind, ...], *, hashed: str = "") -> Iterator[TableFolder]:
    """The place at a folder that a property names, unless it is `home`: as a whole where it is the table's own, else,
    of an object store's layout, what is below a path that names the table; nothing where neither tells.

    Outside of the table's location such a path may be another catalog's table's as well, by names that are equal.
    """
    named = "/".join(home.split("/")[-2:])
    if folder == home:
        return
    if folder.startswith(f"{home}/") or f"/{named}/" in f"/{folder}/":
        yield TableFolder(folder, kinds, shared=not folder.startswith(f"{home}/"))
    elif hashed and not home.startswith(f"{folder}/"):
        prefix = f"{hashed}{_quoted(named)}/"
        yield TableFolder(
            folder, tuple(FileKind(kind.name, f"{prefix}(?:{kind.pattern})") for kind in kinds), shared=True
        )


def _folders(storage: Storage, stated: Mapping[str, str], keys: Sequence[str]) -> tuple[str, ...]:
    """Those that properties name in this storage; what is in another bucket is not looked into."""
    paths = [stated[key] for key in keys if stated.get(key)]
    return tuple(_folder(path) for path in paths if root_of(path) == storage.root)


def _folder(location: str) -> str:
    return stored_name(location.rstrip("/"))


def _quoted(name: str) -> str:
    """The name as a pattern. Python's own quotes more than RE2 and Rust take."""
    return re.sub(
        r"[][\\^$.|?*+(){}]", lambda found: f"[{found[0]}]" if found[0] not in "[]^\\" else f"\\{found[0]}", name
    )
