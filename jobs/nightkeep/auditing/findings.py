"""What an audit found -> its document: the outcome, the coverage in one sentence, each commit, and expectations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nightkeep.auditing.history import VanishedVersion
from nightkeep.auditing.verdicts import CommitVerdict, UnitVerdict, Verdict
from nightkeep.model import Fingerprint, Outcome
from nightkeep.model.check_values import AuditedRow
from nightkeep.model.counted import counted
from nightkeep.protocol.past import RowClaim
from nightkeep.records import UnitResult
from nightkeep.records.check_report import UnitDifference
from nightkeep.records.codec import encode
from nightkeep.records.row_evidence import hashed_rows
from nightkeep.retention.file_check import FileCheck

MOST_LISTED: Final = 1_000
"""Commits, and units, that a document lists: the worst first."""
_WRONG: Final = (Verdict.DIFFERS, Verdict.UNSOUND)
_OUTCOMES: Final[Mapping[Verdict, Outcome]] = {
    Verdict.PROVEN: Outcome.VERIFIED,
    Verdict.CONSISTENT: Outcome.VERIFIED,
    Verdict.NOT_PROVABLE: Outcome.SKIPPED,
    Verdict.UNSOUND: Outcome.MISMATCH,
    Verdict.DIFFERS: Outcome.MISMATCH,
}


@dataclass(frozen=True, slots=True)
class AuditFindings:
    """The judged commits, oldest first; versions that vanished; why some commits that were asked for are gone; and the
    look for files, None without one. `left`: commits that were not reached."""

    commits: tuple[CommitVerdict, ...]
    vanished: tuple[VanishedVersion, ...] = ()
    cut: str | None = None
    files: FileCheck | None = None
    left: int = 0

    @property
    def wrong(self) -> tuple[str, ...]:
        """A sentence for each thing that is wrong, the worst first."""
        differing, unsound = ([each for each in self.commits if each.verdict is verdict] for verdict in _WRONG)
        gone = [str(each) for each in self.vanished if not each.rolled_back]
        files = [] if self.files is None or not self.files.faults else [str(self.files)]
        return (*map(str, differing), *map(str, unsound), *gone, *files)

    @property
    def outcome(self) -> Outcome:
        if self.wrong:
            return Outcome.MISMATCH
        if not self.commits and not self.vanished and self.files is None:
            return Outcome.UNCHANGED
        is_proven = any(each.verdict is Verdict.PROVEN for each in self.commits) or self.files is not None
        return Outcome.VERIFIED if is_proven else Outcome.SKIPPED

    @property
    def coverage(self) -> str:
        """How much was proven, and what was not and why."""
        keeping = [each for each in self.commits if each.commit.claim is RowClaim.KEEPS_ROWS]
        proven = sum(each.verdict is Verdict.PROVEN for each in keeping)
        size = sum(unit.bytes for each in keeping for unit in each.units)
        parts = []
        if keeping:
            parts.append(
                f"{proven} of {counted(len(keeping), 'commit')} that keep rows proven, {size:,} bytes of their files"
            )
        others = [each for each in self.commits if each.commit.claim is RowClaim.CHANGES_ROWS]
        if others:
            sound = sum(each.verdict is not Verdict.UNSOUND for each in others)
            parts.append(f"{sound} of {counted(len(others), 'commit')} that change rows agree with their metadata")
        if not self.commits:
            parts.append("no commit since the last audit")
        parts += _unproven(keeping)
        parts += [str(each) for each in self.vanished if each.rolled_back]
        parts += [f"{counted(self.left, 'commit')} left for the next audit"] if self.left else []
        parts += [self.cut] if self.cut else []
        parts += [str(self.files)] if self.files is not None else []
        return "; ".join(parts)


def _unproven(keeping: Sequence[CommitVerdict]) -> Iterator[str]:
    """Why commits are not provable, each reason once with the versions."""
    reasons: dict[str, list[int]] = {}
    for each in keeping:
        if each.verdict is Verdict.NOT_PROVABLE:
            why = each.why or next((unit.why for unit in each.units if unit.why), None) or "it was not compared"
            reasons.setdefault(why, []).append(each.commit.version)
    for why, versions in reasons.items():
        named = (
            f"version {versions[0]}" if len(versions) == 1 else f"{len(versions)} versions, {versions[0]} the first,"
        )
        yield f"{named} not provable: {why}"


def unit_results(commits: Sequence[CommitVerdict]) -> tuple[UnitResult, ...]:
    """A result for each unit of each commit, the worst first. The units of a chain are listed once, at its end."""
    return tuple(_unit_result(each, unit) for each, unit in _listed_units(commits))


def rows_that_differ(commits: Sequence[CommitVerdict]) -> tuple[UnitDifference, ...]:
    """The rows of the same units that differ, with their values."""
    return tuple(
        UnitDifference(unit.key, f"version {each.commit.version} and {each.base}", unit.difference)
        for each, unit in _listed_units(commits)
        if unit.verdict is Verdict.DIFFERS
    )


def _listed_units(commits: Sequence[CommitVerdict]) -> list[tuple[CommitVerdict, UnitVerdict]]:
    listed = [(each, unit) for each in _ends_of_chains(commits) for unit in each.units]
    order = list(Verdict)
    listed.sort(key=lambda pair: -order.index(pair[1].verdict))
    return listed[:MOST_LISTED]


def _ends_of_chains(commits: Sequence[CommitVerdict]) -> Iterator[CommitVerdict]:
    for each, after in zip(commits, (*commits[1:], None), strict=False):
        if after is None or each.base != after.base or each.base is None:
            yield each


def _unit_result(each: CommitVerdict, unit: UnitVerdict) -> UnitResult:
    before, after = unit.before, unit.after
    found: dict[str, object] = {"verdict": unit.verdict, "version": each.commit.version, "base": each.base}
    if unit.verdict is Verdict.DIFFERS:
        found |= {"difference": encode(hashed_rows(unit.difference, ())), "doubled": unit.doubled}
    if unit.modulo:
        found["modulo"] = unit.modulo
    return UnitResult(
        partition=unit.key.partition,
        bucket=unit.key.bucket,
        outcome=_OUTCOMES[unit.verdict],
        reason=None if unit.verdict is Verdict.PROVEN else unit.why,
        rows=None if before is None else before.rows,
        base_fingerprint=None if before is None else str(before),
        candidate_fingerprint=None if after is None else str(after),
        equal=None if before is None or after is None else before == after,
        extra=found,
    )


def audit_section(findings: AuditFindings) -> dict[str, object]:
    """The document's part about commits, the worst first."""
    order = list(Verdict)
    listed = sorted(findings.commits, key=lambda each: -order.index(each.verdict))[:MOST_LISTED]
    return {
        "commits": [_commit(each) for each in listed],
        "commits_total": len(findings.commits),
        "vanished": [
            {"version": each.commit.version, "rolled_back": each.rolled_back, "why": str(each)}
            for each in findings.vanished
        ],
        "cut": findings.cut,
        "left": findings.left,
        "coverage": findings.coverage,
    }


