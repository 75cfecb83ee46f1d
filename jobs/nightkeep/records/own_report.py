"""Results of a team's own expectations -> parts of documents. Values only, neither Spark nor Great Expectations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nightkeep.model.own_expectations import OwnExpectation, Severity
from nightkeep.records.check_report import CheckReport, ExpectationResult
from nightkeep.records.document import CheckStatus, Expectations, ExpectationSummary

_NAMED = 3
"""How many expectations a sentence names."""


@dataclass(frozen=True, slots=True)
class OwnResult:
    """How one expectation ended. `detail` has no value of a row; `shown` has, where values are asked for. `since`:
    version and parent of our commit that broke it; None for one that did not fail, or that failed before as well."""

    expectation: OwnExpectation
    status: CheckStatus
    detail: str
    shown: str
    since: tuple[int, int | None] | None = None

    @property
    def holds(self) -> bool:
        """Whether the table must be put on hold because of it."""
        return self.since is not None and self.expectation.severity is Severity.CRITICAL


@dataclass(frozen=True, slots=True)
class OwnReport:
    """The results, or `reason` states why nothing was asked. `validations`: in Great Expectations' own result format,
    without values of rows; `shown`: the same with values, where they are asked for."""

    results: tuple[OwnResult, ...] = ()
    reason: str | None = None
    seconds: float = 0.0
    validations: tuple[Mapping[str, object], ...] = ()
    shown: tuple[Mapping[str, object], ...] = ()

    @property
    def broken(self) -> tuple[OwnResult, ...]:
        return tuple(result for result in self.results if result.holds)

    @property
    def findings(self) -> str | None:
        """A sentence on what is not as expected and holds nothing."""
        unmet = [r for r in self.results if r.status in (CheckStatus.FAILED, CheckStatus.ERRORED) and not r.holds]
        named = ", ".join(map(_unmet, unmet[:_NAMED]))
        more = f" and {len(unmet) - _NAMED} more" if len(unmet) > _NAMED else ""
        return f"policy expectations not met: {named}{more}" if unmet else None

    @property
    def status(self) -> CheckStatus | None:
        """What it means for the check as a whole: nothing, unless what is critical failed by our commit or errored."""
        if self.broken:
            return CheckStatus.FAILED
        critical = (each for each in self.results if each.expectation.severity is Severity.CRITICAL)
        return CheckStatus.ERRORED if any(each.status is CheckStatus.ERRORED for each in critical) else None


def with_own_results(expectations: Expectations, own: OwnReport) -> Expectations:
    """The section of a run's document with these results after its own."""
    results = tuple(
        ExpectationSummary(
            each.expectation.name,
            each.status,
            _detail(each, each.detail),
            extra={"severity": each.expectation.severity, "type": each.expectation.type},
        )
        for each in own.results
    )
    return replace(
        expectations,
        status=_worse(expectations.status, own.status),
        results=(*expectations.results, *results),
        reason="; ".join(filter(None, [expectations.reason, own.reason, own.findings])) or None,
    )


def with_own_report(report: CheckReport, own: OwnReport) -> CheckReport:
    """The report of a check by hand with these results after its own, with values for who asks for them."""
    results = (
        ExpectationResult(each.expectation.name, None, each.status, _detail(each, each.shown)) for each in own.results
    )
    return replace(
        report,
        status=_worse(report.status, own.status),
        results=(*report.results, *results),
        reason="; ".join(filter(None, [report.reason, own.reason, own.findings if own.status else None])) or None,
        seconds=report.seconds + own.seconds,
        validations=(*report.validations, *(own.shown or own.validations)),
    )


def _unmet(result: OwnResult) -> str:
    """The name of an expectation and how it ended, with the cause of an error."""
    why = f" ({result.detail})" if result.status is CheckStatus.ERRORED and result.detail else ""
    return f"{result.expectation.name} {result.status}{why}"


def _detail(result: OwnResult, found: str) -> str:
    return f"{result.expectation.severity}: {found}"


def _worse(status: CheckStatus, own: CheckStatus | None) -> CheckStatus:
    if own is None or status is CheckStatus.FAILED:
        return status
    return own
