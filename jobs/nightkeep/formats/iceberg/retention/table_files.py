"""Table metadata -> the table's folders, and patterns for names of table files in them.

A folder is the table's own if it is in the table's location, or if its path names the table as the location does.
Engines' names: OutputFileFactory.java, SnapshotProducer.java, BaseMetastoreTableOperations.java,
PartitionStatsHandler.java, ManifestOutputFileFactory.java. Names of Trino, DuckDB, ClickHouse and pyiceberg also have a
UUID.
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
from nightkeep.formats.iceberg.metadata.own_format import require_iceberg_only
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, objects, properties, text
from nightkeep.formats.iceberg.retention.foreign_tables import require_alone
from nightkeep.model import Address
from nightkeep.protocol.foreign_tables import foreign_patterns
from nightkeep.protocol.table_files import FileKind, TableFiles, TableFolder
from nightkeep.storage import Storage, is_within


def find_table_files(
    table: Address, storage: Storage, loaded: tuple[Raw, str], claims: tuple[Claim, ...] = ()
) -> TableFiles:
    """The folders of a table, from its metadata and the metadata's location in `loaded`.

    Its own folder is that of the metadata file that the catalog names. Other folders that metadata names are shared,
    even the location. Folders below it that other tables claim (`claims`) are left alone.

    Raises RefusedTable if deletion is disabled (gc.enabled), if another table of any format uses its folder, or if its
    catalog does not name the metadata file. If a second catalog has the same table, metadata committed only there looks
    like leftovers of killed commits.
    """
    raw, location = loaded
    dry_only = unchanged_feature(table.name, raw)
    _refuse_deletion(table.name, loaded)
    own = own_folder(location)
    home = _folder(text(raw, "location", subject=location))
    require_in(storage, text(raw, "location", subject=location))
    stated = properties(raw, subject=location)
    require_iceberg_only(table.name, storage, raw)
    named = _folders(storage, stated, _DATA_PATHS)
    data = [TableFolder(home, _kinds_in(_folders_of_home(raw, location, whole=home in named)))]
    for folder in named:
        data += _elsewhere(home, folder, _kinds_in(_any_folders(raw, location)), hashed=_HASHED)
    versions = [TableFolder(f"{home}/metadata", _METADATA)]
    for folder in _folders(storage, stated, (_METADATA_PATH,)):
        versions += _elsewhere(home, folder, _METADATA)
    for folder in dict.fromkeys((own, home, *(place.folder for place in (*data, *versions)))):
        require_unclaimed(table.name, storage.root, folder, claims)
    unreadable = tuple(name for place in versions for name in require_alone(table.name, storage, place.folder, loaded))
    folders = [replace(place, shared=not is_within(own, place.folder)) for place in (*data, *versions)]
    inside = {folder for claim in claims for folder in claim.folders(storage.root) if folder != own}
    folders += [
        TableFolder(folder, ()) for folder in sorted(inside) if any(is_within(p.folder, folder) for p in folders)
    ]
    places = tuple({place.folder: place for place in folders}.values())
    kept_in = home if is_within(own, home) else own
    foreign = tuple(foreign_patterns())
    return TableFiles(table, storage, kept_in, places, foreign=foreign, dry_only=dry_only, unreadable=unreadable)


def refuse_upkeep(table: str, loaded: tuple[Raw, str]) -> None:
    """Raises RefusedTable for a table with deletion disabled, or whose metadata we cannot write."""
    refuse_structure(table, loaded[0])
    _refuse_deletion(table, loaded)


def _refuse_deletion(table: str, loaded: tuple[Raw, str]) -> None:
    raw, location = loaded
    if properties(raw, subject=location).get("gc.enabled", "true").lower() != "true":
        feature = "the property gc.enabled forbids that files are deleted: other tables may need them"
        raise RefusedTable(table, feature, "set gc.enabled to true if none does")
    if not location:
        feature = "its catalog does not state which metadata file is the current one"
        raise RefusedTable(table, feature, "use the catalog's own maintenance for this table")


_DATA_PATHS: Final = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
_METADATA_PATH: Final = "write.metadata.path"

_UUID: Final = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
# Readers of a folder skip names that begin with these, and so does Java's own sweep (HiddenPathFilter.java).
_SHOWN: Final = "[^/_.]"
_NAMED: Final = f"(?:(?:{_SHOWN}[^/]*)?[-_])?{_UUID}(?:[-_][^/]*)?"
_OURS: Final = "(?:[01]{8}-)?[0-9]{5,}-nk-[0-9a-f]{16}-[^/]+"
_HASHED: Final = "(?:[01]{4}/){3}[01]{8}/"
"""Folders of an object store's layout, before a path that names the table (LocationProviders.java)."""

