"""Documents and holds -> a row for each table, totals, and what a page can be filtered by. Pure; knows no HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from nightkeep.model import Outcome
from nightkeep.model.counted import counted
from nightkeep.pages.attention import SHOWN_FIRST, Attention
from nightkeep.pages.bars import show_age, show_bytes
from nightkeep.pages.retention_section import leftovers
from nightkeep.pages.trends import Trend, trend
from nightkeep.records.document import Predicted, RunDocument
from nightkeep.records.index_rows import CPU, skipped_of

LATELY: Final = 20
NO_NAMESPACE: Final = "none"
_MOST_FILTERS: Final = 40


@dataclass(frozen=True, slots=True)
class FleetRow:
    """A table: its newest document, the newest of each operation, its newest rewrite, its latest outcomes, newest last,
    its trends, and what needs a person. `health`: as the newest run that knows it found it, in words. `state` is the
    worst of the last outcome of each operation. `classes` name the filters that show it."""

    table: str
    last: RunDocument
    by_operation: tuple[RunDocument, ...]
    rewritten: RunDocument | None
    verified_at: datetime | None
    lately: tuple[Outcome, ...]
    trends: tuple[Trend, ...]
    health: tuple[str, ...]
    attention: tuple[Attention, ...]
    state: Outcome
    classes: str = ""

    @property
    def worst_need(self) -> Attention | None:
        """What is shown in place of the outcome: more urgent than that, such as a hold, or an expectation not met."""
        return next((each for each in self.attention if each.rank <= SHOWN_FIRST), None)

    @property
    def gain(self) -> Predicted | None:
        """What is expected of work that was planned last and is not published."""
        newest = self.rewritten
        return None if newest is None or newest.committed_version is not None else newest.metrics.predicted

    @property
    def score(self) -> float | None:
        """What that work would save readers for each byte that it costs."""
        newest = self.rewritten
        return None if newest is None or self.gain is None else newest.metrics.score

    @property
    def urgency(self) -> tuple[int, int, str]:
        """The order of rows: what needs a person first, then the worse outcome."""
        rank = min((each.rank for each in self.attention), default=99)
        return (rank, -[*Outcome].index(self.state), self.table)


@dataclass(frozen=True, slots=True)
class Filter:
    """A link that leaves the rows of one format, outcome or namespace. `mark` is the id of its anchor."""

    mark: str
    kind: str
    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class FleetTotals:
    """Sums over documents. None where nothing was measured. `bytes_unread`: what readers no longer read, by commits.
    `wall_seconds`: in which any of the runs was at work, `seconds`: of each table's own work, added up."""

    tables: int
    runs: int
    files_before: int | None
    files_after: int | None
    bytes_before: int | None
    bytes_after: int | None
    bytes_unread: int
    bytes_freed: int
    wall_seconds: float
    seconds: float
    cpu_seconds: float | None
    rows_proven: int


def fleet_rows(
    history: Iterable[RunDocument], attention: Iterable[Attention]
) -> tuple[tuple[FleetRow, ...], tuple[Filter, ...]]:
    """A row for each table, what needs a person first, and the filters. Documents are oldest first."""
    by_table: dict[str, list[RunDocument]] = {}
    for document in history:
        by_table.setdefault(document.table, []).append(document)
    needs: dict[str, list[Attention]] = {}
    for each in attention:
        needs.setdefault(each.table, []).append(each)
    rows = [_row(table, entries, needs.get(table, ())) for table, entries in by_table.items()]
    filters = [*_filters("format", rows, _format), *_filters("outcome", rows, _state)]
    filters += _filters("namespace", rows, _namespace)
    marks = {(each.kind, each.name): each.mark for each in filters}

    def classes(row: FleetRow) -> str:
        named = (("format", _format(row)), ("outcome", _state(row)), ("namespace", _namespace(row)))
        return " ".join(f"of-{marks[each]}" for each in named if each in marks)

    shown = [replace(row, classes=classes(row)) for row in sorted(rows, key=lambda row: row.urgency)]
    return tuple(shown), tuple(filters)


def _row(table: str, entries: Sequence[RunDocument], needs: Sequence[Attention]) -> FleetRow:
    rewritten = [each for each in entries if each.operation.rewrites]
    verified = [each.started_at for each in rewritten if each.outcome is Outcome.VERIFIED]
    newest = {each.operation: each for each in entries}
    in_order = sorted(newest.values(), key=lambda each: each.started_at, reverse=True)
    return FleetRow(
        table=table,
        last=entries[-1],
        by_operation=tuple(in_order),
        rewritten=rewritten[-1] if rewritten else None,
        verified_at=verified[-1] if verified else None,
        lately=tuple(each.outcome for each in entries[-LATELY:]),
        trends=trends_of(rewritten),
        health=_health(rewritten),
        attention=tuple(needs),
        state=Outcome.worst(each.outcome for each in in_order),
    )


