"""Documents <-> rows of the index of reports: what lists of runs show, in a few hundred bytes each.

A row is a JSON list. It becomes a brief document again: without plan, units, versions, and the details of its check. A
brief document is shown and never stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import NoneType
from typing import Final

from nightkeep.errors import CorruptMetadata
from nightkeep.model import Operation, Outcome
from nightkeep.records.codec import decode, encode
from nightkeep.records.document import (
    SESSION_SECONDS,
    CheckStatus,
    Expectations,
    ExpectationSummary,
    Metrics,
    Predicted,
    RunDocument,
    UnitResult,
)
from nightkeep.records.file_names import document_name
from nightkeep.records.found_versions import FoundVersions
from nightkeep.redaction import redact, redacted

Row = list[object]

_LONGEST_REASON: Final = 500
_KEPT_EXTRA: Final = ("mode", "orphans_total", "orphans_bytes", "acted", "quarantine")
"""What the sums of a list need of a sweep, as pages.retention_section describes it."""
_KINDS: Final = (
    (str,),  # run id
    (str,),  # table
    (str,),  # format
    (str,),  # operation
    (str,),  # outcome
    (str, NoneType),  # reason
    (int, NoneType),  # base version
    (int, NoneType),  # committed version
    (str,),  # started at
    (str,),  # finished at
    (int, NoneType),  # files before
    (int, NoneType),  # files after
    (int,),  # rows proven
    (int, float),  # seconds of all stages
    (str,),  # how its check ended
    (dict,),  # of its extras
    (dict,),  # figures, by name
    (int,),  # when the row was made, in nanoseconds since 1970
)
"""The types of the places of a row. A change of them needs another name for the file of the index."""
_MADE: Final = -1
_STAGES: Final = "all stages"
CPU: Final = "cpu_seconds_of_tasks"
CRITICAL: Final = "critical"
SKIPPED: Final = "files_skipped"
"""The share of files that a query of one of the columns skips after the run, on average over the columns."""
_OF_METRICS: Final = (SESSION_SECONDS, CPU, SKIPPED)
_OF_HEALTH: Final = ("files", "small_files", "deleted_ratio", "level0_files", "level0_age_ms", "equality_deletes")
"""What lists show of a table's health."""
_MOST_UNMET: Final = 5
_MOST_SPANS: Final = 4
_MOST_OWN: Final = 50
_LONGEST_NAME: Final = 100


def row_of(document: RunDocument, made_ns: int) -> Row:
    """The row of a document that was stored at this time, without credentials."""
    reason, metrics = document.reason, document.metrics
    return [
        document.run_id,
        document.table,
        document.format,
        document.operation.value,
        document.outcome.value,
        None if reason is None else _cut(redact(reason)),
        document.base_version,
        document.committed_version,
        document.started_at.isoformat(),
        document.finished_at.isoformat(),
        metrics.files_before,
        metrics.files_after,
        document.rows_proven,
        document.total_seconds,
        document.expectations.status.value,
        redacted(_extra(document)),
        redacted(_figures(document)),
        made_ns,
    ]


def brief_document(row: object) -> RunDocument:
    """The document of a row, as far as lists show it. Raises CorruptMetadata for anything but a row."""
    if not _has_kinds(row):
        raise CorruptMetadata("a row of the index", f"a list of {len(_KINDS)} values of their types", f"{row!r:.80}")
    assert isinstance(row, list)
    run_id, table, kind, operation, outcome, reason, base, committed, started, finished, *rest = row
    before, after, proven, seconds, status, extra, figures, _ = rest
    try:
        ended = Outcome(outcome)
        return RunDocument(
            run_id=run_id,
            table=table,
            format=kind,
            operation=Operation(operation),
            outcome=ended,
            reason=reason,
            base_version=base,
            committed_version=committed,
            started_at=decode(datetime, started, "a row of the index"),
            finished_at=decode(datetime, finished, "a row of the index"),
            units=(UnitResult("", None, ended, rows=proven, equal=True),),
            metrics=_metrics(before, after, float(seconds), figures),
            expectations=_expectations(CheckStatus(status), figures),
            found_versions=_found(figures.get("found")),
            extra=extra,
        )
    except ValueError as failure:
        raise CorruptMetadata("a row of the index", "values of a run", str(failure)) from failure


def _metrics(before: int | None, after: int | None, seconds: float, figures: Mapping[str, object]) -> Metrics:
    files, size, took = (figures.get(name) for name in ("files_expected", "bytes_expected", "seconds_expected"))
    expected = None
    if type(files) is int and type(size) is int and isinstance(took, int | float):
        expected = Predicted(files, size, float(took), "")
    return Metrics(
        files_before=before,
        files_after=after,
        bytes_before=_count(figures, "bytes_before"),
        bytes_after=_count(figures, "bytes_after"),
        seconds={_STAGES: seconds},
        predicted=expected,
        health=numbers_of(figures.get("health"), _OF_HEALTH),
        score=numbers_of(figures, ["score"]).get("score"),
        extra=numbers_of(figures, _OF_METRICS),
    )


