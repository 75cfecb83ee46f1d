"""What one check of readiness found: a value that prints as one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict

from nightkeep.errors import brief


class Readiness(StrEnum):
    """How a check ended. `missing`: it is not there at all. `failed`: it is there, and not as it must be.
    `not_applicable`: nothing here needs it, or it cannot be told here."""

    PASSED = "passed"
    MISSING = "missing"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"


class Concern(StrEnum):
    """Whether every run fails without it, or only the runs of some tables."""

    RUN = "run"
    TABLES = "tables"


class FindingJson(TypedDict):
    """A row of `doctor`."""

    check: str
    status: Readiness
    subject: str
    expected: str
    found: str
    remedy: str | None
    concerns: Concern


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One row of `nightkeep doctor`. Its texts have no secrets.

    `may_pass`: a later try may find it passed, as a store that did not answer.
    """

    check: str
    status: Readiness
    subject: str
    expected: str
    found: str
    remedy: str | None = None
    concerns: Concern = Concern.RUN
    may_pass: bool = False

    def __post_init__(self) -> None:
        for name in ("subject", "expected", "found", "remedy"):
            text = getattr(self, name)
            object.__setattr__(self, name, None if text is None else brief(text))

    @property
    def hinders(self) -> bool:
        """Whether a run of something fails for it."""
        return self.status in (Readiness.MISSING, Readiness.FAILED)

    @property
    def stops_every_run(self) -> bool:
        return self.hinders and self.concerns is Concern.RUN

    def to_json(self) -> FindingJson:
        return {
            "check": self.check,
            "status": self.status,
            "subject": self.subject,
            "expected": self.expected,
            "found": self.found,
            "remedy": self.remedy,
            "concerns": self.concerns,
        }

    @staticmethod
    def from_json(value: Mapping[str, str]) -> Finding:
        """The inverse of `to_json`. Raises KeyError or ValueError for anything else."""
        return Finding(
            check=value["check"],
            status=Readiness(value["status"]),
            subject=value["subject"],
            expected=value["expected"],
            found=value["found"],
            remedy=value["remedy"],
            concerns=Concern(value["concerns"]),
        )

    def __str__(self) -> str:
        advice = "" if self.remedy is None else f"; {self.remedy}"
        return f"{self.subject}: expected {self.expected}, found {self.found}{advice}"
