"""The domain delta.clustering of a version -> the columns that the table is clustered by, and who clustered a file.

PROTOCOL.md, "Clustered Table". Whoever clusters a file states its name in the file's `clusteringProvider`. A file that
carries another name is left to its provider. Every new file has statistics of the clustering columns.
"""

from __future__ import annotations

from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.formats.delta.metadata.actions import Raw, parse_object
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.feature_use import CLUSTERING, Domains
from nightkeep.formats.delta.metadata.features import supported

FEATURE: Final = "clustering"
PROVIDER: Final = "nightkeep"
"""The name that files which we cluster carry."""

Path = tuple[str, ...]


def stated_columns(protocol: Raw, domains: Domains) -> tuple[Path, ...]:
    """The clustering columns, as paths of physical names; none for a table that is not clustered, or no longer.

    delta-spark writes a path as a list of names, the protocol's example as one name. Raises CorruptMetadata.
    """
    domain = domains.get(CLUSTERING)
    if domain is None or FEATURE not in supported(protocol):
        return ()
    subject = f"domain {CLUSTERING}"
    columns = parse_object(str(domain.get("configuration")), subject=subject).get("clusteringColumns")
    if not isinstance(columns, list):
        raise CorruptMetadata(subject, "clusteringColumns, a list of columns", repr(columns))
    return tuple(_path(column, subject) for column in columns)


def known_columns(protocol: Raw, domains: Domains) -> tuple[Path, ...]:
    """As `stated_columns`; none where the domain cannot be understood, which concerns no reader of rows."""
    try:
        return stated_columns(protocol, domains)
    except CorruptMetadata:
        return ()


def provider_of(file: DeltaDataFile) -> str | None:
    """Who clustered the file; None if nobody did."""
    provider = file.raw.get("clusteringProvider")
    return None if provider is None else str(provider)


def is_of_others(file: DeltaDataFile) -> bool:
    """Whether another provider clustered the file, so that only that one may cluster it again."""
    return provider_of(file) not in (None, PROVIDER)


def _path(column: object, subject: str) -> Path:
    names = [column] if isinstance(column, str) else column
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise CorruptMetadata(subject, "a column as a list of names", repr(column))
    return tuple(map(str, names))
