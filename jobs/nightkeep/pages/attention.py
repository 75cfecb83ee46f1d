"""Documents and holds -> what needs a person, the most urgent first. Pure.

What counts is the newest document of each operation on a table: a failure that a later run mended needs nobody. What
was asked for by hand and failed is listed for a week.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from nightkeep.model import Outcome
from nightkeep.model.counted import counted
from nightkeep.pages.bars import show_bytes, show_seconds
from nightkeep.records.document import CheckStatus, RunDocument
from nightkeep.records.holds import Hold
from nightkeep.records.index_rows import unmet_critical

Holds = Mapping[str, Hold | None]
"""The holds that stand, by table; None for one that cannot be read."""

_BAD: Final = frozenset({Outcome.FAILED, Outcome.MISMATCH, Outcome.CONFLICTED})
_DONE: Final = frozenset({Outcome.VERIFIED, Outcome.UNCHANGED})
_LEFT_OUT: Final = ("budget: ", "outside its window", "outside its owner's window", "would end outside")
"""How reasons begin of runs that came too late, or for which no time or bytes were left."""
_NIGHTS_LEFT_OUT: Final = 3
_CONFLICTS: Final = 2
"""One lost race is planned again by the next run."""
_WEEK: Final = timedelta(days=8)
_FACTOR, _SECONDS_FACTOR = 2.0, 3.0
_LEAST_FILES, _LEAST_BYTES, _LEAST_SECONDS = 10, 16 << 20, 60
"""A prediction is far off by a factor, and by so much that somebody cares."""
_LONGEST: Final = 400
SHOWN_FIRST: Final = 3
"""The rank up to which something is more urgent than the outcome of the last run."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that needs a person. `mark` is the outcome whose shape and colour it has, `word` what it is called.
    `statements` are to be copied: the engine's own, or commands."""

    rank: int
    mark: str
    word: str
    table: str
    sentence: str
    statements: tuple[str, ...] = ()
    document: RunDocument | None = None


def attention_of(history: Iterable[RunDocument], holds: Holds) -> tuple[Attention, ...]:
    """What needs a person, of documents that are oldest first; the most urgent first."""
    by_table: dict[str, list[RunDocument]] = {}
    for document in history:
        by_table.setdefault(document.table, []).append(document)
    newest = max((each[-1].finished_at for each in by_table.values()), default=None)
    found = [each for table, hold in holds.items() for each in _of_hold(table, hold, by_table.get(table, ()))]
    for table, documents in by_table.items():
        of_operation: dict[str, list[RunDocument]] = {}
        for document in documents:
            of_operation.setdefault(document.operation, []).append(document)
        for entries in of_operation.values():
            if newest is None or newest - entries[-1].finished_at <= _WEEK:
                found += _of_operation(entries, holds.get(table))
    return tuple(sorted(found, key=lambda each: (each.rank, each.table)))


def _of_hold(table: str, hold: Hold | None, documents: Sequence[RunDocument]) -> Iterator[Attention]:
    release = f"nightkeep release {shlex.quote(table)}"
    if hold is None:
        yield Attention(0, "mismatch", "on hold", table, "Its hold cannot be read, and counts.", (release,))
        return
    version = "" if hold.committed_version is None else f" Version {hold.committed_version} is published."
    why = _cut(hold.reason or "a published version failed its check")
    sentence = f"Since {hold.since:%Y-%m-%d %H:%M} UTC, by run {hold.run_id}: {why}.{version}"
    back = () if hold.go_back is None else (hold.go_back,)
    run = next((each for each in reversed(documents) if each.run_id == hold.run_id), None)
    yield Attention(0, "mismatch", "on hold", table, sentence, (*back, release), run)


def _of_operation(entries: Sequence[RunDocument], hold: Hold | None) -> Iterator[Attention]:
    last = entries[-1]
    is_held = hold is not None and last.run_id in hold.runs
    if last.outcome in _BAD and not is_held:
        yield from _of_bad(entries)
    elif last.outcome is Outcome.REFUSED:
        done = [each for each in entries if each.outcome in _DONE]
        if done:
            sentence = f"it was maintained until {done[-1].finished_at:%Y-%m-%d}: {_reason(last)}"
            yield _item(3, "refused", last, sentence)
    elif last.outcome is Outcome.SKIPPED:
        yield from _of_left_out(entries)
    if not is_held and last.outcome not in _BAD:
        yield from _of_check(last)
    yield from _of_prediction(last)


