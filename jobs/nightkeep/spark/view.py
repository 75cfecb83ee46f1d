"""Address + SparkSession -> versions of a table as DataFrames of logical rows. None of our kernels takes part.

Each format has a module `spark.view` that reads metadata on the driver and leaves the rest to Spark. `formats.views`
opens the view of a table.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from nightkeep.errors import UsageError
from nightkeep.model import UnitKey, VersionIdentity, View
from nightkeep.spark.settings import LISTED_BY_DRIVER, LISTED_BY_TASKS
from nightkeep.storage import Storage
from nightkeep.storage.objects.hadoop import CONNECTORS, HIDDEN, hadoop_root, hadoop_settings


@dataclass(frozen=True, slots=True)
class UnitState:
    """One unit at one version, from metadata only.

    A unit with equal `identity` in two versions has the same rows. `rows`: how many rows a published reader should see,
    None if metadata does not state it. `waiting`: data files that a published reader does not see yet. `bytes`: the
    size of the data files.
    """

    identity: Hashable
    bytes: int
    rows: int | None
    waiting: frozenset[str]


@dataclass(frozen=True, slots=True)
class TableVersion:
    """One version of a table.

    `touched`: the units that its commit names. `author`: the committer's name in the commit.
    `changes_rows`: why its commit may have changed rows; None for a commit that must not.
    `rows_stated`: the row count that the version states, None if it states none. `rows_listed`: the sum of the row
    counts of its files.
    `deletes`: the condition, in Spark SQL, on the rows that the commit deletes; it changes no other row. With `sets`, a
    Spark SQL expression by column, the commit updates these rows instead.
    `expiry_clock`: the time, in milliseconds, by which its commit dropped expired rows; None if it dropped none.
    `identity`: distinguishes the version from others with its number.
    """

    number: int
    parent: int
    author: str
    changes_rows: str | None
    units: Mapping[UnitKey, UnitState]
    touched: frozenset[UnitKey]
    rows_stated: int | None
    rows_listed: int
    deletes: str | None = None
    sets: Mapping[str, str] = field(default_factory=dict)
    expiry_clock: int | None = None
    identity: VersionIdentity | None = None


@dataclass(frozen=True, slots=True)
class Side:
    """One version in one view, `without` some data files, and without the rows for which `deleted` is true; with
    `sets`, these rows are there, with columns set to expressions. Rows that have expired by `expiry_clock` go."""

    version: int
    view: View
    without: frozenset[str] = frozenset()
    deleted: str | None = None
    sets: Mapping[str, str] = field(default_factory=dict)
    expiry_clock: int | None = None


class TableView(Protocol):
    """One table on Spark. `keys`: the key columns within a unit, by which readers merge. `declared_keys`: columns that
    the table declares to identify a row, although nothing enforces it. `published`: the view of readers.

    `notes`: sentences on what Spark cannot compare exactly.
    """

    @property
    def schema(self) -> T.StructType: ...

    @property
    def keys(self) -> tuple[str, ...]: ...

    @property
    def declared_keys(self) -> tuple[str, ...]: ...

    @property
    def published(self) -> View: ...

    @property
    def compares_with_parent(self) -> bool:
        """Whether a version can be compared only with its parent: after an append, it does not have the rows of an
        older version."""

    @property
    def notes(self) -> tuple[str, ...]: ...

    @property
    def silent(self) -> Mapping[str, str]:
        """Facts that no version of this table has, by their names in the check, and why: nothing can fail by them."""

    def latest(self) -> int:
        """The number of the newest version. Raises MissingFile if there is none."""

    def version(self, number: int) -> TableVersion | None:
        """One version; None if it does not exist, or no longer exists."""

    def digest(self, number: int) -> str | None:
        """`identity.commit` of the version that has this number now; as `protocol.Table.digest`."""

    def rows(self, side: Side, units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        """One row for each row that `side` shows: `unit` (its index in `units`), `sound`, then `payload` by name.

        `payload` is evaluated on every stored row, before any shuffle, over columns named `column(i)` for the i-th of
        `schema`. `sound` is false for a row that the format promises a reader never to meet. Where the format promises
        an order of rows, there is also `place`, the number of the row in its unit. Call `version` with this version
        before.
        """

    def shown(self, sides: Sequence[Side], units: Sequence[UnitKey], *, payload: Mapping[str, Column]) -> DataFrame:
        """The rows that at least one of `sides` shows, as `rows` has them, with `shared_files.SHOWN`: bit `n` is set if
        side `n` shows the row. A row at the same place of the same file is read once for all sides, unless a side makes
        rows of several."""

    def misstated(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        """How many columns have values that contradict their statistics, in files that are new `since`: for every unit
        with statistics in such a file."""

    def doubled(self, sides: Sequence[Side], units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        """How many rows, of those that the second of two sides shows, repeat the key of another in a file that both
        sides hold and that the first was not merged with: for every unit with such a file."""

    def unreported(self, version: int, since: int, units: Sequence[UnitKey]) -> Mapping[UnitKey, int]:
        """How many changes a version reports to streaming readers wrongly or not at all, for every unit of a table that
        reports changes. `since` is its parent."""


def replaced(known: Sequence[VersionIdentity], *versions: TableVersion) -> str | None:
    """A message naming a version that differs from the one in `known` with its number; None if there is none."""
    by_number = {identity.version: identity for identity in known}
    for version in versions:
        expected, actual = by_number.get(version.number), version.identity
        if expected is not None and actual is not None and not expected.agrees(actual):
            return f"version {version.number}: expected {expected}, found {actual}: it was replaced after a rollback"
    return None


def gone_meanwhile(relation: TableView, version: TableVersion) -> str | None:
    """Why the table no longer has a version that was read; None if it still has it."""
    now = relation.digest(version.number)
    if version.identity is None or now == version.identity.commit:
        return None
    return f"version {version.number} was {'replaced' if now else 'rolled back or expired'} while it was read"


def column(position: int) -> str:
    """The name of a schema's column in `payload`. Names of table columns are not used, as they may clash."""
    return f"c{position}"


