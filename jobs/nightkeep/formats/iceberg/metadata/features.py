"""Table metadata and files -> refusals. Each feature of Iceberg's format versions is handled or refused.

`make feature-pages` writes docs/iceberg-features.md, with the test that proves each statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.types import DoubleType, FloatType, NestedField

from nightkeep.errors import CorruptMetadata, RefusedTable, kind_of
from nightkeep.formats.iceberg.metadata.content_files import ContentFile, FileContent, Manifest
from nightkeep.formats.iceberg.metadata.first_version import lacking
from nightkeep.formats.iceberg.metadata.locations import ADVICE
from nightkeep.formats.iceberg.metadata.schema import IcebergSchema
from nightkeep.formats.iceberg.metadata.table_metadata import Raw, integer, objects, properties, text
from nightkeep.formats.iceberg.metadata.variants import variants

NEWEST: Final = 3


@dataclass(frozen=True, slots=True)
class IcebergFeature:
    """A feature is either handled or refused.

    `handled` states what we do with it. `refused` states what the user can do instead. `without` states which
    operations still work on a table with a refused feature; planning always does. `of_writers`: whoever only reads rows
    need not know it.
    """

    handled: str = ""
    refused: str = ""
    without: str = ""
    of_writers: bool = False

    def __post_init__(self) -> None:
        assert bool(self.handled) != bool(self.refused)


def refuse_features(
    table: str, raw: Raw, *, schema_id: int | None = None, any_version: bool = True, reads_only: bool = False
) -> None:
    """Raises RefusedTable for the first feature in the table's metadata that we do not handle, CorruptMetadata.

    `schema_id`: the schema to read rows with, None for the current one. `any_version`: whether the catalog accepts
    commits to tables of format version 3. `reads_only`: features that only writers must know are no hindrance.
    """
    for name, use in _refused(table, raw, schema_id, any_version=any_version):
        if not (reads_only and FEATURES[name].of_writers):
            raise refusal(table, name, use)


def unread_feature(
    table: str, raw: Raw, *, schema_id: int | None = None, any_version: bool = True
) -> RefusedTable | None:
    """The refusal of the first feature that no run handles but that allows planning; None if there is none.

    Raises RefusedTable for a feature that does not allow planning, CorruptMetadata. Arguments as in `refuse_features`.
    """
    unread: RefusedTable | None = None
    for name, use in _refused(table, raw, schema_id, any_version=any_version):
        found = refusal(table, name, use)
        if not FEATURES[name].without:
            raise found
        unread = unread or found
    return unread


def unchanged_feature(table: str, raw: Raw) -> RefusedTable | None:
    """The refusal of the first feature with which we never change a table but can list its files; None if none.

    Raises RefusedTable for a feature with which its files cannot be listed, CorruptMetadata.
    """
    refusals = [(name, refusal(table, name, use)) for name, use in _structure(table, raw)]
    for name, found in refusals:
        if not FEATURES[name].without:
            raise found
    return refusals[0][1] if refusals else None


def refuse_structure(table: str, raw: Raw) -> None:
    """Raises RefusedTable for the first feature in the table's metadata with which we never change a table."""
    for name, use in _structure(table, raw):
        raise refusal(table, name, use)


def unread_file(schema: IcebergSchema, files: Iterable[ContentFile]) -> RefusedTable | None:
    """The refusal of the first file that we cannot read; None if we can read all."""
    has_variants = any(variants(schema.current.fields))
    for file in files:
        if file.format not in _FORMATS:
            return refusal(schema.table, "files of other formats", f"{file.path} is in {file.format}")
        if file.raw.get("key_metadata") is not None:
            return refusal(schema.table, "encryption", f"{file.path} is encrypted")
        if has_variants and file.format == "orc" and file.content is FileContent.DATA:
            return refusal(schema.table, "variants in ORC files", f"{file.path} is of a table with variants")
    return None


def refuse_manifests(table: str, manifests: Iterable[Manifest]) -> None:
    """Raises RefusedTable for a manifest that we cannot read."""
    for manifest in manifests:
        if manifest.key_metadata is not None:
            raise refusal(table, "encryption", f"{manifest.path} is encrypted")


