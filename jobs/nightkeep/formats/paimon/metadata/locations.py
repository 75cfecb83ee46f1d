"""A branch's schema -> the folders of its files. Branches have their own metadata and share all other folders.

C/utils/{FileStorePathFactory,BranchManager}.java. Refused by name: features that put files elsewhere, or that keep
files alive through metadata that we do not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nightkeep.encodings.avro_container import Record
from nightkeep.errors import BeingCreated, MissingFile, RefusedTable
from nightkeep.formats.paimon.metadata.binary_row import decode_row
from nightkeep.formats.paimon.metadata.partition_paths import DEFAULT_PARTITION_NAME, bucket_directory, partition_path
from nightkeep.formats.paimon.metadata.schema import PaimonField, PaimonSchema, option_bool, parse_schema
from nightkeep.formats.paimon.metadata.snapshot_files import numbered
from nightkeep.storage import Storage

MAIN = ""
"""The prefix of the main branch. Other branches have `branch/branch-<name>/`."""

DATA_PREFIX, CHANGELOG_PREFIX = "data-", "changelog-"
"""Default prefixes of the names of data files and of changelog files."""

_PLAIN = {
    "type": ("table", "only tables with snapshots have orphans"),
    "branch": ("main", "name the main branch: it is swept with all others"),
    "manifest.format": ("avro", "only Avro manifests are read"),
}
EXTERNAL_PATHS: Final = "data-file.external-paths"
UNSET: Final = (
    "to move its files back, unset it, compact in full by the engine with compaction.force-rewrite-all-files = true as "
    "an option of that job, and expire"
)
_OUTSIDE = "files outside the table's folder are not looked at; move them back into it"
_ICEBERG = "Iceberg's snapshots keep files, too; use the engine's own cleaning"
_INDEX_PATH: Final = "global-index.external-path"
ICEBERG_STORAGE: Final = "metadata.iceberg.storage"


@dataclass(frozen=True, slots=True)
class BranchFolders:
    """The parts of a schema that decide names and folders of files. Hashable, picklable. `data_folder` may be empty."""

    partition: tuple[PaimonField, ...]
    legacy_names: bool
    default_name: str
    data_folder: str
    index_beside_data: bool
    writes_changelogs: bool
    data_prefix: str
    changelog_prefix: str

    def is_data(self, name: str) -> bool:
        """Whether the name is of a data file, not a changelog file, by its prefix."""
        return name.startswith(self.data_prefix) and not name.startswith((self.changelog_prefix, CHANGELOG_PREFIX))

    def is_changelog(self, name: str) -> bool:
        """Whether the name is of a changelog file, and of no data file, by its prefix."""
        prefixes = tuple(filter(None, (self.changelog_prefix, CHANGELOG_PREFIX)))
        return name.startswith(prefixes) and not name.startswith((self.data_prefix, DATA_PREFIX))

    def folder(self, partition: bytes, bucket: int) -> str:
        """The folder of one bucket. Raises RefusedTable for partition values whose text depends on the writing JVM."""
        values = decode_row(partition, [field.type for field in self.partition])
        names = [field.name for field in self.partition]
        path = partition_path(
            names,
            values,
            [field.type for field in self.partition],
            legacy=self.legacy_names,
            default_name=self.default_name,
        )
        return "/".join(filter(None, (self.data_folder, path.rstrip("/"), bucket_directory(bucket))))

    def index_folder(self, record: Record) -> str:
        """The folder of an index manifest entry's file. Global indexes belong to no bucket."""
        if not self.index_beside_data or record.get("_GLOBAL_INDEX"):
            return "index"
        return self.folder(record["_PARTITION"], record["_BUCKET"])


def layout(schema: PaimonSchema, *, subject: str) -> BranchFolders:
    """The folders of a schema. Raises RefusedTable naming `subject` if files may be in folders that we do not read."""
    for feature, advice in _features(schema):
        raise RefusedTable(subject, feature, advice)
    return BranchFolders(
        partition=schema.select(schema.partition_keys),
        legacy_names=option_bool(schema, "partition.legacy-name", default=True),
        default_name=schema.options.get("partition.default-name", DEFAULT_PARTITION_NAME),
        data_folder=schema.options.get("data-file.path-directory", "").strip("/"),
        index_beside_data=option_bool(schema, "index-file-in-data-file-dir"),
        writes_changelogs=schema.options.get("changelog-producer", "none").lower() != "none",
        data_prefix=schema.options.get("data-file.prefix", DATA_PREFIX),
        changelog_prefix=schema.options.get("changelog-file.prefix", CHANGELOG_PREFIX),
    )


def _features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    for key, (handled, advice) in _PLAIN.items():
        value = schema.options.get(key, handled)
        if value.lower() != handled:
            yield f"option {key} = {value} is not handled", advice
    if writes_elsewhere(schema):
        yield f"option {EXTERNAL_PATHS} is not handled", UNSET
    if schema.options.get(_INDEX_PATH, "").strip():
        yield f"option {_INDEX_PATH} is not handled", _OUTSIDE
    if writes_iceberg(schema):
        yield f"option {ICEBERG_STORAGE} is not handled", _ICEBERG


def writes_elsewhere(schema: PaimonSchema) -> bool:
    """Whether new files are written outside the table's folder: paths alone do nothing, the default strategy is none
    (AbstractFileStore.createExternalPaths)."""
    strategy = schema.options.get(f"{EXTERNAL_PATHS}.strategy", "none").strip().lower()
    return strategy != "none" and schema.options.get(EXTERNAL_PATHS, "").strip() != ""


def writes_iceberg(schema: PaimonSchema) -> bool:
    """Whether commits write Iceberg metadata. Without the storage the other options of it have no effect."""
    return schema.options.get(ICEBERG_STORAGE, "disabled").strip().lower() != "disabled"


def inside(record: Record) -> str:
    """The file name in an entry. Raises RefusedTable for a file outside the table's folder."""
    name = str(record["_FILE_NAME"])
    if record.get("_EXTERNAL_PATH"):
        raise refused_outside(name)
    return name


def refused_outside(name: str) -> RefusedTable:
    return RefusedTable(name, "a file outside the table's folder is not handled", _OUTSIDE)


def branches(storage: Storage) -> tuple[str, ...]:
    """Prefixes of all branches, the main one first."""
    folders = storage.folders("branch")
    return (MAIN, *(f"{folder}/" for folder in folders if folder.startswith("branch/branch-")))


def branch_schemas(storage: Storage, branch: str) -> tuple[PaimonSchema, ...]:
    """Every schema of a branch, in order of id. Raises MissingFile if there is none: its folders are then unknown.

    Raises BeingCreated for another branch than main: Java copies tag and snapshot first
    (C/utils/FileSystemBranchManager).
    """
    stored = storage.list(f"{branch}schema")
    names = [one.name for one in stored if numbered(one.name, "schema-") is not None]
    if not names:
        missing = MissingFile if branch == MAIN else BeingCreated
        found = "none" if branch == MAIN else "none: its creation has not ended"
        raise missing(f"{storage.root}/{branch}schema", "schema-<n> files of a branch", found)
    return tuple(sorted((parse_schema(storage.read(n), subject=n) for n in names), key=lambda schema: schema.id))
