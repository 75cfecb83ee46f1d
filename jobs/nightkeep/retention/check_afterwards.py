"""The document of a removal -> the same document with the result of a check. A table that lost rows is put on hold."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from nightkeep.admission.order import Order
from nightkeep.checking import on_spark
from nightkeep.errors import MissingFile, NightkeepError, RefusedTable
from nightkeep.formats import open_table
from nightkeep.model import Fingerprint, Outcome, View
from nightkeep.model.check_values import Content, KeptRow
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy
from nightkeep.records import CheckStatus, Expectations, ExpectationSummary, RunDocument, UnitResult, hold_or_note
from nightkeep.records import check_report as checks
from nightkeep.records.failure_outcomes import AFTERWARDS_UNFINISHED, with_reason, with_surprise, without_surprise
from nightkeep.retention.file_check import FileCheck, check_files
from nightkeep.retention.kept_versions import retained_files, retention_settings
from nightkeep.retention.orphans.growing_sets import sets_of
from nightkeep.running.run_log import RunLog
from nightkeep.spark.engine import Engine

_OUTCOMES = {CheckStatus.FAILED: Outcome.MISMATCH, CheckStatus.ERRORED: Outcome.FAILED}


@dataclass(frozen=True, slots=True)
class _Opinion:
    """The findings. `results` come from Great Expectations; `why` is the reason that something was not checked."""

    present: FileCheck
    results: Sequence[checks.ExpectationResult]
    coverage: str
    why: str | None
    after: Content | None


def remember_content(log: RunLog, engine: Engine) -> None:
    """Record the fingerprints of the latest version in the document, for the comparison after the removal.

    Errors of the read are raised, except RefusedTable: no file may be removed from a table that cannot be read.
    """
    if not log.order.checked(log.policy):
        return
    if log.earlier is not None and log.earlier.units:
        # The earlier attempt recorded these before it removed any file.
        log.facts["units"] = log.earlier.units
        return
    with log.stage("before"):
        try:
            content = on_spark.content(log.policy.address, engine, byte_budget=log.policy.settings.check.byte_budget)
        except RefusedTable as refusal:
            log.extra["not_compared"] = str(refusal)
            return
    log.facts["units"] = tuple(
        UnitResult(
            partition="",
            bucket=None,
            outcome=Outcome.SKIPPED,
            rows=held.rows,
            base_fingerprint=str(held),
            extra={"view": view.value, "version": content.version},
        )
        for view, held in content.views.items()
    )


def check_after_removal(document: RunDocument, policy: EffectivePolicy, order: Order, engine: Engine) -> RunDocument:
    """Check that every file of every retained version exists and that the latest version holds the same rows.

    A missing file or a difference puts the table on hold; if the files are in quarantine, the reason names the command
    that restores them. If the check itself fails, the run fails and the table is not put on hold.
    """
    started = time.perf_counter()
    try:
        opinion = _opinion(document, policy, order, engine)
        expectations = _expectations(opinion)
        document = replace(document, units=_units(document, opinion))
    except (NightkeepError, OSError) as failure:
        opinion, expectations = None, Expectations(CheckStatus.ERRORED, reason=f"{type(failure).__name__}: {failure}")
    seconds = {**document.metrics.seconds, "check": time.perf_counter() - started}
    checked = replace(document, expectations=expectations, metrics=replace(document.metrics, seconds=seconds))
    if opinion is not None and expectations.status is CheckStatus.FAILED:
        return _held(checked, opinion, order.reports)
    outcome = Outcome.worst([_acted_outcome(document), _OUTCOMES.get(expectations.status, Outcome.VERIFIED)])
    if expectations.status is not CheckStatus.ERRORED:
        return replace(checked, outcome=outcome, reason=without_surprise(document.reason))
    expectations = with_reason(expectations)
    reason = with_surprise(document.reason, AFTERWARDS_UNFINISHED, str(expectations.reason))
    return replace(checked, outcome=outcome, reason=reason, expectations=expectations)


def _opinion(document: RunDocument, policy: EffectivePolicy, order: Order, engine: Engine) -> _Opinion:
    before = _before(document)
    table = retained_files(open_table(policy.address), order.operation)
    keeps = retention_settings(policy, order, now_ms=order.attempt().now_ms)
    present = check_files(table, keeps, sets=partial(sets_of, engine), salt=f"{document.run_id}")
    after, why = None, None
    # With a file missing, reading the table would only fail on that file.
    if not present.faults:
        after, why = _after(policy, before, engine)
    files = KeptRow(
        unit="table",
        comparison=f"{present.roots} retained versions",
        absent=present.missing,
        resized=present.resized,
        unreadable=len(present.unreadable),
    )
    results = on_spark.judge(before, after, files)
    coverage = "; ".join([str(present), *([] if after is None else [after.coverage])])
    return _Opinion(present, results, coverage, why, after)


def _before(document: RunDocument) -> Content | None:
    """The content that `remember_content` recorded; None if it recorded none."""
    units = [unit for unit in document.units if unit.base_fingerprint is not None]
    if not units:
        return None
    views = {View(unit.extra["view"]): Fingerprint.parse(str(unit.base_fingerprint)) for unit in units}
    return Content(cast(int, units[0].extra["version"]), views, "")


def _after(policy: EffectivePolicy, before: Content | None, engine: Engine) -> tuple[Content | None, str | None]:
    """The present content of the recorded version, or the reason why it cannot be read."""
    if before is None:
        return None, "what the table held before is not known"
    budget = policy.settings.check.byte_budget
    try:
        content = on_spark.content(policy.address, engine, byte_budget=budget, version=before.version)
    except (RefusedTable, MissingFile) as failure:
        # The file check has just found every file of every retained version, so this version itself has expired.
        return None, str(failure)
    return content, None


def _expectations(opinion: _Opinion) -> Expectations:
    results = tuple(ExpectationSummary(r.name, CheckStatus(r.status), r.detail) for r in opinion.results)
    statuses = {result.status for result in results}
    worst = next((s for s in (CheckStatus.FAILED, CheckStatus.ERRORED) if s in statuses), CheckStatus.PASSED)
    # Something was not checked, so the run is not proven even if all else passed.
    status = CheckStatus.SKIPPED if worst is CheckStatus.PASSED and opinion.why else worst
    wrong = [*opinion.present.examples, *opinion.present.unreadable]
    return Expectations(
        status, results, coverage=opinion.coverage, reason=opinion.why, extra={"files": wrong} if wrong else {}
    )


def _units(document: RunDocument, opinion: _Opinion) -> tuple[UnitResult, ...]:
    if opinion.after is None:
        return document.units
    return tuple(_compared(unit, opinion.after.views[View(unit.extra["view"])]) for unit in document.units)


def _compared(unit: UnitResult, holds: Fingerprint) -> UnitResult:
    equal = unit.base_fingerprint == str(holds)
    outcome = Outcome.VERIFIED if equal else Outcome.MISMATCH
    return replace(unit, outcome=outcome, candidate_fingerprint=str(holds), equal=equal)


def _acted_outcome(document: RunDocument) -> Outcome:
    """How the removal itself ended. The result of an earlier check does not count: a failed check may be repeated."""
    return Outcome.VERIFIED if document.extra.get("finished") else Outcome.FAILED


def _held(document: RunDocument, opinion: _Opinion, reports: str) -> RunDocument:
    failed = [r.expectation for r in document.expectations.results if r.status is CheckStatus.FAILED]
    wrong = [*opinion.present.examples, *opinion.present.unreadable][:5]
    reason = f"after files went, not so: {', '.join(failed)}"
    reason += f" ({'; '.join(wrong)})" if wrong else ""
    back = _way_back(document)
    reason += "; on hold" if back is None else f"; on hold; {back} restores what was quarantined"
    return hold_or_note(reports, replace(document, outcome=Outcome.MISMATCH, reason=reason, go_back=back))


def _way_back(document: RunDocument) -> str | None:
    if document.extra.get("mode") != SweepMode.QUARANTINE or not document.extra.get("quarantine"):
        return None
    return f"nightkeep restore {shlex.quote(document.table)} {shlex.quote(document.run_id)}"
