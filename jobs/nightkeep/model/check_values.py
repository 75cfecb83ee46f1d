"""The request to a check on Spark, and the values that it compares. Importing them starts no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from nightkeep.model import Address, Fingerprint, VersionIdentity, View


class Evidence(StrEnum):
    """What a document holds of rows that differ."""

    KEYS = "keys"
    """Keyed hashes of their keys, and the columns that differ."""
    ROWS = "rows"
    """The rows."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Which version to check (by default the latest), and which version to compare it with (by default its parent).

    `base_version` is ignored for formats whose versions can be compared only with their parents.
    `byte_budget` limits the data files that are read; above it a sample of units is read.
    `join_budget`: rows of units of so many bytes, at least of one unit, are joined even where their hashes agree; None:
    of none.
    `keys_budget`: keys are counted in units of so many bytes, at least in one unit; None: in all that are read.
    `commit_user` is the committer's name in the run's own commit. If the version has another committer, our version was
    replaced. The same holds if a version that is read differs from the one in `known` with its number.
    `evidence`: what the report holds of rows that differ. `keys`: columns that no two rows of a unit are to share;
    without them, those that the table declares.
    """

    address: Address
    version: int | None = None
    base_version: int | None = None
    byte_budget: int | None = None
    join_budget: int | None = None
    keys_budget: int | None = None
    commit_user: str | None = None
    known: tuple[VersionIdentity, ...] = ()
    evidence: Evidence = Evidence.KEYS
    keys: tuple[str, ...] = ()


class ReaderName(StrEnum):
    """Engines that can be asked for a second reading, by the name of their package."""

    DELTALAKE = "deltalake"
    DUCKDB = "duckdb"
    PYICEBERG = "pyiceberg"
    PYPAIMON = "pypaimon"


READS: Final[Mapping[ReaderName, tuple[str, ...]]] = {
    ReaderName.DELTALAKE: ("delta",),
    ReaderName.DUCKDB: ("delta", "iceberg"),
    ReaderName.PYICEBERG: ("iceberg",),
    ReaderName.PYPAIMON: ("paimon",),
}
"""The formats of each engine."""


@dataclass(frozen=True, slots=True)
class KeptRow:
    """The comparison after a removal of files.

    Either one view of a version's rows before and after, with the `expected_rows` of metadata; or the numbers of files
    of retained versions that are `absent`, `resized`, or `unreadable` when opened. What was not compared is None."""

    unit: str
    comparison: str
    base_rows: int | None = None
    candidate_rows: int | None = None
    base_hash_a: str | None = None
    candidate_hash_a: str | None = None
    base_hash_b: str | None = None
    candidate_hash_b: str | None = None
    expected_rows: int | None = None
    absent: int | None = None
    resized: int | None = None
    unreadable: int | None = None


@dataclass(frozen=True, slots=True)
class AuditedRow:
    """What an audit found of a unit of a commit, of a commit, or of the table: counts of what is wrong, None where it
    was not looked at. The hashes are those of the rows that moved."""

    unit: str
    comparison: str
    base_rows: int | None = None
    candidate_rows: int | None = None
    base_hash_a: str | None = None
    candidate_hash_a: str | None = None
    base_hash_b: str | None = None
    candidate_hash_b: str | None = None
    differing: int | None = None
    contradicted: int | None = None
    vanished: int | None = None
    absent: int | None = None
    resized: int | None = None
    unreadable: int | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The fingerprint of one version, by view. `coverage` states how much of the version was read.

    `rows`: the row counts by metadata, by view; without the views for which metadata does not state one.
    """

    version: int
    views: Mapping[View, Fingerprint]
    coverage: str
    rows: Mapping[View, int] = field(default_factory=dict)
