"""Every table feature of the Delta protocol: what we do about it, or why it is refused.

A feature is supported if the protocol names it or an old protocol version implies it. A property without its feature
has no effect. A feature that nothing in the table uses refuses nothing. What only writers must know refuses no read.
`make feature-pages` writes docs/delta-features.md, with the test that proves each statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.errors import CorruptMetadata, RefusedTable, kind_of
from nightkeep.formats.delta.metadata.actions import Raw
from nightkeep.formats.delta.metadata.feature_use import (
    NO_DOMAINS,
    Domains,
    Use,
    always,
    has_collations,
    has_types,
    is_enabled,
    is_set,
)

MAX_READER: Final = 3
MAX_WRITER: Final = 7


@dataclass(frozen=True, slots=True)
class DeltaFeature:
    """One feature. Either `handled` states what we do, or `refused` states what to do instead.

    `used`: whether a version uses the feature; a refusal holds only then, and `where` describes it for the page.
    `moves_commits`: commits or rows may be elsewhere, so that a reader must know it, whatever list names it.
    `is_of_values`: only code that reads values must know the feature, so a sweep and an expiry may ignore it. `reader`,
    `writer`: the protocol versions that imply it.
    """

    handled: str = ""
    refused: str = ""
    is_of_values: bool = False
    reader: int | None = None
    writer: int | None = None
    used: Use = always
    where: str = ""
    moves_commits: bool = False

    def __post_init__(self) -> None:
        assert bool(self.handled) != bool(self.refused)


def supported(protocol: Raw) -> frozenset[str]:
    """Names of the features that readers or writers of the table must know. Raises CorruptMetadata."""
    writer = _version(protocol, "minWriterVersion")
    named = frozenset(_named(protocol, "writerFeatures", lists=writer >= MAX_WRITER))
    implied = {
        name
        for name, feature in FEATURES.items()
        if feature.writer is not None and feature.reader is None and feature.writer <= writer < MAX_WRITER
    }
    return of_readers(protocol) | named | implied


def of_readers(protocol: Raw) -> frozenset[str]:
    """Names of the features that readers of the table must know. Raises CorruptMetadata."""
    reader = _version(protocol, "minReaderVersion")
    named = frozenset(_named(protocol, "readerFeatures", lists=reader >= MAX_READER))
    implied = {
        name
        for name, feature in FEATURES.items()
        if feature.reader is not None and feature.reader <= reader < MAX_READER
    }
    return named | implied


def refuse_reads(
    table: str, protocol: Raw, metadata: Raw, domains: Domains = NO_DOMAINS, *, reads_values: bool = True
) -> None:
    """Raises RefusedTable for the first feature that a reader must know, the table uses, and we do not handle.

    With `reads_values` False, features that concern only values are ignored.
    """
    _require_versions(table, protocol, readers_only=True)
    provider = metadata.get("format")
    if isinstance(provider, Mapping) and provider.get("provider", "parquet") != "parquet":
        raise RefusedTable(table, f"data files in {provider.get('provider')}", "only Parquet is handled")
    moving = {name for name in supported(protocol) if (known := FEATURES.get(name)) and known.moves_commits}
    for name in sorted(of_readers(protocol) | moving):
        _refuse_feature(table, name, metadata, domains, reads_values=reads_values)


def refuse_features(
    table: str, protocol: Raw, metadata: Raw, *, domains: Domains = NO_DOMAINS, reads_values: bool = True
) -> None:
    """As `refuse_reads`, for a writer: features that only writers must know are refused too."""
    refuse_reads(table, protocol, metadata, domains, reads_values=reads_values)
    _require_versions(table, protocol, readers_only=False)
    # A collation without its feature still orders values.
    collations = {"collations"} if has_collations(metadata, domains) else set[str]()
    for name in sorted(supported(protocol) | collations):
        _refuse_feature(table, name, metadata, domains, reads_values=reads_values)


def _require_versions(table: str, protocol: Raw, *, readers_only: bool) -> None:
    reader, writer = _version(protocol, "minReaderVersion"), _version(protocol, "minWriterVersion")
    if reader > MAX_READER or (writer > MAX_WRITER and not readers_only):
        feature = f"protocol version ({reader}, {writer}) is unknown"
        raise RefusedTable(table, feature, f"versions up to ({MAX_READER}, {MAX_WRITER}) are handled")


def _refuse_feature(table: str, name: str, metadata: Raw, domains: Domains, *, reads_values: bool) -> None:
    entry = FEATURES.get(name)
    if entry is None:
        raise RefusedTable(table, f"table feature {name} is unknown", "use the engine that added it")
    if entry.refused and (reads_values or not entry.is_of_values) and entry.used(metadata, domains):
        raise RefusedTable(table, f"table feature {name} is not handled", entry.refused)


def _version(protocol: Raw, name: str) -> int:
    version = protocol[name]
    if not isinstance(version, int) or version < 0:
        raise CorruptMetadata("protocol", f"{name}, a version", kind_of(version))
    return version


def _named(protocol: Raw, name: str, *, lists: bool) -> Iterator[str]:
    """The feature names in the list `name`. The newest versions must have it (PROTOCOL.md, "Protocol Evolution")."""
    names = protocol.get(name)
    if lists and not isinstance(names, list):
        raise CorruptMetadata("protocol", f"{name}, as its version asks for", kind_of(names))
    yield from map(str, names if lists and isinstance(names, list) else ())


_ENGINE: Final = "use the engine's own OPTIMIZE for this table"
_CATALOG: Final = "only its catalog may commit: use the catalog's own maintenance"
_ICEBERG: Final = "commits must keep Iceberg metadata in step: drop the feature, or use the engine's own OPTIMIZE"
_COORDINATOR: Final = "delta.coordinatedCommits.commitCoordinator-preview"
_VARIANT: Final = DeltaFeature(
    "Variants are copied as they are stored, and compared by their values. Files that are shredded alike stay shredded;"
    " rows of others come together as plain variants"
)
_ADAPTIVE: Final = DeltaFeature(refused=f"its log is a tree of manifests: {_ENGINE}", moves_commits=True)
_GEOSPATIAL: Final = DeltaFeature(
    refused=_ENGINE, is_of_values=True, used=has_types("geometry", "geography"), where="with such a column"
)
_COLLATED: Final = DeltaFeature(
    refused=f"bounds of statistics depend on collations: {_ENGINE}",
    is_of_values=True,
    used=has_collations,
    where="with such a column",
)


def _in_step(name: str) -> DeltaFeature:
    return DeltaFeature(refused=_ICEBERG, used=is_enabled(name), where=f"with property `{name}`")


def _redirected(name: str, advice: str) -> DeltaFeature:
    return DeltaFeature(refused=advice, used=is_set(name), where=f"with property `{name}`")


FEATURES: Final[Mapping[str, DeltaFeature]] = {
    "appendOnly": DeltaFeature(
        "Commits only rearrange rows (dataChange false), which the feature allows; deletes are refused", writer=2
    ),
    "invariants": DeltaFeature("Nothing to do: rows are copied as they are, so what held still holds", writer=2),
    "checkConstraints": DeltaFeature("Nothing to do: rows are copied as they are", writer=3),
    "changeDataFeed": DeltaFeature(
        "Nothing to do: commits with dataChange false have no changes; _change_type is no column", writer=4
    ),
    "generatedColumns": DeltaFeature("Nothing to do: generated values are copied, not computed again", writer=4),
    "columnMapping": DeltaFeature(
        "Files, statistics and partition values go by physical names, in mode id by field ids", reader=2, writer=5
    ),
    "identityColumns": DeltaFeature("Nothing to do: values are copied and the high-water mark stays", writer=6),
    "allowColumnDefaults": DeltaFeature("Nothing to do: no row lacks a value when it is copied"),
    "checkpointProtection": DeltaFeature(
        "Log files before the protected version are removed all at once, commits first, or stay"
    ),
    "clustering": DeltaFeature(
        "Files are clustered by the table's own columns and carry our name; those of another clusteringProvider stay"
    ),
    "deletionVectors": DeltaFeature(
        "Vectors are always read, a remove repeats its file's; new ones only where the table enables them"
    ),
    "domainMetadata": DeltaFeature("Domains are kept; only the high-water mark of row tracking is ever written"),
    "inCommitTimestamp": DeltaFeature("commitInfo comes first, with a time later than the version before"),
    "materializePartitionColumns": DeltaFeature(
        "New files hold the partition columns too; their values are always read from the log"
    ),
    "rowTracking": DeltaFeature(
        "New files get row ids above the high-water mark; where it is enabled, rows keep their ids and versions"
    ),
    "timestampNtz": DeltaFeature("Times without zone are read and written as such"),
    "typeWidening": DeltaFeature("Older files are cast to the wider type; the history of changes stays"),
    "typeWidening-preview": DeltaFeature("As typeWidening"),
    "v2Checkpoint": DeltaFeature(
        "Checkpoints with a UUID and with sidecars are read, and written where `delta.checkpointPolicy` says v2"
    ),
    "vacuumProtocolCheck": DeltaFeature("The writer protocol is checked before every operation"),
    "adaptiveMetadata": _ADAPTIVE,
    "adaptiveMetadata-preview": _ADAPTIVE,
    "catalogManaged": DeltaFeature(refused=_CATALOG, moves_commits=True),
    "catalogOwned-preview": DeltaFeature(refused=_CATALOG, moves_commits=True),
    "collations": _COLLATED,
    "collations-preview": _COLLATED,
    "columnMappingUsageTracking": DeltaFeature(refused=f"it was never released: {_ENGINE}"),
    "coordinatedCommits-preview": DeltaFeature(
        refused=_CATALOG, used=is_set(_COORDINATOR), where=f"with property `{_COORDINATOR}`", moves_commits=True
    ),
    "geospatial": _GEOSPATIAL,
    "geospatial-dev": _GEOSPATIAL,
    "icebergCompatV1": _in_step("delta.enableIcebergCompatV1"),
    "icebergCompatV2": _in_step("delta.enableIcebergCompatV2"),
    "icebergCompatV3": _in_step("delta.enableIcebergCompatV3"),
    "icebergWriterCompatV1": _in_step("delta.enableIcebergWriterCompatV1"),
    "icebergWriterCompatV3": _in_step("delta.enableIcebergWriterCompatV3"),
    "redirectReaderWriter-preview": _redirected(
        "delta.redirectReaderWriter-preview", "the rows are elsewhere: name the table they are in"
    ),
    "redirectWriterOnly-preview": _redirected(
        "delta.redirectWriterOnly-preview", "writes go elsewhere: name the table they go to"
    ),
    "variantShredding": _VARIANT,
    "variantShredding-preview": _VARIANT,
    "variantType": _VARIANT,
    "variantType-preview": _VARIANT,
}
