"""A document of a published version -> the same with the check's findings; a failed check holds the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nightkeep.engine import Engine
from nightkeep.formats import open_table
from nightkeep.model import Outcome, run_token
from nightkeep.policy import EffectivePolicy
from nightkeep.report import CheckStatus, ExpectationResult, Expectations, RunDocument, hold

_OUTCOMES = {CheckStatus.FAILED: Outcome.MISMATCH, CheckStatus.ERRORED: Outcome.FAILED}


def second_opinion(document: RunDocument, policy: EffectivePolicy, reports: str, *, engine: Engine) -> RunDocument:
    """Check the committed version of `document` on Spark and add what was found.

    A version whose content differs puts the table on hold, with the engine's own statement to go back. A check
    that could not be carried out fails the run but holds nothing; a base that has expired skips it.
    """
    checker = engine.checker()
    request = checker.CheckRequest(
        address=policy.address, version=document.committed_version, base_version=document.base_version,
        byte_budget=policy.settings.check.byte_budget,
        commit_user=open_table(policy.address).commit_user(run_token(document.run_id, document.operation)),
    )  # fmt: skip
    found = checker.check(request, spark=engine.spark())
    checked = with_expectations(document, found)
    if found.conflicted:
        reason = f"version {document.committed_version} was replaced by a foreign writer; nothing was deleted"
        return replace(checked, outcome=Outcome.CONFLICTED, reason=reason)
    if checked.expectations.status is CheckStatus.FAILED:
        return _held(checked, policy, reports)
    outcome = published_outcome(document)
    worst = _OUTCOMES.get(checked.expectations.status, outcome)
    return replace(checked, outcome=Outcome.worst([outcome, worst]))


def published_outcome(document: RunDocument) -> Outcome:
    """How the care ended, whatever an earlier check said of it: a check that failed to run may be run again."""
    return Outcome.worst([Outcome.VERIFIED, *(unit.outcome for unit in document.units)])


def with_expectations(document: RunDocument, found: Any) -> RunDocument:
    """The document with a CheckReport as its expectations and its seconds as a stage."""
    results = tuple(
        ExpectationResult(r.name if r.unit is None else f"{r.unit}: {r.name}", CheckStatus(r.status), r.detail)
        for r in found.results
    )
    extra = {"differences": found.to_json()["differences"]} if found.differences else {}
    expectations = Expectations(
        CheckStatus(found.status), results, coverage=found.coverage, reason=found.reason, extra=extra
    )
    seconds = {**document.metrics.seconds, "check": found.seconds}
    return replace(document, expectations=expectations, metrics=replace(document.metrics, seconds=seconds))


def _held(document: RunDocument, policy: EffectivePolicy, reports: str) -> RunDocument:
    table = open_table(policy.address)
    failed = [r.expectation for r in document.expectations.results if r.status is CheckStatus.FAILED]
    held = replace(
        document,
        outcome=Outcome.MISMATCH,
        reason=f"published version {document.committed_version} failed its check: {', '.join(failed)}; on hold",
        go_back=None if document.base_version is None else table.go_back(document.base_version),
    )
    hold(reports, document.table, held)
    return held
