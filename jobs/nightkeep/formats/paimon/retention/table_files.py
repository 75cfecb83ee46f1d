"""Where files of a Paimon table may be, and of what kind they are, by the names that its writers give.

C/operation/OrphanFilesClean takes any file in manifest/, index/, statistics/ and a bucket's folder; here a name must
be one that a writer of Paimon's, or ours, gives. Metadata is no candidate: schema/, tag/, branch/, consumer/ and
service/, snapshots, changelogs and their hints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

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
"""A/fs/Path.createTempPath, and pypaimon's."""
_FORMAT: Final = "(?:parquet|orc|avro|csv|json|text|blob|lance|vortex|mosaic|row|arrow)"
"""Never `.managed.blob`: which of those are in use stands in other files (C/blob/ManagedBlobReferenceFile)."""
_PACKED: Final = (
    "(?:zstd|zst|gz|gzip|snappy|lz4|lz4_raw|lz4hc|lzo|lzo_raw|brotli|bz2|bzip2|deflate|zlib|xz|none|null|uncompressed)"
)
_BESIDE: Final = r"(?:index|lookup)"
_WRITTEN: Final = tuple(
    f"{folder}/.*" for folder in ("snapshot", "tag", "changelog", "branch", "manifest", "index", "statistics")
)
"""Folders that are made when they are first needed."""
_BUCKET: Final = "bucket-(?:postpone|[0-9]+)"


def territory(table: Address, storage: Storage) -> TableFiles:
    """Raises MissingFile for a branch without schema, RefusedTable for a table with files outside of its folder, and
    where another format's table is in the very same folder."""
    # In metadata/ is what Paimon writes for Iceberg.
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
    """Whether nothing but a schema was ever committed: no version of any kind, and no file that a writer leaves.

    Manifests or data without a version are those of a table that lost its snapshots, or of a first write that did not
    get to its commit: nobody can say which. Raises as `territory`.
    """
    if storage.list("snapshot"):
        return False
    (place,) = territory(table, storage).places
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
    """In the folders of snapshots and changelogs of every branch, and wherever else files are renamed into place."""
    versions = r"(?:branch/branch-[^/]+/)?(?:snapshot|changelog)/"
    yield FileKind("staged", rf"{versions}staged-{MARK}-[^/]+")
    yield FileKind("temporary", rf"(?:{versions}|manifest/|index/|statistics/|{bucket}){_TEMPORARY}")


def _prefixes(schemas: Sequence[PaimonSchema]) -> tuple[str, str]:
    """What names of data and of changelog files begin with, or began with under an earlier schema."""
    data = (schema.options.get("data-file.prefix", DATA_PREFIX) for schema in schemas)
    changelog = (schema.options.get("changelog-file.prefix", CHANGELOG_PREFIX) for schema in schemas)
    return _any({DATA_PREFIX, *data}), _any({CHANGELOG_PREFIX, *changelog})


def _any(words: set[str]) -> str:
    """One of the words, none of which may be empty: a file of any name would be taken for one of ours."""
    return f"(?:{'|'.join(re.escape(word) for word in sorted(words) if word)})"


def _data_folders(data: str, *, partitioned: bool) -> str:
    """Only folders with files of ours: each branch has a schema of its own, in branch/branch-<name>/."""
    first = f"{data}[^/]*=[^/]*|{data}bucket-[^/]+" if partitioned else f"{data}bucket-[^/]+"
    return rf"(?:{first}|manifest|index|statistics|snapshot|changelog|branch/[^/]+/[^/]+)(?:/[^/]+)*"
