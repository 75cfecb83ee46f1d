"""Documents of all runs, and holds -> the index, the page of the fleet, and the page of each table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from nightkeep.model import Outcome
from nightkeep.model.prices import Prices
from nightkeep.pages import bars
from nightkeep.pages.attention import Holds, attention_of
from nightkeep.pages.expectation_trends import expectation_trends
from nightkeep.pages.fleet import fleet_rows, totals_of, trends_of
from nightkeep.pages.html_pages import tally
from nightkeep.pages.money import formulas, money_of
from nightkeep.pages.templating import MOST_ROWS, Links, PageOf, environment, excerpt
from nightkeep.pages.trends import Trend, trend
from nightkeep.pages.versions import FoundRow, commits_between, found_rows, version_rows
from nightkeep.records.audit_marks import AuditedCommit
from nightkeep.records.document import CheckStatus, RunDocument
from nightkeep.records.json_files import Unreadable
from nightkeep.redaction import redact

_LONGEST_NAME: Final = 500


@dataclass(frozen=True, slots=True)
class RunRow:
    """A document in a list, and the link to its page if it has one."""

    document: RunDocument
    href: str | None


@dataclass(frozen=True, slots=True)
class Overview:
    """What the pages over all runs are made of. `history`: documents, oldest first. `older`: how many documents are not
    among them. `unreadable` are listed at the end. `commits`: of one table, those that its last audits judged, oldest
    first."""

    history: Sequence[RunDocument]
    holds: Holds = field(default_factory=dict)
    unreadable: Sequence[Unreadable] = ()
    older: int = 0
    prices: Prices | None = None
    commits: Sequence[AuditedCommit] = ()


def render_index(overview: Overview, *, title: str, generated_at: datetime, links: Links) -> str:
    """The first page: what needs a person, then a row for each table, then every run."""
    history = overview.history
    attention = attention_of(history, overview.holds)
    rows, filters = fleet_rows(history, attention)
    newest = [*reversed(history)][:MOST_ROWS]
    return _rendered(
        "index.html.j2",
        title=title,
        generated_at=generated_at,
        lede=tally(history) if history else "No run has left a report yet.",
        attention=excerpt(attention),
        rows=rows,
        filters=filters,
        runs=[RunRow(document, links.page_of(document)) for document in newest],
        hidden=len(history) - len(newest) + overview.older,
        older=overview.older,
        unreadable=excerpt([_shown_name(each) for each in overview.unreadable]),
        links=links,
    )


def render_fleet(overview: Overview, *, generated_at: datetime, links: Links) -> str:
    """Every table with its state, its trend over the nights and what its work brought, and the sums of all."""
    history = overview.history
    rows, filters = fleet_rows(history, attention_of(history, overview.holds))
    return _rendered(
        "fleet.html.j2",
        title="Fleet",
        generated_at=generated_at,
        rows=rows,
        filters=filters,
        totals=totals_of(history),
        **_money(overview),
        since=min((each.started_at for each in history), default=None),
        older=overview.older,
        links=links,
    )


@dataclass(frozen=True, slots=True)
class LifeRow:
    """A line of a table's life: a run, or several in a row with nothing to do. `found`: what others committed between
    this run and the one before, newest first, and `unnamed`: how many versions more."""

    document: RunDocument | None = None
    href: str | None = None
    quiet: tuple[RunDocument, ...] = ()
    notes: tuple[str, ...] = ()
    found: tuple[FoundRow, ...] = ()
    unnamed: int = 0


def render_table(table: str, overview: Overview, *, generated_at: datetime, links: Links) -> str:
    """The life of one table: its runs and versions, its figures over time, what it waits for. `overview` has the
    documents of this table alone."""
    documents = overview.history
    attention = attention_of(documents, overview.holds)
    rows, _ = fleet_rows(documents, attention)
    rewrites = [each for each in documents if each.operation.rewrites]
    return _rendered(
        "life.html.j2",
        title=table,
        generated_at=generated_at,
        attention=excerpt(attention),
        row=rows[0] if rows else None,
        trends=[replace(each, name=each.name.capitalize()) for each in _trends(rewrites)],
        life=[*_life(overview, links.page_of)][:MOST_ROWS],
        versions=version_rows(documents, overview.commits),
        refused=_refused(documents),
        expected=expectation_trends(documents),
        unmet=[each for each in reversed(documents) if _has_findings(each)][:MOST_ROWS],
        totals=totals_of(documents),
        **_money(overview),
        older=overview.older,
        links=links,
    )


def _rendered(template: str, **values: object) -> str:
    return redact(environment().get_template(template).render(**values))


def _money(overview: Overview) -> dict[str, object]:
    prices = overview.prices
    return {
        "money": money_of(overview.history, prices)[:MOST_ROWS],
        "formulas": () if prices is None else formulas(prices),
    }


def _trends(rewrites: Sequence[RunDocument]) -> Iterator[Trend]:
    yield from trends_of(rewrites)
    took = [each.session_seconds if each.committed_version is not None else None for each in rewrites]
    if (found := trend("seconds of runs that published", took, bars.show_seconds)) is not None:
        yield found


def _life(overview: Overview, page_of: PageOf) -> Iterator[LifeRow]:
    """Newest first. Versions that were planned on, and that our commit before did not publish, are of others."""
    documents = overview.history
    for is_quiet, some in itertools.groupby(reversed(documents), key=_is_quiet):
        together = list(some)
        if is_quiet and len(together) > 1:
            yield LifeRow(quiet=tuple(together), href=page_of(together[0]))
            continue
        for document in together:
            notes = (document.reason or "", commits_between(documents, document, overview.commits))
            unnamed = 0 if document.found_versions is None else document.found_versions.unnamed
            yield LifeRow(
                document,
                page_of(document),
                notes=tuple(filter(None, notes)),
                found=tuple(found_rows(documents, document)),
                unnamed=unnamed,
            )


def _is_quiet(document: RunDocument) -> bool:
    """Whether the run did nothing, and found nothing that others did."""
    found = document.found_versions
    return document.outcome is Outcome.UNCHANGED and (found is None or not found.total)


def _refused(documents: Sequence[RunDocument]) -> list[RunDocument]:
    """The newest document of each operation that is refused now."""
    newest = {each.operation: each for each in documents}
    return [each for each in newest.values() if each.outcome is Outcome.REFUSED]


def _has_findings(document: RunDocument) -> bool:
    checked = document.expectations
    unmet = {checked.status, *(each.status for each in checked.results)} & {CheckStatus.FAILED, CheckStatus.ERRORED}
    return bool(checked.reason or unmet) and document.committed_version is not None


def _shown_name(each: Unreadable) -> str:
    text = str(each)
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]} ..."
