"""What an audit found of a commit, and of a unit of it. Values only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from nightkeep.model import Fingerprint, UnitKey
from nightkeep.protocol.past import PastCommit
from nightkeep.records.check_report import Difference


class Verdict(StrEnum):
    """How a commit or a unit was judged, from mildest to worst."""

    PROVEN = "proven"
    """Rows before equal rows after."""
    CONSISTENT = "consistent"
    """A commit that changes rows, of which metadata contradicts nothing."""
    NOT_PROVABLE = "not provable"
    UNSOUND = "unsound"
    """Metadata contradicts itself or the files."""
    DIFFERS = "differs"

    @staticmethod
    def worst(verdicts: Iterable[Verdict]) -> Verdict:
        """The worst of `verdicts`; `proven` if there are none."""
        order = list(Verdict)
        return max(verdicts, key=order.index, default=Verdict.PROVEN)


@dataclass(frozen=True, slots=True)
class UnitVerdict:
    """One unit of one commit, or of a chain of commits. Fingerprints are of the rows that moved: rows at the same place
    of the same file are equal and are not read.

    `doubled`: how many of the extra rows the version before has as well. `bytes` were read of both sides.
    """

    key: UnitKey
    verdict: Verdict
    before: Fingerprint | None = None
    after: Fingerprint | None = None
    why: str | None = None
    difference: Difference = field(default_factory=Difference)
    doubled: int = 0
    bytes: int = 0
    modulo: str | None = None


@dataclass(frozen=True, slots=True)
class CommitVerdict:
    """A commit with the verdicts of the units that it touched. `base` is the version that it was compared with."""

    commit: PastCommit
    verdict: Verdict
    base: int | None = None
    units: tuple[UnitVerdict, ...] = ()
    why: str | None = None

    @property
    def missing(self) -> int:
        return sum(unit.difference.missing_count for unit in self.units)

    @property
    def extra(self) -> int:
        return sum(unit.difference.extra_count for unit in self.units)

    @property
    def doubled(self) -> int:
        return sum(unit.doubled for unit in self.units)

    @property
    def reason(self) -> str | None:
        """Why it was judged so, by the commit or by the first of its units that explains it."""
        units = (unit.why for unit in self.units if unit.verdict is self.verdict and unit.why)
        return self.why or next(units, None)

    def __str__(self) -> str:
        if self.verdict is Verdict.DIFFERS:
            counts = f"{self.missing} rows missing, {self.extra} extra, {self.doubled} of them doubled"
            return f"{self.commit}, differs from version {self.base}: {counts}"
        return f"{self.commit}: {self.verdict}" + (f": {self.reason}" if self.reason else "")
