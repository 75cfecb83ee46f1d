"""The document of published versions -> the same document with the check's result. A failed check holds the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from nightkeep.checking import on_spark
from nightkeep.errors import UsageError
from nightkeep.formats import open_table
from nightkeep.model import Outcome, VersionIdentity, run_token
from nightkeep.model.check_values import CheckRequest
from nightkeep.model.run_names import commit_user
from nightkeep.other_readers.agreement import with_other_reader
from nightkeep.other_readers.reader_process import OtherReader
from nightkeep.policy import EffectivePolicy
from nightkeep.records import CheckStatus, Expectations, ExpectationSummary, RunDocument, hold_or_note
from nightkeep.records.check_report import CheckReport, UnitDifference
from nightkeep.records.codec import encode
from nightkeep.records.failure_outcomes import (
    CHECK_UNFINISHED,
    published_outcome,
    with_reason,
    with_surprise,
    without_surprise,
)
from nightkeep.records.own_report import OwnReport, with_own_results
from nightkeep.records.row_evidence import without_rows
from nightkeep.records.row_values import keep_values
from nightkeep.records.validations import Validation, keep_validations, writable
from nightkeep.spark.engine import Engine
from nightkeep.surprises import guarded, sentence

_OUTCOMES = {CheckStatus.FAILED: Outcome.MISMATCH, CheckStatus.ERRORED: Outcome.FAILED}
# A version that was not checked is not proven, even if the others passed.
_WORST_FIRST = (CheckStatus.FAILED, CheckStatus.ERRORED, CheckStatus.SKIPPED, CheckStatus.PASSED)


def check_after_commit(document: RunDocument, policy: EffectivePolicy, reports: str, *, engine: Engine) -> RunDocument:
    """Check every version that `document` lists as committed, on Spark, and add the result.

    A version whose content differs puts the table on hold, with the engine's own statement for a rollback; so does one
    that broke a critical expectation of the policy, which is asked only of content that did not differ. If a check
    could not be carried out, the run fails and the table is not put on hold. If a base has expired, the check is
    skipped.
    """
    checked, found = _judged(document, policy, reports, engine)
    kept = keep_values(checked, reports, differences=found.differences, validations=found.shown)
    return _shared_with_team(kept, [*found.validations, *(found.shown or found.own)], policy)


@dataclass(slots=True)
class _Found:
    """What the parts of the check found. `differences` are those with rows; `validations` are of the comparisons, `own`
    of the policy's expectations without values of rows, and `shown` the same with values."""

    differences: tuple[UnitDifference, ...] = ()
    validations: tuple[Validation, ...] = ()
    own: tuple[Validation, ...] = ()
    shown: tuple[Validation, ...] = ()


def _judged(document: RunDocument, policy: EffectivePolicy, reports: str, engine: Engine) -> tuple[RunDocument, _Found]:
    """The document with the result, and what it is made of."""
    # Raises AddressError for a table that is gone, before Spark starts with the formats that were loaded until then.
    rollback = open_table(policy.address).commits.rollback
    opinions = [_opinion(version, document, policy, engine) for version in _versions(document)]
    judged = tuple(validation for opinion in opinions for validation in opinion.report.validations)
    found = _Found(_with_rows(opinions), judged)
    checked = _with_expectations(document, opinions)
    if checked.expectations.status is CheckStatus.FAILED:
        # The hold comes first: whatever cannot be written afterwards, no later operation touches the table.
        return keep_validations(_held(checked, rollback, reports, opinions), judged, reports), found
    checked = keep_validations(checked, judged, reports)
    replaced = [opinion for opinion in opinions if opinion.report.conflicted]
    if replaced:
        reason = f"a foreign writer replaced {_named(replaced)}; nothing was deleted"
        return replace(checked, outcome=Outcome.CONFLICTED, reason=reason), found
    asked = policy.own_request(_commits(document))
    if asked is not None:
        own = on_spark.expect_own(asked, engine)
        found.own, found.shown = own.validations, own.shown
        checked = keep_validations(_with_own(checked, own), (*judged, *own.validations), reports)
        if own.broken:
            return _held_by_own(checked, rollback, reports, own), found
    return _concluded(checked), found


