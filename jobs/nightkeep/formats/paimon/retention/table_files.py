"""Table -> names and kinds of files that belong to it, and so what a sweep may remove.

C/operation/OrphanFilesClean takes any file in manifest/, index/, statistics/ and a bucket's folder. Here the name must
also be one that Paimon or we give. Never candidates: schema/, tag/, branch/, consumer/ and service/, snapshots,
changelogs and their hints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from nightkeep.formats.paimon.metadata.branch import MAIN_BRANCH, location_and_branch, refuse_branch_sweep
from nightkeep.formats.paimon.metadata.locations import CHANGELOG_PREFIX, DATA_PREFIX, branch_schemas, branches, layout
from nightkeep.formats.paimon.metadata.partition_paths import escape
from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.model import Address
from nightkeep.model.run_names import MARK
from nightkeep.protocol.foreign_tables import foreign_patterns, require_one_format
from nightkeep.protocol.table_files import FileKind, TableFiles, TableFolder
from nightkeep.storage import Storage

_UUID: Final = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_TEMPORARY: Final = rf"\.[^/]+\.{_UUID}\.tmp"
"""Temporary names of A/fs/Path.createTempPath and pypaimon."""
_FORMAT: Final = "(?:parquet|orc|avro|csv|json|text|blob|lance|vortex|mosaic|row|arrow)"
"""Never `.managed.blob`: other files state which of those are in use (C/blob/ManagedBlobReferenceFile)."""
_PACKED: Final = (
    "(?:zstd|zst|zstandard|gz|gzip|snappy|lz4|lz4_raw|lz4hc|lzo|lzo_raw|brotli|bz2|bzip2|deflate|zlib|xz|none|null"
    "|uncompressed)"
)
_BESIDE: Final = r"(?:index|lookup)"
_WRITTEN: Final = tuple(
    f"{folder}/.*" for folder in ("snapshot", "tag", "changelog", "branch", "manifest", "index", "statistics")
)
"""Folders that are created when first needed."""
_BUCKET: Final = "bucket-(?:postpone|[0-9]+)"


def find_table_files(table: Address, storage: Storage) -> TableFiles:
    """The folders and kinds of the table's files.

    Raises MissingFile for a branch without schema, RefusedTable for a table with files outside its folder or with
    another format's table in the same folder.
    """
    refuse_branch_sweep(table.name, table.location)
    # Paimon writes Iceberg metadata to metadata/.
    require_one_format(table.name, storage, "", own={"Paimon", "Iceberg"})
    main, *others = (branch_schemas(storage, branch) for branch in branches(storage))
    schemas = [*main, *(schema for other in others for schema in other)]
    where = layout(main[-1], subject=table.name)
    keys = [re.escape(escape(field.name)) for field in where.partition]
    partition = "".join(f"{key}=[^/]+/" for key in keys)
    data = "".join(f"{re.escape(part)}/" for part in where.data_folder.split("/") if part)
    bucket = f"{data}{partition}{_BUCKET}/"
    place = TableFolder("", (*_metadata_kinds(), *_data_kinds(bucket, _prefixes(schemas)), *_temporary_kinds(bucket)))
    return TableFiles(
        table=table,
        storage=storage,
        home="",
        places=(place,),
        foreign=tuple(foreign_patterns(_data_folders(data, partitioned=bool(keys)))),
        by_bare_name=True,
    )


def never_written(table: Address, storage: Storage) -> bool:
    """Whether only a schema was ever committed: there is no version of any kind, and no file of a writer.

    Manifests or data without a version may be from a table that lost its snapshots, or from a first write without a
    commit. These cannot be distinguished. Raises as `table_files`.
    """
    if storage.list("snapshot"):
        return False
    if location_and_branch(table.location)[1] != MAIN_BRANCH:
        # Files of all branches are in one folder. A branch of a tag begins with its snapshot.
        return not storage.list("tag")
    (place,) = find_table_files(table, storage).places
    written = re.compile("|".join((*_WRITTEN, *(f"(?:{kind.pattern})" for kind in place.kinds))))
    return not any(written.fullmatch(file.name) for batch in storage.walk("") for file in batch)


def _metadata_kinds() -> Iterator[FileKind]:
    yield FileKind("manifest-list", r"manifest/manifest-list-[^/]+")
    yield FileKind("index-manifest", r"manifest/index-manifest-[^/]+")
    yield FileKind("manifest", r"manifest/manifest-[^/]+")
    yield FileKind("statistics", r"statistics/stat-[^/]+")
    yield FileKind("index", r"index/(?:index-[^/]+|[^/.]+\.index)")


def _data_kinds(bucket: str, prefixes: tuple[str, str]) -> Iterator[FileKind]:
    data, changelog = prefixes
    suffix = rf"(?:\.vector)?(?:\.{_PACKED})?\.{_FORMAT}(?:\.{_PACKED})?"
    yield FileKind("changelog", rf"{bucket}{changelog}[^/.]+{suffix}")
    yield FileKind("extra", rf"{bucket}(?:{data}|{changelog})[^/.]+(?:\.[^/.]+)*\.{_BESIDE}")
    yield FileKind("data", rf"{bucket}{data}[^/.]+{suffix}")
    yield FileKind("index", rf"{bucket}index-[^/.]+")


def _temporary_kinds(bucket: str) -> Iterator[FileKind]:
    """Temporary files: in snapshot/ and changelog/ of every branch, and wherever files are renamed into place."""
    versions = r"(?:branch/branch-[^/]+/)?(?:snapshot|changelog)/"
    yield FileKind("staged", rf"{versions}staged-{MARK}-[^/]+")
    yield FileKind("temporary", rf"(?:{versions}|manifest/|index/|statistics/|{bucket}){_TEMPORARY}")


def _prefixes(schemas: Sequence[PaimonSchema]) -> tuple[str, str]:
    """Patterns of the name prefixes of data files and changelog files, under all schemas."""
    data = (schema.options.get("data-file.prefix", DATA_PREFIX) for schema in schemas)
    changelog = (schema.options.get("changelog-file.prefix", CHANGELOG_PREFIX) for schema in schemas)
    return _any({DATA_PREFIX, *data}), _any({CHANGELOG_PREFIX, *changelog})


def _any(words: set[str]) -> str:
    """A pattern of any of the words. Empty words are left out, because they would match every name."""
    return f"(?:{'|'.join(re.escape(word) for word in sorted(words) if word)})"


def _data_folders(data: str, *, partitioned: bool) -> str:
    """Pattern of data folders of this branch. Other branches have schemas of their own in branch/branch-<name>/."""
    first = f"{data}[^/]*=[^/]*|{data}bucket-[^/]+" if partitioned else f"{data}bucket-[^/]+"
    return rf"(?:{first}|manifest|index|statistics|snapshot|changelog|branch/[^/]+/[^/]+)(?:/[^/]+)*"
