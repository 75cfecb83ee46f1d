"""Address + SparkSession -> versions of a table as DataFrames of logical rows. No kernel of ours takes part.

Each format has a `spark.view` module that reads metadata on the driver and leaves the rest to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from nightkeep.errors import RefusedTable, UsageError
from nightkeep.model import Address, UnitKey, VersionIdentity, View
from nightkeep.storage import Storage
from nightkeep.storage.hadoop import CONNECTORS, hadoop_root, hadoop_settings


@dataclass(frozen=True, slots=True)
class UnitState:
    """One unit at one version, from metadata alone.

    Two versions with equal `identity` hold the same rows. `rows` are those a published reader should see, None
    where metadata cannot tell. `waiting` are data files a published reader does not see yet. `bytes` is of data
    files.
    """

    identity: Hashable
    bytes: int
    rows: int | None
    waiting: frozenset[str]


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of a table. `touched` are units its commit names; `author` is what the committer called itself.

    `changes_rows` says why its commit may have changed rows, None for one that must not. `rows_told` is what the
    version says that its files hold, `rows_listed` what the files that were found in it hold, each by metadata.
    `deletes`: the condition, in Spark SQL, on the parent's rows that are gone; such a commit changes no other row.
    `identity` tells it from others that had its number, or will.
    """

    number: int
    parent: int
    author: str
    changes_rows: str | None
    units: Mapping[UnitKey, UnitState]
    touched: frozenset[UnitKey]
    rows_told: int
    rows_listed: int
    deletes: str | None = None
    identity: VersionIdentity | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One version, seen one way, `without` some data files, and without rows for which `deleted` is true."""

    version: int
    view: View
    without: frozenset[str] = frozenset()
    deleted: str | None = None


class TableView(Protocol):
    """One table in Spark's eyes. `keys` are key columns within a unit, `published` is the view that readers have.

    `notes` are sentences on what Spark cannot compare exactly.
    """

    @property
    def schema(self) -> T.StructType: ...

    @property
    def keys(self) -> tuple[str, ...]: ...

    @property
    def published(self) -> View: ...

    @property
    def compares_with_parent(self) -> bool:
        """Whether a version holds the rows of the one directly before it and, after an append, of no older one."""

    @property
    def notes(self) -> tuple[str, ...]: ...

    def latest(self) -> int:
        """The number of the newest version. Raises MissingFile where there is none."""

    def version(self, number: int) -> TableVersion | None:
        """One version; None where it does not exist (any more)."""

    def digest(self, number: int) -> str | None:
        """`identity.commit` of what has this number now, as the protocol's `digest`."""

    def rows(self, side: Side, units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        """A row for each row `side` shows: `unit` (its place in `units`), `sound`, then `payload` by name.

        `payload` is evaluated on every stored row, before any shuffle, over the columns named `column(i)` for
        the i-th of `schema`. `sound` is false for a row that the format promises a reader never to meet.
        The version must have been asked for before.
        """

    def misstated(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        """Columns of files whose values are others than their statistics say: files that are new `since`."""


def replaced(known: Sequence[VersionIdentity], *versions: TableVersion) -> str | None:
    """Which of the versions is not the one that is `known` by its number; None where all may be."""
    by_number = {identity.version: identity for identity in known}
    for version in versions:
        expected, found = by_number.get(version.number), version.identity
        if expected is not None and found is not None and not expected.agrees(found):
            return f"version {version.number}: expected {expected}, found {found}: it was replaced after a rollback"
    return None


def gone_meanwhile(relation: TableView, version: TableVersion) -> str | None:
    """Why a version that was read is none of the table's any more; None while it is."""
    now = relation.digest(version.number)
    if version.identity is None or now == version.identity.commit:
        return None
    return f"version {version.number} was {'replaced' if now else 'rolled back or expired'} while it was read"


def column(position: int) -> str:
    """What `payload` calls a column of the schema: table columns may have any name, and names clash."""
    return f"c{position}"


def comparable(value: Column, kind: T.DataType) -> Column:
    """A column whose equality in Spark is that of the formats: zeros of two signs differ, every NaN is one."""
    return value.cast("string") if isinstance(kind, T.FloatType | T.DoubleType) else value


_PATTERNS = re.compile(r"([{}\[\]*?\\])")


def connect(spark: SparkSession, storage: Storage) -> None:
    """Let Spark read files of this store. Raises UsageError where its class path has no connector for it."""
    for name, value in hadoop_settings(storage).items():
        spark.conf.set(name, value)
    scheme = hadoop_root(storage.root).partition(":")[0]
    if scheme not in CONNECTORS:
        return
    connector, context = CONNECTORS[scheme], cast(Any, spark.sparkContext)
    loader = context._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in connector.classes:
        if loader.getResource(f"{name.replace('.', '/')}.class") is None:
            raise UsageError(
                f"{storage.root}: expected {connector.jars} on Spark's class path (spark.jars or "
                f"spark.jars.packages), found no class {name}"
            )


def location(root: str, name: str) -> str:
    """What `spark.read` calls a file of the store with this root: characters of its patterns are escaped."""
    return _PATTERNS.sub(r"\\\1", spelling(root, name))


def spelling(root: str, name: str) -> str:
    """One text for each file of a store, which `spelt` finds again in what Spark calls it."""
    return f"{hadoop_root(root)}/{name}"


def spelt(uri: str) -> str:
    """The `spelling` of `_metadata.file_path`, of which characters are escaped that Spark chooses."""
    return unquote(re.sub("^file:/+", "file:///", uri))


def listed_path(uri: str) -> str:
    """How `_metadata.file_path` has a file of `inputFiles`, which gives local ones two slashes more."""
    return re.sub("^file:/+", "file:/", uri)


_FORMATS = {name: f"nightkeep.formats.{name}.spark.view" for name in ("delta", "iceberg", "paimon")}


def open_view(address: Address, spark: SparkSession) -> TableView:
    """The relation of a table. Raises RefusedTable for a format or a feature Spark cannot stand in for."""
    if address.format not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise RefusedTable(address.name, f"{address.format} tables cannot be read back in Spark", f"we read {known}")
    # By name, so that no format's code is loaded for a table of another.
    relation: TableView = import_module(_FORMATS[address.format]).open_table(address, spark)
    return relation