def _shared_with_team(document: RunDocument, validations: Sequence[Validation], policy: EffectivePolicy) -> RunDocument:
    """Store the validations in the team's project of Great Expectations, if the policy names one. Where that fails, the
    document states why: nothing but that project depends on it."""
    folder = policy.results_context
    if folder is None or not validations:
        return document
    from nightkeep.checking.team_context import store_in_context  # noqa: PLC0415 -- Great Expectations

    def stored() -> str | None:
        store_in_context(folder, document, [*map(writable, validations)])
        return None

    why = guarded(stored, lambda failure: f"the results are not in {folder}: {sentence(failure)}", folder)
    reason = "; ".join(filter(None, [document.expectations.reason, why])) or None
    return replace(document, expectations=replace(document.expectations, reason=reason))


def _concluded(document: RunDocument) -> RunDocument:
    """The document with the outcome of units and check together, and a reason that belongs to this outcome."""
    expectations = document.expectations
    published = published_outcome(document)
    outcome = Outcome.worst([published, _OUTCOMES.get(expectations.status, published)])
    reason = without_surprise(document.reason)
    if expectations.status is CheckStatus.ERRORED:
        expectations = with_reason(expectations)
        reason = with_surprise(reason, CHECK_UNFINISHED, str(expectations.reason))
    return replace(document, outcome=outcome, reason=reason, expectations=expectations)


@dataclass(frozen=True, slots=True)
class _Opinion:
    """A version and its CheckReport."""

    version: int | None
    report: CheckReport


def _versions(document: RunDocument) -> tuple[int | None, ...]:
    """Every version of the run. Older documents name only one."""
    return tuple(commit.version for commit in document.commits) or (document.committed_version,)


def _opinion(version: int | None, document: RunDocument, policy: EffectivePolicy, engine: Engine) -> _Opinion:
    chosen, commits = policy.settings.check, len(_versions(document))
    request = CheckRequest(
        address=policy.address,
        version=version,
        base_version=document.base_version,
        # The budgets are for the whole run, so the commits share them.
        byte_budget=chosen.byte_budget // commits,
        commit_user=commit_user(run_token(document.run_id, document.operation), policy.address.branch),
        known=tuple(_known(version, document)),
        join_budget=chosen.join_budget,
        keys_budget=chosen.keys_budget // commits,
        evidence=chosen.evidence,
        keys=chosen.keys,
    )
    report = guarded(lambda: on_spark.check(request, engine), _unread, f"check of {document.table}")
    return _Opinion(version, _also_read(report, policy, request.byte_budget))


def _unread(failure: Exception) -> CheckReport:
    """The report of a check that could not begin, such as one without a JVM. What is known of other versions stays."""
    if isinstance(failure, UsageError):
        raise failure
    return CheckReport(CheckStatus.ERRORED, "nothing was read", sentence(failure))


def _also_read(report: CheckReport, policy: EffectivePolicy, byte_budget: int | None) -> CheckReport:
    """The report with the rows that another reader finds, if the policy names one."""
    reader = policy.settings.check.reader
    if reader is None:
        return report

    def unless_failed(failure: Exception) -> CheckReport:
        """Nothing that fails now takes back a difference."""
        if report.status is not CheckStatus.FAILED:
            raise failure
        return report

    return guarded(
        lambda: with_other_reader(report, policy.address, OtherReader.parse(reader), byte_budget=byte_budget),
        unless_failed,
        f"{policy.address.name}, read by {reader}",
    )


def _commits(document: RunDocument) -> tuple[tuple[int, int | None], ...]:
    """Every version of the run with its parent. Older documents name only one."""
    if not document.commits and document.committed_version is not None:
        return ((document.committed_version, document.parent_version),)
    return tuple((commit.version, commit.parent_version) for commit in document.commits)


def _with_own(document: RunDocument, own: OwnReport) -> RunDocument:
    seconds = {**document.metrics.seconds, "check": document.metrics.seconds.get("check", 0.0) + own.seconds}
    expectations = with_own_results(document.expectations, own)
    return replace(document, expectations=expectations, metrics=replace(document.metrics, seconds=seconds))


def _known(version: int | None, document: RunDocument) -> Iterator[VersionIdentity]:
    """The identities that the document has for the version, its parent and the planned one."""
    yield from (VersionIdentity.parse(text) for text in (document.base_identity,) if text)
    for commit in document.commits:
        identities = (commit.identity, commit.parent_identity) if commit.version == version else ()
        yield from (VersionIdentity.parse(text) for text in identities if text)