def manifest_list_of(table: str, snapshot: Raw) -> str:
    """The location of a snapshot's manifest list. Raises RefusedTable if it is encrypted or there is none."""
    if snapshot.get("key-id") is not None:
        raise refusal(table, "encryption", f"snapshot {snapshot.get('snapshot-id')} is encrypted")
    if "manifest-list" not in snapshot and "manifests" in snapshot:
        raise refusal(table, "snapshots without a manifest list", f"snapshot {snapshot.get('snapshot-id')}")
    return text(snapshot, "manifest-list", subject=f"{table}: snapshot {snapshot.get('snapshot-id')}")


def refuse_keys(schema: IcebergSchema, deletes: Iterable[ContentFile]) -> None:
    """Raises RefusedTable for equality deletes by columns that we cannot compare in the way readers do."""
    deletes = tuple(deletes)
    fields = {field_id: file.path for file in deletes for field_id in file.equality_ids}
    for field_id, path in fields.items():
        try:
            field = schema.field(field_id)
        except CorruptMetadata as failure:
            found = f"{path} deletes by field {field_id}"
            raise refusal(schema.table, "equality deletes by columns that no schema has", found) from failure
        if isinstance(field.field_type, FloatType | DoubleType):
            _refuse_nan(schema, field, deletes)


def _refuse_nan(schema: IcebergSchema, field: NestedField, deletes: Iterable[ContentFile]) -> None:
    """Bounds say nothing of NaN. Java leaves data files out by the bounds of a file's other keys, and so shows or hides
    a row of NaN by what else is in its file."""
    number = field.field_id
    for file in (each for each in deletes if number in each.equality_ids):
        has_bounds = any(file.bound(side, number) is not None for side in ("lower_bounds", "upper_bounds"))
        if has_bounds and file.count("nan_value_counts", number) != 0:
            found = f"{file.path} deletes by {field.name}, and does not state that no key is NaN"
            raise refusal(schema.table, "equality deletes by NaN beside other values", found)


def refusal(table: str, name: str, use: str) -> RefusedTable:
    """The refusal of a feature of FEATURES, with where the table uses it."""
    return RefusedTable(table, f"{name}: {use}", FEATURES[name].refused)


def _refused(table: str, raw: Raw, schema_id: int | None, *, any_version: bool) -> Iterator[tuple[str, str]]:
    """Refused features in a table's metadata: each feature's name, and where the metadata uses it."""
    yield from _structure(table, raw)
    if integer(raw, "format-version", subject=table) == NEWEST and not any_version:
        yield "format version 3 in catalogs other than REST, SQL, Hive and Glue", "pyiceberg commits no such metadata"
    if integer(raw, "format-version", subject=table) == 1 and not any_version:
        yield "format version 1 in catalogs other than REST, SQL, Hive and Glue", "no test has committed to one"
    yield from _types(table, raw, schema_id)
    unplaced = _variants(table, raw)
    for field in (field for spec in objects(raw, "partition-specs", subject=table) for field in _fields(spec)):
        use = f"partition field {field.get('name')} is {field.get('transform')}"
        sources = field.get("source-ids")
        if field.get("source-id") in unplaced and field.get("transform") != "void":
            yield "partitions by variants", f"{use} of {unplaced[field['source-id']]}"
        if isinstance(sources, list) and len(sources) > 1:
            yield "transforms of several columns", use
        elif not _TRANSFORM.fullmatch(str(field.get("transform"))):
            yield "unknown transforms", use


def _structure(table: str, raw: Raw) -> Iterator[tuple[str, str]]:
    version = integer(raw, "format-version", subject=table)
    if version < 1 or version > NEWEST:
        yield "format versions above 3", f"the table is of version {version}"
    if version == 1 and lacking(raw):
        yield "metadata of the first releases", f"it has no {', '.join(lacking(raw))}"
    # Keys without the property are of no use: Java writes and reads plain files then (EncryptionUtil).
    if "encryption.key-id" in properties(raw, subject=table):
        yield "encryption", "the table has encryption keys"