def _of_bad(entries: Sequence[RunDocument]) -> Iterator[Attention]:
    last = entries[-1]
    nights = next((n for n, each in enumerate(reversed(entries)) if each.outcome not in _BAD), len(entries))
    before = "run" if nights == _CONFLICTS else f"{nights - 1} runs"
    again = "" if nights == 1 else f" So did the {before} before it."
    if last.outcome is Outcome.CONFLICTED and nights < _CONFLICTS:
        return
    rank = {Outcome.MISMATCH: 1, Outcome.FAILED: 2, Outcome.CONFLICTED: 4}[last.outcome]
    statements = tuple(filter(None, [last.go_back]))
    if last.awaits_check:
        statements = (*statements, f"nightkeep check --left {shlex.quote(last.table)}")
    yield _item(rank, str(last.outcome), last, f"{_reason(last)}{again}", statements)


def _of_check(last: RunDocument) -> Iterator[Attention]:
    checked = last.expectations
    unmet = [each.expectation for each in unmet_critical(last)]
    if checked.status is CheckStatus.FAILED or unmet:
        named = f"critical expectations are not met: {', '.join(unmet)}" if unmet else "the check failed"
        why = f" {_cut(checked.reason)}" if checked.reason and not unmet else ""
        held = "" if checked.status is CheckStatus.FAILED else " It holds nothing, as they were not met before either."
        yield _item(2, "failed", last, f"{_version(last)}{named}.{why}{held}", word="expectations")
    elif last.awaits_check:
        left = f"nightkeep check --left {shlex.quote(last.table)}"
        why = f": {_cut(checked.reason)}" if checked.reason else ""
        yield _item(3, "errored", last, f"{_version(last)}no check has judged it{why}.", (left,), word="unchecked")


def _of_left_out(entries: Sequence[RunDocument]) -> Iterator[Attention]:
    last = entries[-1]
    nights = next((n for n, each in enumerate(reversed(entries)) if not _is_left_out(each)), len(entries))
    if nights >= _NIGHTS_LEFT_OUT:
        yield _item(5, "skipped", last, f"left out in each of the last {nights} runs: {_reason(last)}", word="left out")


def _is_left_out(document: RunDocument) -> bool:
    return document.outcome is Outcome.SKIPPED and (document.reason or "").startswith(_LEFT_OUT)


def _of_prediction(last: RunDocument) -> Iterator[Attention]:
    expected, metrics = last.metrics.predicted, last.metrics
    if expected is None or last.committed_version is None:
        return
    off = []
    if metrics.files_after is not None and _is_off(expected.files, metrics.files_after, _FACTOR, _LEAST_FILES):
        off.append(f"{counted(expected.files, 'file')} expected, {metrics.files_after:,} measured")
    if metrics.bytes_after is not None and _is_off(expected.bytes, metrics.bytes_after, _FACTOR, _LEAST_BYTES):
        off.append(f"{show_bytes(expected.bytes)} expected, {show_bytes(metrics.bytes_after)} measured")
    if _is_off(expected.seconds, last.session_seconds, _SECONDS_FACTOR, _LEAST_SECONDS):
        off.append(f"{show_seconds(expected.seconds)} expected, {show_seconds(last.session_seconds)} measured")
    if off:
        yield _item(6, "skipped", last, f"the prediction was far off: {'; '.join(off)}.", word="far off")


def _is_off(expected: float, measured: float, factor: float, least: float) -> bool:
    less, more = sorted((expected, measured))
    return more - less >= least and more > factor * max(less, 1e-9)


def _item(
    rank: int, mark: str, document: RunDocument, sentence: str, statements: tuple[str, ...] = (), *, word: str = ""
) -> Attention:
    named = f"{document.operation}: {sentence}"
    return Attention(rank, mark, word or mark, document.table, named, statements, document)


def _version(document: RunDocument) -> str:
    return "" if document.committed_version is None else f"version {document.committed_version} is published, and "


def _reason(document: RunDocument) -> str:
    text = _cut(document.reason or "no reason is stated")
    return text if text.endswith(".") else f"{text}."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