_METADATA: Final = (
    FileKind("manifest-list", f"snap-[0-9]+-{_SHOWN}[^/]*[.]avro"),
    FileKind("manifest", f"(?:{_NAMED}-m[0-9]+|optimized-m-{_UUID}|nk-[0-9a-f]{{16}}-[^/]+-m[0-9]+)[.]avro"),
    # Manifests that a checkpoint of Flink wrote for its commit.
    FileKind("manifest", f"{_SHOWN}[^/]*-[0-9]{{5}}-[0-9]+-[0-9]+-[0-9]{{5}}(?:-[^/]+)?[.]avro"),
    FileKind("metadata", f"[0-9]{{5,}}-{_UUID}(?:[.]gz|[.]zstd)?[.]metadata[.]json(?:[.]gz)?"),
    FileKind("statistics", f"{_NAMED}[.](?:stats|puffin)|stats-[0-9]+[^/]*[.]stats"),
    FileKind("partition-statistics", f"partition-stats-[0-9]+-{_UUID}[.](?:parquet|orc|avro)"),
    FileKind("staged", "nk-[0-9a-f]{16}-[^/]+[.]snapshot[.]json"),
)


def _kinds_in(folders: str) -> tuple[FileKind, ...]:
    """Kinds of data and delete files, in folders that match the pattern `folders`."""
    return (
        FileKind("deletes", f"{folders}(?:{_NAMED}-deletes|{_OURS}-deletes)[.](?:parquet|orc|avro)"),
        FileKind("vectors", f"{folders}(?:{_NAMED}|{_OURS})[.]puffin"),
        FileKind("data", f"{folders}(?:{_NAMED}|{_OURS})[.](?:parquet|orc|avro)"),
        # Impala's.
        FileKind("data", f"{folders}{_NAMED}_data[.][0-9]+[.]parq"),
    )


def _any_folders(raw: Raw, subject: str) -> str:
    """A pattern for folders of any layout and depth: everything below a folder for data is data."""
    hidden = sorted(f"{_quoted(name)}=[^/]*" for name in _fields(raw, subject) if name[:1] in ("_", "."))
    return f"(?:(?:{'|'.join((f'{_SHOWN}[^/]*', *hidden))})/)*"


def _folders_of_home(raw: Raw, subject: str, *, whole: bool) -> str:
    """A pattern for folders that writers create in the table's own folder; if `whole`, also that folder itself.

    They are `data`, folders of partitions as in Hive tables, and those of an object store's layout. Other folders may
    be anybody's copies or exports.
    """
    partition = "|".join(sorted(map(_quoted, _fields(raw, subject))))
    partitions = f"(?:(?:{partition})=[^/]*/)"
    patterns = [
        f"data/{_any_folders(raw, subject)}",
        f"(?:[01]{{4}}/){{3}}(?:[01]{{8}}/)?{partitions}*",
        f"{partitions}+",
    ]
    return f"(?:{'|'.join(patterns)}){'?' if whole else ''}"


def _fields(raw: Raw, subject: str) -> frozenset[str]:
    """Names of the partition fields of all specs, as they are spelled in folders."""
    specs = objects(raw, "partition-specs", subject=subject)
    fields = (field for spec in specs for field in objects(spec, "fields", subject=subject))
    return frozenset(escaped(text(field, "name", subject=subject)) for field in fields)


def _elsewhere(home: str, folder: str, kinds: tuple[FileKind, ...], *, hashed: str = "") -> Iterator[TableFolder]:
    """The place for a folder that a property names; nothing for `home`, or if nothing shows that it is the table's.

    The whole folder if it is the table's own. Otherwise, for an object store's layout, what is below a path that names
    the table. Outside the table's location a table of the same name in another catalog may use that path too.
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
    """The folders that properties name in this storage; folders in other buckets are ignored."""
    paths = [stated[key] for key in keys if stated.get(key)]
    return tuple(_folder(path) for path in paths if root_of(path) == storage.root)


def _folder(location: str) -> str:
    return stored_name(location.rstrip("/"))


def _quoted(name: str) -> str:
    """The name as a pattern. re.escape escapes more characters than RE2 and Rust accept."""
    return re.sub(
        r"[][\\^$.|?*+(){}]", lambda match: f"[{match[0]}]" if match[0] not in "[]^\\" else f"\\{match[0]}", name
    )