def _with_expectations(document: RunDocument, opinions: Sequence[_Opinion]) -> RunDocument:
    """The document with the joined reports, and their seconds as a stage. With several versions, each name has its
    version."""
    several = len(opinions) > 1
    statuses = {CheckStatus(opinion.report.status) for opinion in opinions}
    differences = [each for opinion in opinions for each in _differences(opinion, several=several)]
    expectations = Expectations(
        next(status for status in _WORST_FIRST if status in statuses),
        tuple(result for opinion in opinions for result in _results(opinion, several=several)),
        coverage=_joined(opinions, "coverage", several=several),
        reason=_joined(opinions, "reason", several=several),
        extra={"differences": differences} if differences else {},
    )
    seconds = {**document.metrics.seconds, "check": sum(opinion.report.seconds for opinion in opinions)}
    return replace(document, expectations=expectations, metrics=replace(document.metrics, seconds=seconds))


def _results(opinion: _Opinion, *, several: bool) -> Iterator[ExpectationSummary]:
    for result in opinion.report.results:
        labels = [f"version {opinion.version}"] if several else []
        labels += [] if result.unit is None else [str(result.unit)]
        yield ExpectationSummary(": ".join([*labels, result.name]), CheckStatus(result.status), result.detail)


def _differences(opinion: _Opinion, *, several: bool) -> Iterator[dict[str, object]]:
    for each in opinion.report.differences:
        difference = encode(replace(each, difference=without_rows(each.difference)))
        yield {"version": opinion.version, **difference} if several else difference


def _with_rows(opinions: Sequence[_Opinion]) -> tuple[UnitDifference, ...]:
    """The differences that show rows, each with its version where there are several."""
    several = len(opinions) > 1
    return tuple(
        replace(each, comparison=f"version {opinion.version}: {each.comparison}") if several else each
        for opinion in opinions
        for each in opinion.report.differences
        if each.difference.missing_rows or each.difference.extra_rows
    )


def _joined(opinions: Sequence[_Opinion], part: str, *, several: bool) -> str | None:
    texts = [(opinion.version, getattr(opinion.report, part)) for opinion in opinions]
    return "; ".join(f"version {version}: {text}" if several else text for version, text in texts if text) or None


def _held(
    document: RunDocument, rollback: Callable[[int], str], reports: str, opinions: Sequence[_Opinion]
) -> RunDocument:
    failed = [r.expectation for r in document.expectations.results if r.status is CheckStatus.FAILED]
    wrong = [opinion for opinion in opinions if opinion.report.status is CheckStatus.FAILED]
    # Go back to the parent, not to the planned version: commits of others in between must stay.
    parents = [commit.parent_version for commit in document.commits if commit.version == wrong[0].version]
    before = parents[0] if parents else document.base_version
    held = replace(
        document,
        outcome=Outcome.MISMATCH,
        reason=f"the check of published {_named(wrong)} failed: {', '.join(failed)}; on hold",
        go_back=_way_back(before, rollback),
    )
    return hold_or_note(reports, held)


def _way_back(before: int | None, rollback: Callable[[int], str]) -> str | None:
    """The statement that goes back to the version. A table is put on hold without it too."""
    if before is None:
        return None
    return guarded(lambda: rollback(before), lambda _: None, f"the way back to version {before}")


def _held_by_own(document: RunDocument, rollback: Callable[[int], str], reports: str, own: OwnReport) -> RunDocument:
    """The document of commits that broke critical expectations: the way back is to before the first of them."""
    since = min(result.since for result in own.broken if result.since is not None)
    names = ", ".join(result.expectation.name for result in own.broken)
    held = replace(
        document,
        outcome=Outcome.MISMATCH,
        reason=f"published version {since[0]} broke what the policy expects: {names}; on hold",
        go_back=_way_back(since[1], rollback),
    )
    return hold_or_note(reports, held)


def _named(opinions: Sequence[_Opinion]) -> str:
    """`version 7`, or `versions 7, 8`."""
    return f"version{'s' if len(opinions) > 1 else ''} {', '.join(str(opinion.version) for opinion in opinions)}"