def _commit(each: CommitVerdict) -> dict[str, object]:
    commit = each.commit
    return {
        "version": commit.version,
        "parent_version": commit.parent,
        "base_version": each.base,
        "kind": commit.kind,
        "author": commit.author,
        "time_ms": commit.time_ms,
        "claim": commit.claim,
        "verdict": each.verdict,
        "units": len(each.units),
        "missing": each.missing,
        "extra": each.extra,
        "doubled": each.doubled,
        "why": None if each.verdict is Verdict.PROVEN else each.reason,
    }


def audited_rows(findings: AuditFindings) -> Iterator[AuditedRow]:
    """The facts that Great Expectations judges."""
    for each in _ends_of_chains(findings.commits):
        for unit in each.units:
            if unit.before is not None and unit.after is not None:
                yield _fact(each, unit, unit.before, unit.after)
    for each in findings.commits:
        contradicted = int(each.verdict is Verdict.UNSOUND or bool(each.commit.faults))
        yield AuditedRow("table", f"version {each.commit.version}", contradicted=contradicted)
    lost = sum(not each.rolled_back for each in findings.vanished)
    files = findings.files
    yield AuditedRow(
        "table",
        "history",
        vanished=lost,
        absent=None if files is None else files.missing,
        resized=None if files is None else files.resized,
        unreadable=None if files is None else len(files.unreadable),
    )


def _fact(each: CommitVerdict, unit: UnitVerdict, before: Fingerprint, after: Fingerprint) -> AuditedRow:
    return AuditedRow(
        str(unit.key),
        f"version {each.commit.version} and {each.base}",
        before.rows,
        after.rows,
        f"{before.sum_a:016x}",
        f"{after.sum_a:016x}",
        f"{before.sum_b:016x}",
        f"{after.sum_b:016x}",
        differing=int(before != after),
    )
