"""A table -> the commits of all writers judged, its files looked for -> a document. Writes nothing to the table.

The commits after the last audit are read, from metadata alone. Those that state that they keep rows are compared by
content, in chains (`proving`). Of the others, metadata is held against itself. Versions of the last audit must still be
in the history (`history`). The document is stored first, then the mark of this audit is kept with the reports: what was
not reached is for the next one, and so is what a mark that could not be kept leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec

from nightkeep.admission.reasons import Case, reason_to_skip
from nightkeep.auditing.budget import UnitBudget, left_of
from nightkeep.auditing.chains import chains_of
from nightkeep.auditing.findings import AuditFindings, audit_section, audited_rows, rows_that_differ, unit_results
from nightkeep.auditing.history import AuditRange, audit_range
from nightkeep.auditing.proving import OVER_BUDGET, Prover
from nightkeep.auditing.verdicts import CommitVerdict, Verdict
from nightkeep.errors import RefusedTable
from nightkeep.formats import open_table
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import Evidence
from nightkeep.protocol import OpenTable, Snapshot, Unit
from nightkeep.protocol.past import FileSample, PastCommit, PastReading, RowClaim
from nightkeep.protocol.table_files import Retention
from nightkeep.records import CheckStatus, Expectations, ExpectationSummary, RunDocument, hold_or_note, secure
from nightkeep.records.audit_marks import AuditedCommit, AuditMark, audit_mark, keep_audit_mark, latest
from nightkeep.records.row_values import keep_values
from nightkeep.retention.file_check import FileCheck, check_files
from nightkeep.retention.kept_versions import retained_files
from nightkeep.retention.orphans.growing_sets import sets_of
from nightkeep.running.run_log import RunLog
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline


def audit_table(log: RunLog, case: Case, *, engine: Engine) -> RunDocument:
    """Audit the table by the order. Raises RefusedTable for a format whose commits are not read, EvidenceError for
    metadata that cannot be read, and for reports that cannot be written."""
    waiting = reason_to_skip(case)
    if waiting is not None:
        return log.document(Outcome.SKIPPED, waiting)
    table = open_table(log.policy.address)
    if table.never_written():
        return log.document(Outcome.UNCHANGED, "nothing was ever written to it")
    log.facts["table_id"] = table.description().id
    mark = audit_mark(log.order.reports, log.table)
    left = left_of(log)
    if left.lacks is not None:
        return log.document(Outcome.SKIPPED, f"{left.lacks}; {_last_audited(mark)}")
    with left.spending() as budget:
        with log.stage("audit"):
            past = _past(table)
            ranged = audit_range(table, past, log.order.audit, mark, now_ms=_now_ms(log))
            findings = _judged(log, table, past, ranged, budget)
        if _looks_for_files(log, mark):
            with log.stage("files"):
                findings = replace(findings, files=_files(log, table, engine))
    document = _document(log, findings)
    # Before the mark moves: a retry after a crash in between finds what was found, and not that nothing is new.
    secure(document, log.order.reports)
    with suppress(OSError):
        _keep_mark(log, mark, findings)
    return document


def _past(table: OpenTable) -> PastReading[Snapshot, Unit]:
    if table.past is None:
        missing = f"operation {Operation.AUDIT} does not exist for {table.address.format} tables"
        raise RefusedTable(table.address.name, missing, "delta, iceberg and paimon tables are audited")
    return table.past


def _last_audited(mark: AuditMark | None) -> str:
    return "never audited" if mark is None else f"last audited at {mark.audited_at:%Y-%m-%d %H:%M} UTC"


def _now_ms(log: RunLog) -> int:
    return int(log.started.timestamp() * 1000)


def _judged(
    log: RunLog, table: OpenTable, past: PastReading[Snapshot, Unit], ranged: AuditRange, budget: UnitBudget
) -> AuditFindings:
    """The findings on the commits, as far as the budget goes."""
    prover = Prover(table, past, inline, budget, log.policy.settings.task_memory)
    proven = {each.commit.version: each for chain in chains_of(ranged.commits) for each in prover.judge(chain)}
    judged = tuple(_with_faults(commit, proven.get(commit.version)) for commit in ranged.commits)
    reached = _reached(judged)
    opened = past.file_faults([each.commit.version for each in judged[:reached]], FileSample(log.order.run_id))
    sound = tuple(_contradicted(each, opened.get(each.commit.version, ())) for each in judged[:reached])
    return AuditFindings(sound, ranged.vanished, ranged.cut, left=len(judged) - reached)


def _with_faults(commit: PastCommit, proven: CommitVerdict | None) -> CommitVerdict:
    """The verdict on rows together with what metadata contradicts."""
    return _contradicted(proven or CommitVerdict(commit, Verdict.CONSISTENT), commit.faults)


def _contradicted(judged: CommitVerdict, faults: Sequence[str]) -> CommitVerdict:
    if not faults:
        return judged
    worst = Verdict.worst([judged.verdict, Verdict.UNSOUND])
    return replace(judged, verdict=worst, why="; ".join(filter(None, [judged.reason, *faults])))


def _reached(judged: Sequence[CommitVerdict]) -> int:
    """How many commits the budget reached. What comes after is for the next audit. A commit that is over the budget
    alone is not left: it would be over it again."""
    left = (place for place, each in enumerate(judged) if any(unit.why == OVER_BUDGET for unit in each.units))
    first = next(left, len(judged))
    has_any = any(each.verdict is Verdict.PROVEN or each.units for each in judged[:first])
    return first if has_any else min(first + 1, len(judged))


def _looks_for_files(log: RunLog, mark: AuditMark | None) -> bool:
    every = log.policy.settings.audit.files
    if log.order.audit.files or every is None:
        return log.order.audit.files
    last = None if mark is None else mark.files_at
    return last is None or log.started - last >= timedelta(milliseconds=every)


def _files(log: RunLog, table: OpenTable, engine: Engine) -> FileCheck:
    """Every file of every retained version, by listing; and the footers of a sample."""
    files = retained_files(table, Operation.AUDIT)
    keeps = Retention(_now_ms(log), log.policy.settings.sweep.older_than)
    share = log.policy.settings.audit.sample
    return check_files(files, keeps, sets=partial(sets_of, engine), salt=log.order.run_id, share=share)


def _document(log: RunLog, findings: AuditFindings) -> RunDocument:
    settings, outcome = log.policy.settings, findings.outcome
    log.extra["audit"] = audit_section(findings)
    wrong = findings.wrong
    reason = findings.coverage if not wrong else "; ".join([*wrong[:3], *_more(wrong), findings.coverage])
    document = log.document(
        outcome,
        reason,
        base_version=findings.commits[0].commit.parent if findings.commits else None,
        units=unit_results(findings.commits),
        expectations=_expectations(findings),
    )
    held = outcome is Outcome.MISMATCH and settings.audit.hold
    document = hold_or_note(log.order.reports, document) if held else document
    shown = rows_that_differ(findings.commits) if settings.check.evidence is Evidence.ROWS else ()
    return keep_values(document, log.order.reports, differences=shown)


def _more(wrong: Sequence[str]) -> Iterator[str]:
    if len(wrong) > 3:
        yield f"{len(wrong) - 3} more"


def _expectations(findings: AuditFindings) -> Expectations:
    """The same facts as results of Great Expectations, where it is installed: an audit needs it for nothing else."""
    if not findings.commits and findings.files is None and not findings.vanished:
        return Expectations(CheckStatus.NOT_RUN, coverage=findings.coverage, reason="nothing was audited")
    if find_spec("great_expectations") is None:
        return Expectations(
            CheckStatus.NOT_RUN, coverage=findings.coverage, reason="great-expectations is not installed"
        )
    from nightkeep.checking.expectations import expect_audited  # noqa: PLC0415 -- Great Expectations

    results, _ = expect_audited([*audited_rows(findings)])
    statuses = {result.status for result in results}
    worst = next((s for s in (CheckStatus.FAILED, CheckStatus.ERRORED) if s in statuses), CheckStatus.PASSED)
    summaries = tuple(ExpectationSummary(each.name, each.status, each.detail) for each in results)
    return Expectations(worst, summaries, coverage=findings.coverage)


def _keep_mark(log: RunLog, mark: AuditMark | None, findings: AuditFindings) -> None:
    """Move the mark to the last commit that was reached. An audit of an earlier range does not move it back."""
    judged = [_audited(each.commit) for each in findings.commits]
    known = () if mark is None else mark.commits
    gone = {(each.commit.version, each.commit.digest) for each in findings.vanished}
    kept = [each for each in known if (each.version, each.digest) not in gone]
    seen = {(each.version, each.digest) for each in kept}
    merged = [*kept, *(each for each in judged if (each.version, each.digest) not in seen)]
    if not merged:
        return
    now = datetime.now(UTC)
    files_at = now if findings.files is not None else None if mark is None else mark.files_at
    keep_audit_mark(
        log.order.reports, AuditMark(table=log.table, commits=latest(merged), audited_at=now, files_at=files_at)
    )


def _audited(commit: PastCommit) -> AuditedCommit:
    return AuditedCommit(
        version=commit.version,
        digest=commit.digest,
        kind=commit.kind,
        author=commit.author,
        time_ms=commit.time_ms,
        rows=commit.rows,
        keeps_rows=commit.claim is RowClaim.KEEPS_ROWS,
    )