def comparable(value: Column, kind: T.DataType) -> Column:
    """A column that Spark compares as the formats do: -0.0 and 0.0 differ, and all NaN are equal."""
    return value.cast("string") if isinstance(kind, T.FloatType | T.DoubleType) else value


_PATTERNS = re.compile(r"([{}\[\]*?\\])")
_HIDDEN_NAMES = "spark.sql.redaction.options.regex"


def connect(spark: SparkSession, storage: Storage) -> None:
    """Let Spark read files of this store. Raises UsageError if Spark's class path has no connector for it."""
    for name, value in (LISTED_BY_DRIVER if hadoop_root(storage.root).startswith("file:") else LISTED_BY_TASKS).items():
        spark.conf.set(name, value)
    settings = hadoop_settings(storage)
    hidden = spark.conf.get(_HIDDEN_NAMES) or HIDDEN
    if HIDDEN not in hidden and any(re.search(HIDDEN, name) for name in settings):
        spark.conf.set(_HIDDEN_NAMES, f"{hidden}|{HIDDEN}")
    for name, value in settings.items():
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
    """The path of a file for `spark.read`, with the characters of path patterns escaped."""
    return _PATTERNS.sub(r"\\\1", spelling(root, name))


def spelling(root: str, name: str) -> str:
    """A unique text for each file of a store. `spelt` computes the same text from Spark's name of the file."""
    return f"{hadoop_root(root)}/{name}"


def spelt(uri: str) -> str:
    """The `spelling` of a `_metadata.file_path`, in which Spark has escaped some characters."""
    return unquote(re.sub("^file:/+", "file:///", uri))


def listed_path(uri: str) -> str:
    """The `_metadata.file_path` of a file of `inputFiles`, which has two more slashes in local paths."""
    return re.sub("^file:/+", "file:/", uri)