def _types(table: str, raw: Raw, schema_id: int | None) -> Iterator[tuple[str, str]]:
    for column, field, is_key in _columns(table, raw, schema_id):
        name = re.split(r"[(\[]", str(field.get("type")))[0].strip()
        use = f"column {column} is of type {field.get('type')}"
        if not _TYPES.fullmatch(name):
            yield f"type {name}" if f"type {name}" in FEATURES else "unknown types", use
        if name == "unknown" and "." in column:
            yield "type unknown within other types", use
        if name == "variant" and is_key:
            yield "type variant in keys of maps", use


def _variants(table: str, raw: Raw) -> Mapping[object, str]:
    """The columns of variants in the current schema, by field id."""
    columns = _columns(table, raw, None)
    return {field["id"]: column for column, field, _ in columns if field.get("type") == "variant" and "id" in field}


def _columns(table: str, raw: Raw, schema_id: int | None) -> Iterator[tuple[str, Raw, bool]]:
    """As `_leaves`, of a schema by its id, None for the current one."""
    number = integer(raw, "current-schema-id", subject=table) if schema_id is None else schema_id
    for schema in objects(raw, "schemas", subject=table):
        if schema.get("schema-id") == number:
            yield from _leaves("", schema)


def _leaves(path: str, kind: Raw, *, is_key: bool = False) -> Iterator[tuple[str, Raw, bool]]:
    """Yield the fields, elements, keys and values in a type's JSON that have no parts, each with its column path, and
    whether it is in a key."""
    parts = ({"name": part, "type": kind[part]} for part in ("element", "key", "value") if part in kind)
    for field in (*_fields(kind), *parts):
        column, inner = f"{path}.{field.get('name')}".lstrip("."), field.get("type")
        in_key = is_key or ("key" in kind and field.get("name") == "key")
        yield from _leaves(column, inner, is_key=in_key) if isinstance(inner, dict) else [(column, field, in_key)]


def _fields(kind: Raw) -> list[Raw]:
    fields = kind.get("fields") or []
    if not isinstance(fields, list) or not all(isinstance(each, dict) for each in fields):
        raise CorruptMetadata("fields of a schema or partition spec", "a list of objects", kind_of(fields))
    return fields


_ENGINE: Final = "use the engine's own maintenance for this table"
_ROWLESS: Final = "Planned, swept and expired, for which no row is read"
_REWRITE: Final = (
    "rewrite the files as Parquet with the engine that wrote them; partitions without such files are maintained"
)

_OTHERWISE: Final = (
    "set write.format.default, or write.delete.format.default if that is the one, to parquet or orc: engines read "
    "tables with files of several formats"
)

_TRANSFORM: Final = re.compile(r"identity|void|year|month|day|hour|bucket\[\d+\]|truncate\[\d+\]")
_TYPES: Final = re.compile(
    r"boolean|int|long|float|double|decimal|date|time|timestamp|timestamptz|timestamp_ns|timestamptz_ns"
    r"|string|uuid|fixed|binary|unknown|variant"
)
_FORMATS: Final = frozenset({"parquet", "orc", "avro", "puffin"})

