"""The batches of a run, or its earlier commits -> the document that the run ends with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from nightkeep.admission.run_ids import stored_document
from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.model import CommitScope, Committed, Conflicted, Mismatch, Outcome, Run, UnitKey, VersionIdentity
from nightkeep.protocol import OpenTable, Snapshot
from nightkeep.records import LOG_NOTE, CheckStatus, Expectations, Metrics, RunDocument, UnitResult, hold_or_note
from nightkeep.records.failure_outcomes import without_surprise
from nightkeep.running.rewrites.run_summary import Batch, ending_reason, mismatched, published, sizes, unit_results
from nightkeep.running.run_log import RunLog, commits
from nightkeep.surprises import guarded, sentence


def mismatch_document(log: RunLog, ended: Sequence[Batch]) -> RunDocument:
    *before, last = ended
    assert isinstance(last.checked, Mismatch)
    units = (*(unit for batch in before for unit in unit_results(batch)), *mismatched(last.checked))
    reason, evidence = ending_reason(last.checked, last.rewrites), {"evidence": list(last.staged)}
    return log.document(Outcome.MISMATCH, reason, units=units, extra=evidence)


def undermined_document(
    log: RunLog, table: OpenTable, done: Sequence[Committed], units: Sequence[UnitResult] = ()
) -> RunDocument:
    """The document of a commit whose parent was replaced during the commit. Nobody proved the visible version on its
    present parent, so the table is put on hold."""
    wrong = next(commit for commit in done if commit.undermined)
    mine = {(key.partition, key.bucket) for key in wrong.units}
    results = tuple(
        replace(unit, outcome=Outcome.MISMATCH, reason=wrong.undermined)
        if (unit.partition, unit.bucket) in mine
        else unit
        for unit in units
    )
    document = log.document(
        Outcome.MISMATCH,
        f"published version {wrong.version}, but {wrong.undermined}; nothing was deleted; on hold",
        units=results,
        go_back=_way_back(table, wrong),
        **commits(done),
        expectations=Expectations(CheckStatus.SKIPPED, reason=wrong.undermined),
    )
    return hold_or_note(log.order.reports, document)


def _way_back(table: OpenTable, wrong: Committed) -> str | None:
    """The statement that goes back to the version below. None if it cannot be looked up: the hold comes first."""

    def statement() -> str | None:
        below = (version for version in range(wrong.parent_version, 0, -1) if table.digest(version) is not None)
        before = next(below, None)
        return None if before is None else table.commits.rollback(before)

    return guarded(statement, lambda _: None, f"the way back from version {wrong.version}")


def end_run(
    log: RunLog, table: OpenTable, base: Snapshot, ended: Sequence[Batch], run: Run, *, scope: CommitScope
) -> RunDocument:
    units = tuple(unit for batch in ended for unit in unit_results(batch))
    lost, done = [unit for unit in units if unit.outcome is Outcome.CONFLICTED], published(ended)
    if not done:
        return log.document(Outcome.CONFLICTED, _why_lost(ended, scope), units=units)
    # Units may be lost to another attempt of this run. Its commits must be checked too.
    extra = commits(_with_rivals(done, table.commits.committed(run)) if lost else done)
    outcome = Outcome.worst(unit.outcome for unit in units)
    reason = f"{len(lost)} of {len(units)} units lost a race; the next run plans them again" if lost else None
    try:
        after = table.snapshot(done[-1].version)
    except MissingFile:
        gone = f"published version {done[-1].version} is gone already: expired or rolled back"
        return log.document(outcome, "; ".join(filter(None, [reason, gone])), units=units, **extra)
    _settle(log, table, done[-1].version, run)
    if scope is CommitScope.WHOLE_PLAN:
        extra["go_back"] = table.commits.rollback(done[0].parent_version)
    touched = [key for commit in done for key in commit.units]
    metrics = sizes(after.sizes, after, log.facts["metrics"])
    metrics = replace(metrics, extra={**metrics.extra, **_layout(table, base, after, touched)})
    return log.document(outcome, reason, units=units, metrics=metrics, **extra)


def _settle(log: RunLog, table: OpenTable, version: int, run: Run) -> None:
    """Do what the published version calls for. Its failure is a sentence in the document."""
    afterwards = table.commits.afterwards
    if afterwards is None:
        return
    with log.stage("publish"):
        note = guarded(
            lambda: afterwards(version, run),
            lambda failure: f"no checkpoint of version {version} was written: {sentence(failure)}",
            f"the log of version {version}",
        )
    log.extra |= {} if note is None else {LOG_NOTE: note}


def _layout(table: OpenTable, base: Snapshot, after: Snapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    """Figures of the layout. They are made of optional statistics: what cannot be read of these is no failure."""
    return guarded(
        lambda: table.layout_metrics(base, after, touched),
        lambda failure: {"unmeasured": f"layout: {sentence(failure)}"},
        f"layout of version {after.version}",
    )


def _with_rivals(done: Sequence[Committed], every: Sequence[Committed]) -> Sequence[Committed]:
    """All commits of the run: first those that no longer exist, then the others, each oldest first."""
    mine, there = {commit.version: commit for commit in done}, {commit.version for commit in every}
    return [
        *(commit for commit in done if commit.version not in there),
        *(mine.get(commit.version, commit) for commit in every),
    ]


def _why_lost(ended: Sequence[Batch], scope: CommitScope) -> str:
    early = [batch.published for batch in ended if batch.checked is None]
    reasons = {reason for lost in early if isinstance(lost, Conflicted) for _, reason in lost.units}
    return "; ".join([*sorted(reasons), _NEXT[scope]])


_NEXT: Final = {
    CommitScope.EACH_UNIT: "lost a race for every unit; the next run plans again",
    CommitScope.WHOLE_PLAN: (
        "lost a race, and no row was changed: a change of rows is one commit or none; the same run, started again, "
        "does all of it"
    ),
}


def published_document(log: RunLog, table: OpenTable, earlier: Sequence[Committed]) -> RunDocument:
    """The document of a run whose earlier attempt died between commit and report. What it published was proven."""
    log.facts.clear()
    versions = [own.version for own in earlier]
    # A missing or unreadable document is ignored: the table itself states what was published.
    with suppress(CorruptMetadata):
        document = stored_document(log.order, log.table)
        if document is not None and {*versions} <= {commit.version for commit in document.commits}:
            # Where a try failed after the check, another check has the last word.
            failed_later = without_surprise(document.reason) != document.reason
            return replace(document, expectations=Expectations()) if failed_later else document
    log.facts |= {"base_version": earlier[0].parent_version, "base_identity": _text(earlier[0].parent)}
    log.facts |= commits(earlier)
    if any(own.undermined for own in earlier):
        return undermined_document(log, table, earlier)
    after = table.snapshot(versions[-1])
    named = f"version {versions[0]} was" if len(versions) == 1 else f"versions {', '.join(map(str, versions))} were"
    return log.document(
        Outcome.VERIFIED,
        f"{named} published by an earlier attempt of this run",
        metrics=sizes(after.sizes, after, Metrics()),
    )


def _text(identity: VersionIdentity | None) -> str | None:
    return None if identity is None else str(identity)
