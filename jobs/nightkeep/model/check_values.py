"""What a check on Spark is asked, and what it compares. Values alone: who asks starts no Spark for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nightkeep.model import Address, Fingerprint, VersionIdentity, View


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Which version to check, the latest by default, against which, its parent by default.

    A format whose versions only their parents can be compared with has the parent for `base_version`, whatever it is.

    `byte_budget` bounds the data files that are read; above it a sample of units is.
    `commit_user` is what the run's own commit calls itself: if the version is another's, ours was replaced. So it was
    where a version that is read is another than the one that is `known` by its number.
    """

    address: Address
    version: int | None = None
    base_version: int | None = None
    byte_budget: int | None = None
    commit_user: str | None = None
    known: tuple[VersionIdentity, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptRow:
    """What is left after files went: one view of a version's rows before and after, of which metadata tells
    `expected_rows`; or files of retained versions that are `absent`, `resized` or, once opened, `unreadable`."""

    unit: str
    comparison: str
    base_rows: int = 0
    candidate_rows: int = 0
    base_hash_a: str = ""
    candidate_hash_a: str = ""
    base_hash_b: str = ""
    candidate_hash_b: str = ""
    expected_rows: int = 0
    absent: int = 0
    resized: int = 0
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Content:
    """What one version holds, in total, by view. `coverage` says how much of it was looked at.

    `rows` are those that metadata tells, by view; a view is missing where it cannot.
    """

    version: int
    views: Mapping[View, Fingerprint]
    coverage: str
    rows: Mapping[View, int] = field(default_factory=dict)