def _expectations(status: CheckStatus, figures: Mapping[str, object]) -> Expectations:
    """How the check ended, and the expectations of the policy, at least the critical ones that are not met, whose
    fault it may be."""
    named, reason = figures.get("critical"), figures.get("check_reason")
    unmet = [each for each in named if isinstance(each, str)] if isinstance(named, list) else []
    own = [*_own_results(figures.get("own"))]
    known = {each.expectation for each in own}
    more = (each for each in unmet if _short(each) not in known)
    return Expectations(
        status,
        (*own, *(ExpectationSummary(each, CheckStatus.FAILED, extra={"severity": CRITICAL}) for each in more)),
        reason=reason if isinstance(reason, str) else None,
    )


def _own_figures(document: RunDocument) -> list[list[object]]:
    """The expectations of the policy, the first ones, each as name, status and severity."""
    own = [each for each in document.expectations.results if "severity" in each.extra]
    return [[_short(redact(each.expectation)), each.status.value, each.extra["severity"]] for each in own[:_MOST_OWN]]


def _own_results(value: object) -> Iterator[ExpectationSummary]:
    for name, status, severity in value if isinstance(value, list) else ():
        yield ExpectationSummary(str(name), CheckStatus(status), extra={"severity": str(severity)})


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 4]} ..."


def _found(value: object) -> FoundVersions | None:
    """The versions that a run found, by their spans alone."""
    return None if value is None else decode(FoundVersions, value, "a row of the index")


def _found_figures(found: FoundVersions | None) -> Mapping[str, object] | None:
    if found is None or not found.total:
        return None
    spans: list[object] = encode(found.spans[:_MOST_SPANS])
    return {"since": found.since, "until": found.until, "total": found.total, "spans": spans}


def numbers_of(value: object, names: Iterable[str]) -> dict[str, float]:
    """The numbers under these names, as far as there are any."""
    held = value if isinstance(value, Mapping) else {}
    found = {name: held.get(name) for name in names}
    return {name: each for name, each in found.items() if isinstance(each, int | float) and not isinstance(each, bool)}


def skipped_of(extra: Mapping[str, object]) -> float | None:
    """The average share of files that are skipped after a run, over the columns that rows are clustered by."""
    if known := numbers_of(extra, [SKIPPED]):
        return known[SKIPPED]
    columns = extra.get("skipping")
    sides = columns.values() if isinstance(columns, Mapping) else ()
    shares = [each["after"] for side in sides if (each := numbers_of(side, ["after"]))]
    return sum(shares) / len(shares) if shares else None


def _count(figures: Mapping[str, object], name: str) -> int | None:
    return value if type(value := figures.get(name)) is int else None


def made_ns(row: Row) -> int:
    """When the row was made. Of two rows of a document, the later one counts."""
    made = row[_MADE]
    assert isinstance(made, int)
    return made


def row_name(document: RunDocument) -> str:
    """The name of the document's file."""
    return document_name(document.table, run_id=document.run_id, operation=document.operation)


def _has_kinds(row: object) -> bool:
    if not isinstance(row, list) or len(row) != len(_KINDS):
        return False
    return all(type(value) in kinds for value, kinds in zip(row, _KINDS, strict=True))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]} ..."


def _extra(document: RunDocument) -> Mapping[str, object]:
    if document.operation.rewrites:
        return {}
    return {key: document.extra[key] for key in _KEPT_EXTRA if _is_small(document.extra.get(key))}


def _figures(document: RunDocument) -> Mapping[str, object]:
    """Figures of a document as far as it has them."""
    metrics, reason = document.metrics, document.expectations.reason
    expected = metrics.predicted
    cpu = metrics.extra.get("cpu_seconds")
    figures = {
        "bytes_before": metrics.bytes_before,
        "bytes_after": metrics.bytes_after,
        "files_expected": expected and expected.files,
        "bytes_expected": expected and expected.bytes,
        "seconds_expected": expected and expected.seconds,
        SESSION_SECONDS: metrics.extra.get(SESSION_SECONDS),
        "score": metrics.score,
        "health": numbers_of(metrics.health, _OF_HEALTH) or None,
        SKIPPED: skipped_of(metrics.extra),
        CPU: sum(_numbers(cpu)) if isinstance(cpu, Mapping) else None,
        "check_reason": None if reason is None else _cut(redact(reason)),
        "own": _own_figures(document) or None,
        "found": _found_figures(document.found_versions),
        "critical": [_cut(each.expectation) for each in unmet_critical(document)][:_MOST_UNMET] or None,
    }
    return {name: value for name, value in figures.items() if value is not None}


def unmet_critical(document: RunDocument) -> list[ExpectationSummary]:
    """The critical expectations that are not met. Some were not met before the commit either: no hold follows then."""
    results = document.expectations.results
    return [each for each in results if each.status is CheckStatus.FAILED and each.extra.get("severity") == CRITICAL]


def _numbers(named: Mapping[object, object]) -> list[float]:
    return [float(each) for each in named.values() if isinstance(each, int | float)]


def _is_small(value: object) -> bool:
    if isinstance(value, Mapping):
        return len(value) <= 2 and all(type(each) is int for each in value.values())
    return type(value) is int or (isinstance(value, str) and len(value) <= _LONGEST_REASON)