def trends_of(rewrites: Sequence[RunDocument]) -> tuple[Trend, ...]:
    """The figures of a table over its runs, as far as two of them know one: files and bytes after each; of its health
    what each found."""
    health = [each.metrics.health for each in rewrites]
    found = (
        trend("files", [files_of(each) for each in rewrites], "{:,.0f}".format),
        trend("bytes", [bytes_of(each) for each in rewrites], lambda size: show_bytes(int(size))),
        trend("deleted rows", [each.get("deleted_ratio") for each in health], "{:.1%}".format),
        trend("level-0 age", [each.get("level0_age_ms") for each in health], show_age),
        trend("files skipped", [skipped_of(each.metrics.extra) for each in rewrites], "{:.0%}".format),
    )
    return tuple(each for each in found if each is not None)


def _health(rewrites: Sequence[RunDocument]) -> tuple[str, ...]:
    known = next((found for each in reversed(rewrites) if (found := each.metrics.health)), {})
    return tuple(show(known[name]) for name, show in _HEALTH.items() if known.get(name))


_HEALTH: Final[Mapping[str, Callable[[float], str]]] = {
    "small_files": lambda number: counted(int(number), "small file"),
    "deleted_ratio": "{:.1%} of rows deleted".format,
    "equality_deletes": lambda number: counted(int(number), "equality delete"),
    "level0_files": lambda number: f"{counted(int(number), 'file')} in level 0",
    "level0_age_ms": lambda age: f"the oldest {show_age(age)} old",
}
"""Facts of health that are shown where they are not 0, and how."""


def files_of(document: RunDocument) -> int | None:
    """The files of the table after a run, whether or not it changed any."""
    metrics = document.metrics
    return metrics.files_before if metrics.files_after is None else metrics.files_after


def bytes_of(document: RunDocument) -> int | None:
    """As `files_of`, their bytes."""
    metrics = document.metrics
    return metrics.bytes_before if metrics.bytes_after is None else metrics.bytes_after


def _format(row: FleetRow) -> str:
    return row.last.format


def _state(row: FleetRow) -> str:
    return str(row.state) if row.worst_need is None else row.worst_need.word


def _namespace(row: FleetRow) -> str:
    return row.table.rpartition(".")[0] or NO_NAMESPACE


def _filters(kind: str, rows: Sequence[FleetRow], of: Callable[[FleetRow], str]) -> Iterator[Filter]:
    """The filters of a kind; none where all rows are alike."""
    counts = Counter(map(of, rows))
    if len(counts) > 1:
        for number, (name, found) in enumerate(sorted(counts.items())[:_MOST_FILTERS]):
            yield Filter(f"only-{kind}-{number}", kind, name, found)


def totals_of(history: Sequence[RunDocument]) -> FleetTotals:
    """Sums over these documents, which are oldest first."""
    first, last = dict[str, RunDocument](), dict[str, RunDocument]()
    for document in history:
        if document.operation.rewrites and document.metrics.files_before is not None:
            first.setdefault(document.table, document)
            last[document.table] = document
    cpu = [each for document in history if (each := cpu_of(document)) is not None]
    freed = [leftovers(document) for document in history]
    return FleetTotals(
        tables=len({document.table for document in history}),
        runs=len(history),
        files_before=_sum(each.metrics.files_before for each in first.values()),
        files_after=_sum(map(files_of, last.values())),
        bytes_before=_sum(each.metrics.bytes_before for each in first.values()),
        bytes_after=_sum(map(bytes_of, last.values())),
        bytes_unread=sum(map(unread_bytes, history)),
        bytes_freed=sum(each.gone.bytes or 0 for each in freed if each is not None),
        wall_seconds=_wall_seconds(history),
        seconds=sum(document.session_seconds for document in history),
        cpu_seconds=sum(cpu) if cpu else None,
        rows_proven=sum(document.rows_proven for document in history if document.operation.rewrites),
    )


def _wall_seconds(history: Iterable[RunDocument]) -> float:
    """The time that the documents cover: tables are maintained side by side."""
    covered, until = timedelta(), None
    for each in sorted(history, key=lambda document: document.started_at):
        start = each.started_at if until is None else max(each.started_at, until)
        covered += max(timedelta(), each.finished_at - start)
        until = each.finished_at if until is None else max(until, each.finished_at)
    return covered.total_seconds()


def unread_bytes(document: RunDocument) -> int:
    """Bytes of data files that readers of the table no longer read, by this commit."""
    metrics = document.metrics
    if document.committed_version is None or metrics.bytes_before is None or metrics.bytes_after is None:
        return 0
    return max(0, metrics.bytes_before - metrics.bytes_after)


def cpu_of(document: RunDocument) -> float | None:
    """CPU seconds of the tasks; None if they were not measured."""
    extra = document.metrics.extra
    if isinstance(known := extra.get(CPU), int | float):
        return float(known)
    measured = extra.get("cpu_seconds")
    if not isinstance(measured, Mapping):
        return None
    return sum(float(each) for each in measured.values() if isinstance(each, int | float))


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
