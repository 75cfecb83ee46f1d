"""Documents of a table -> how its expectations ended, run by run. Pure; knows no HTML.

A column is a run, the operations of a night together; of several answers in a run the worst one counts. The first row
is the check of what was published, which is ours. The others are the expectations of the policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from nightkeep.model.counted import counted
from nightkeep.pages.history_text import run_name
from nightkeep.records.document import CheckStatus, RunDocument

CHECK: Final = "The check of what was published"
_MOST_RUNS: Final = 40
_MOST_ROWS: Final = 50
_NAMED: Final = 3
"""How many runs a sentence names in which an expectation was not met."""


class RunAnswer(StrEnum):
    """How an expectation ended in a run, the best first."""

    NOT_ASKED = "not asked"
    MET = "met"
    ERRORED = "without an answer"
    NOT_MET = "not met"


_OF_STATUS: Final[Mapping[CheckStatus, RunAnswer]] = {
    CheckStatus.PASSED: RunAnswer.MET,
    CheckStatus.FAILED: RunAnswer.NOT_MET,
    CheckStatus.ERRORED: RunAnswer.ERRORED,
}
_MARKS: Final[Mapping[RunAnswer, CheckStatus]] = {
    RunAnswer.NOT_ASKED: CheckStatus.NOT_RUN,
    **{answer: status for status, answer in _OF_STATUS.items()},
}


@dataclass(frozen=True, slots=True)
class RunMark:
    """The answer of a run, and when that began. `mark` has the colour and the shape of the answer."""

    mark: CheckStatus
    answer: RunAnswer
    began: str

    def __str__(self) -> str:
        return f"{self.began}: {self.answer}"


@dataclass(frozen=True, slots=True)
class ExpectationTrend:
    """An expectation over the runs of a table, oldest first. `severity` is None for our own check. `last` is the newest
    answer to a run that asked, `unmet` in how many of the `asked` runs it was not met."""

    name: str
    severity: str | None
    marks: tuple[RunMark, ...]
    last: RunMark
    unmet: int
    asked: int
    sentence: str


def expectation_trends(documents: Sequence[RunDocument]) -> tuple[ExpectationTrend, ...]:
    """A row for the check and for each expectation that one of the newest runs asked. Documents are oldest first."""
    runs = [*_runs(documents).values()][-_MOST_RUNS:]
    times = [run[0].started_at for run in runs]
    checked = _trend(CHECK, None, times, [_worst(_checks(run)) for run in runs])
    names = dict[str, str]()
    for document in reversed(documents):
        for name, severity in _asked(document):
            names.setdefault(name, severity)
    rows = (
        _trend(name, severity, times, [_worst(_answers(run, name)) for run in runs])
        for name, severity in [*names.items()][:_MOST_ROWS]
    )
    return tuple(each for each in (checked, *rows) if each is not None)


def _runs(documents: Iterable[RunDocument]) -> dict[str, list[RunDocument]]:
    runs: dict[str, list[RunDocument]] = {}
    for document in documents:
        if document.operation.rewrites:
            runs.setdefault(run_name(document), []).append(document)
    return runs


def _asked(document: RunDocument) -> Iterator[tuple[str, str]]:
    """The expectations of the policy in a document, and their severities: our own results have none."""
    for each in document.expectations.results:
        if isinstance(severity := each.extra.get("severity"), str):
            yield each.expectation, severity


def _checks(run: Iterable[RunDocument]) -> Iterator[CheckStatus]:
    yield from (each.expectations.status for each in run if each.committed_version is not None)


def _answers(run: Iterable[RunDocument], name: str) -> Iterator[CheckStatus]:
    for document in run:
        own = (each for each in document.expectations.results if "severity" in each.extra)
        yield from (each.status for each in own if each.expectation == name)


def _worst(statuses: Iterable[CheckStatus]) -> RunAnswer:
    found = {_OF_STATUS.get(status, RunAnswer.NOT_ASKED) for status in statuses}
    return max(found, key=[*RunAnswer].index, default=RunAnswer.NOT_ASKED)


def _trend(
    name: str, severity: str | None, times: Sequence[datetime], answers: Sequence[RunAnswer]
) -> ExpectationTrend | None:
    """None where no run asked."""
    counts = Counter(answers)
    asked = len(answers) - counts[RunAnswer.NOT_ASKED]
    if not asked:
        return None
    marks = [RunMark(_MARKS[each], each, _minute(at)) for at, each in zip(times, answers, strict=True)]
    unmet = [mark.began for mark in marks if mark.answer is RunAnswer.NOT_MET]
    more = f" and {len(unmet) - _NAMED} more" if len(unmet) > _NAMED else ""
    named = f", which began {', '.join(reversed(unmet[-_NAMED:]))}{more}" if unmet else ""
    parts = [
        f"{answer} in {counted(counts[answer], 'run')}{named if answer is RunAnswer.NOT_MET else ''}"
        for answer in reversed(RunAnswer)
        if counts[answer]
    ]
    last = next(mark for mark in reversed(marks) if mark.answer is not RunAnswer.NOT_ASKED)
    return ExpectationTrend(name, severity, tuple(marks), last, len(unmet), asked, "; ".join(parts))


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