FEATURES: Final[Mapping[str, IcebergFeature]] = {
    "format version 1": IcebergFeature(handled="Read and written, and never upgraded; it has no deletes"),
    "metadata of the first releases": IcebergFeature(
        refused="let its engine commit to it once, which writes whole metadata, or upgrade it",
        without="Read, planned, and swept in a dry run",
        of_writers=True,
    ),
    "format version 1 in catalogs other than REST, SQL, Hive and Glue": IcebergFeature(
        refused="upgrade it: ALTER TABLE ... SET TBLPROPERTIES ('format-version'='2')", of_writers=True
    ),
    "format version 2": IcebergFeature(handled="Read and written"),
    "format version 3": IcebergFeature(handled="Read and written"),
    "format versions above 3": IcebergFeature(refused="use the engine that wrote it"),
    "format version 3 in catalogs other than REST, SQL, Hive and Glue": IcebergFeature(
        refused="move the table to such a catalog", of_writers=True
    ),
    "position deletes": IcebergFeature(handled="Applied; in a table of version 3 rewritten as deletion vectors"),
    "deletion vectors": IcebergFeature(handled="Applied, checked and written, one for each data file"),
    "equality deletes": IcebergFeature(handled="Applied by sequence number, those of no partition everywhere"),
    "equality deletes by float or double columns": IcebergFeature(
        handled="Applied as Iceberg's Java does: NaN equals NaN, and 0.0 differs from -0.0"
    ),
    "equality deletes by NaN beside other values": IcebergFeature(
        refused="compact those data files with Iceberg's Java: by bounds it decides which of them such deletes are for"
    ),
    "equality deletes by columns that no schema has": IcebergFeature(refused=_ENGINE),
    "equality deletes by structs or fields within them": IcebergFeature(refused="delete by columns of primitive types"),
    "row lineage": IcebergFeature(handled="Rows keep their ids and the sequence numbers of their last change"),
    "default values": IcebergFeature(handled="Read where a file lacks the column"),
    "default values of nanosecond timestamps": IcebergFeature(handled="Read where a file lacks the column"),
    "default values in ORC files": IcebergFeature(
        refused="rewrite the files that lack the column as Parquet: Iceberg's Java cannot read such a table"
    ),
    "partition spec evolution": IcebergFeature(
        handled="Files stay in the partition spec that they were written in, unless they shall move to the current one"
    ),
    "sort orders": IcebergFeature(handled="Files are sorted by the table's default order, and state its id"),
    "sort orders that are not understood": IcebergFeature(handled="Files are packed, and a note states why"),
    "schema evolution": IcebergFeature(handled="Columns are read by field id, of files without ids by name mapping"),
    "transforms of several columns": IcebergFeature(
        refused="use the engine that wrote them: Iceberg's Java and pyiceberg have none to compare values with"
    ),
    "unknown transforms": IcebergFeature(refused=_ENGINE),
    "partition values of type fixed": IcebergFeature(
        refused="partition by another column: Iceberg's Java writes such values as no Avro reader expects them; other "
        "partitions are maintained",
        without="Swept and expired",
    ),
    "identity partition values unlike the rows'": IcebergFeature(
        refused="write the rows of that partition again with the engine that shows what you mean: Iceberg's Java shows "
        "the partition's value, other readers the rows'",
        without="Swept and expired",
    ),
    "type timestamp_ns": IcebergFeature(handled="Read and written"),
    "type timestamptz_ns": IcebergFeature(handled="Read and written"),
    "type variant": IcebergFeature(
        handled="Copied as it is stored, with counts of nulls; files that are shredded alike stay shredded"
    ),
    "type variant in keys of maps": IcebergFeature(refused=_ENGINE, without=_ROWLESS),
    "partitions by variants": IcebergFeature(
        refused="partition by another column: Iceberg's Java opens no such table", without=_ROWLESS
    ),
    "variants in ORC files": IcebergFeature(
        refused="rewrite the files as Parquet: Iceberg's Spark writes no variant to ORC files, and reads no such table"
    ),
    "type geometry": IcebergFeature(refused=_ENGINE, without=_ROWLESS),
    "type geography": IcebergFeature(refused=_ENGINE, without=_ROWLESS),
    "type unknown": IcebergFeature(handled="Null in every row, and not written to files"),
    "type unknown within other types": IcebergFeature(refused=_ENGINE, without=_ROWLESS),
    "unknown types": IcebergFeature(refused=_ENGINE, without=_ROWLESS),
    "ORC files": IcebergFeature(handled="Read, and written where write.format.default asks for them"),
    "Avro files": IcebergFeature(handled="Read"),
    "new files in Avro": IcebergFeature(refused=_OTHERWISE, of_writers=True),
    "new files of other formats": IcebergFeature(refused=_OTHERWISE, of_writers=True),
    "files of other formats": IcebergFeature(refused=_REWRITE),
    "encryption": IcebergFeature(refused=_ENGINE),
    "files in object stores": IcebergFeature(handled="Read and written in one bucket"),
    **{name: IcebergFeature(refused=advice) for name, advice in ADVICE.items()},
    "files outside the table's folder": IcebergFeature(
        handled="Read from where manifests place them, written to where properties place them"
    ),
    "metadata that Paimon or Delta writes of its own tables": IcebergFeature(
        refused="run on the table by its own format"
    ),
    "branches and tags": IcebergFeature(
        handled="A branch is read and committed to by its own address; all others stay as they are"
    ),
    "statistics files": IcebergFeature(handled="Kept"),
    "snapshots without a manifest list": IcebergFeature(refused="expire snapshots of before the upgrade to version 2"),
}
