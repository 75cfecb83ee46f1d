"""Names and identities in all stages and documents: outcomes, tables, units, versions, fingerprints."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, StrEnum

_U64 = (1 << 64) - 1
_FINGERPRINT = re.compile(r"(\d+):([0-9a-f]{16}):([0-9a-f]{16})")
_VERSION_IDENTITY = re.compile(r"(-?\d{1,20}):([0-9a-f]*):([0-9a-f]*)")


class Outcome(StrEnum):
    """How an operation on a table ended, ordered from mildest to worst."""

    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    VERIFIED = "verified"
    REFUSED = "refused"
    CONFLICTED = "conflicted"
    MISMATCH = "mismatch"
    FAILED = "failed"

    @property
    def exit_status(self) -> int:
        return _EXIT_STATUS.get(self, 0)

    @staticmethod
    def worst(outcomes: Iterable[Outcome]) -> Outcome:
        """The worst of `outcomes`; `unchanged` if there are none."""
        order = list(Outcome)
        return max(outcomes, key=order.index, default=Outcome.UNCHANGED)


_EXIT_STATUS = {Outcome.FAILED: 1, Outcome.REFUSED: 3, Outcome.CONFLICTED: 4, Outcome.MISMATCH: 5}


class VerifyLevel(StrEnum):
    """How much the gate hashes: every row of a touched unit, or the rows that moved."""

    FULL = "full"
    TOUCHED = "touched"


class View(Enum):
    """Which rows a scan yields."""

    MERGED = "merge-on-read"
    """Every committed row, with deletes and newer versions of rows applied by merging."""
    RAW = "raw"
    """The rows of data files that deletion vectors do not delete, nothing merged. A published reader sees these."""


class Curve(StrEnum):
    """The curve along which rows are sorted. With one column either curve is a plain sort."""

    Z = "z-order"
    HILBERT = "hilbert"


@dataclass(frozen=True, slots=True)
class Address:
    """A table: `format:location`, called `name` in reports and policies."""

    format: str
    location: str
    name: str

    def __str__(self) -> str:
        return f"{self.format}:{self.location}"

    @property
    def branch(self) -> str:
        """What follows `$branch_` in the location; empty for the main branch. The format decides whether it has one."""
        name = self.location.rpartition("$branch_")[2] if "$branch_" in self.location else ""
        return "" if name == "main" else name


@dataclass(frozen=True, slots=True, order=True)
class UnitKey:
    """The identity of a unit: a partition (`dt=2026-01-01`, or empty), and a bucket if the table has buckets."""

    partition: str
    bucket: int | None = None

    def __str__(self) -> str:
        parts = [self.partition] if self.partition else []
        parts += [f"bucket-{self.bucket}"] if self.bucket is not None else []
        return "/".join(parts) or "table"


def digest_of(*parts: bytes | tuple[bytes, ...]) -> str:
    """A digest of these parts in this order. The boundaries between parts count, those between a tuple's pieces not."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        pieces = (part,) if isinstance(part, bytes) else part
        digest.update(sum(map(len, pieces)).to_bytes(8, "big"))
        for piece in pieces:
            digest.update(piece)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class VersionIdentity:
    """The identity of a version. A number alone is not enough: a rollback, or a new table, uses numbers again.

    `commit` is a digest of the bytes that made the version. `content` is a digest of the files that these refer to;
    empty if the format has none, or if they were not read. Equal identities mean the same version.
    """

    version: int
    commit: str
    content: str = ""

    def __str__(self) -> str:
        return f"{self.version}:{self.commit}:{self.content}"

    def agrees(self, other: VersionIdentity) -> bool:
        """Whether both may be the same version. `content` is compared only if both have it."""
        same = (self.version, self.commit) == (other.version, other.commit)
        return same and (self.content == other.content or "" in (self.content, other.content))

    @staticmethod
    def parse(text: str) -> VersionIdentity:
        """The inverse of str(). Raises ValueError."""
        match = _VERSION_IDENTITY.fullmatch(text)
        if match is None:
            raise ValueError(f"identity of a version {text!r:.80}, expected NUMBER:HEX:HEX")
        return VersionIdentity(int(match[1]), match[2], match[3])


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The content of a multiset of rows, in any order: a count and two independent 64-bit sums of row hashes."""

    rows: int = 0
    sum_a: int = 0
    sum_b: int = 0

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.rows + other.rows, (self.sum_a + other.sum_a) & _U64, (self.sum_b + other.sum_b) & _U64)

    def __sub__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint(self.rows - other.rows, (self.sum_a - other.sum_a) & _U64, (self.sum_b - other.sum_b) & _U64)

    def __str__(self) -> str:
        return f"{self.rows}:{self.sum_a:016x}:{self.sum_b:016x}"

    @staticmethod
    def parse(text: str) -> Fingerprint:
        """The inverse of str(). Raises ValueError."""
        match = _FINGERPRINT.fullmatch(text)
        if match is None:
            raise ValueError(f"fingerprint {text!r}, expected ROWS:HEX:HEX with 16 digits in each sum")
        return Fingerprint(int(match[1]), int(match[2], 16), int(match[3], 16))
