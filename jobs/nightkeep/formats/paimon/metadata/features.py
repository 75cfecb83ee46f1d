"""Schema and history -> RefusedTable that names the first feature we do not handle. Runs before any data is read."""

from __future__ import annotations

from collections.abc import Iterator

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.branch import MAIN_BRANCH, MARK
from nightkeep.formats.paimon.metadata.changelog import changelog_features
from nightkeep.formats.paimon.metadata.file_formats import format_features, type_advice
from nightkeep.formats.paimon.metadata.locations import (
    EXTERNAL_PATHS,
    ICEBERG_STORAGE,
    UNSET,
    writes_elsewhere,
    writes_iceberg,
)
from nightkeep.formats.paimon.metadata.merge_features import merge_features
from nightkeep.formats.paimon.metadata.record_expiry import record_expiry_features
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, option_bool, option_int
from nightkeep.formats.paimon.metadata.snapshot import MAX_LEVEL

_VALUES: dict[str, tuple[frozenset[str], str, str]] = {
    # option: (values we handle, default, advice)
    "changelog-producer": (
        frozenset({"none", "input", "lookup", "full-compaction"}),
        "none",
        "compacting without writing that changelog would lose changes for streaming readers",
    ),
    "type": (frozenset({"table"}), "table", "only tables with snapshots can be maintained"),
    "manifest.format": (frozenset({"avro"}), "avro", "only Avro manifests are read"),
    "manifest.compression": (
        frozenset({"zstd", "deflate", "snappy", "null"}),
        "zstd",
        "manifests are read uncompressed, deflated, in snappy or in zstd",
    ),
}
_FLAGS = {
    "pk-clustering-override": "files are not sorted by key",
    "row-tracking.enabled": "row ids would have to move with their rows",
    "data-evolution.enabled": "rows are spread over files by column",
    "lookup.remote-file.enabled": "lookup files of rewritten files would be lost",
    "query-auth.enabled": "rows may be hidden from us",
    "chain-table.enabled": "deletes must survive compaction",
    "compaction.force-rewrite-all-files": "an upgrade in place would not be what the table asks for",
    "visibility-callback.enabled": "callbacks run in the engine's own committer only",
}
_PRESENT = {
    "commit.callbacks": "callbacks run in the engine's own committer only",
    EXTERNAL_PATHS: UNSET,
    "global-index.external-path": "files outside the table's folder are not read yet",
}
_INDEXED = frozenset(f"pk-{kind}.index.columns" for kind in ("vector", "btree", "bitmap", "full-text"))
"""Columns of the indexes of tables with keys. Other options of an index have no effect without its columns."""


def refuse_schema(table: str, schema: PaimonSchema, branch: str = MAIN_BRANCH) -> None:
    """Raise RefusedTable for the first feature of `schema` that we do not handle. `branch` is the one named."""
    for feature, advice in (*_branch_features(schema, branch), *_schema_features(schema)):
        raise RefusedTable(table, feature, advice)


def _schema_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    yield from merge_features(schema)
    yield from changelog_features(schema)
    yield from record_expiry_features(schema)
    yield from _option_features(schema)
    yield from format_features(schema)
    for field in schema.fields:
        if advice := type_advice(schema, field):
            yield f"column {field.name} of type {field.type} is not handled", advice
    yield from _bucket_features(schema)


def _branch_features(schema: PaimonSchema, branch: str) -> Iterator[tuple[str, str]]:
    meant = schema.options.get("branch", branch)
    if meant != branch:
        yield f"option branch = {meant} is not handled", f"name the branch that readers get: URI{MARK}{meant}"


def _option_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    for key, (handled, default, advice) in _VALUES.items():
        value = schema.options.get(key, default).lower()
        if value not in handled:
            yield f"option {key} = {value} is not handled", advice
    for key, advice in _FLAGS.items():
        if option_bool(schema, key):
            yield f"option {key} = true is not handled", advice
    for key in schema.options:
        if named := _named_advice(schema, key):
            yield f"option {key} is not handled", named


def _named_advice(schema: PaimonSchema, key: str) -> str | None:
    """The advice for an option that has an effect on this table; None for any other."""
    if key == EXTERNAL_PATHS and not writes_elsewhere(schema):
        return None
    if key in _PRESENT:
        return _PRESENT[key] if schema.options[key].strip() else None
    if key in _INDEXED:
        return "the index must be rebuilt with every file" if _is_indexed(schema, key) else None
    if key == ICEBERG_STORAGE and writes_iceberg(schema):
        return "Iceberg metadata comes from the engine's own commit callbacks"
    return None


def _is_indexed(schema: PaimonSchema, key: str) -> bool:
    return bool(schema.primary_keys) and schema.options[key].strip() != ""


def _bucket_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    bucket = option_int(schema, "bucket", -1)
    levels = option_int(schema, "num-levels", option_int(schema, "num-sorted-run.compaction-trigger", 5) + 1)
    crosses = not set(schema.partition_keys) <= set(schema.primary_keys)
    if bucket == -2:
        yield "bucket = -2 (postponed buckets) is not handled", "rows have no bucket yet"
    if bucket == -1 and schema.primary_keys and crosses:
        feature = "bucket = -1 (dynamic buckets) without the partition in the key is not handled"
        yield feature, "keys move between partitions"
    if levels > MAX_LEVEL:
        yield f"{levels} levels are not handled", f"set num-levels to {MAX_LEVEL} or less"
