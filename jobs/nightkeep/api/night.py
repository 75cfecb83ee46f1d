"""nightkeep.night, and sweep with `all`: what the nightly and the weekly DAG do, in this process.

The order of the night, its groups, its budget, what counts of a table, its page and its messages are of `nights`, which
the DAGs use too. A DAG submits each group as a job of its own. Here the groups follow one another, each with a session
of its own, and a process that dies ends the night: it goes on under the same run id. Every step may be done twice. What
was found and the order of the night are kept under the run id, a table that is finished is recognised by its documents
and commits, and the page is written anew.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from nightkeep.api.call_context import reports_beside, require_policy
from nightkeep.api.table_groups import SessionOptions, check_tables, run_tables, sweep_tables
from nightkeep.errors import STOPS, Interrupted, NightkeepError, UsageError
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.groups.stored_document import StoredDocument
from nightkeep.lineage.emitting import emit_published, is_configured
from nightkeep.model import Operation, Outcome
from nightkeep.model.counted import counted
from nightkeep.nights.kept_reports import remove_old_reports
from nightkeep.nights.messages_of_run import notify_of_tables
from nightkeep.nights.overview import FLEET, INDEX
from nightkeep.nights.run_pages import RunPage, store_missing, write_run
from nightkeep.nights.run_tables import RunOrder, night_places, tables_of_run
from nightkeep.nights.settled import JobResult, Settled, awaits_check, ended_without_session, reported, settle_run
from nightkeep.nights.settled_documents import documents_of
from nightkeep.pages import summary_text
from nightkeep.places import reports_place
from nightkeep.policy import PolicyFile, groups, left_groups
from nightkeep.progress import note
from nightkeep.records import RunDocument
from nightkeep.records.failure_outcomes import unreported_as_failed
from nightkeep.redaction import redact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
_RUN_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
"""It is part of file names, of URLs and of the run id of each table."""


class TableEndJson(TypedDict):
    """How a run over many tables ended for one of them. `documents`: where they are stored."""

    table: str
    outcome: Outcome
    reason: str
    documents: list[str]


class WholeRunJson(TypedDict):
    """What `night` and `sweep --all` print."""

    run_id: str
    outcome: Outcome
    page: str
    tables: list[TableEndJson]


@dataclass(frozen=True, slots=True)
class WholeRun:
    """A run over all tables of a policy: how it ended for each, its documents, and the address of its page."""

    run_id: str
    tables: tuple[Settled, ...]
    documents: tuple[RunDocument, ...]
    page: str

    def __iter__(self) -> Iterator[RunDocument]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def outcome(self) -> Outcome:
        """The worst of the tables' outcomes; unchanged where there is no table."""
        return Outcome.worst(each.outcome for each in self.tables) if self.tables else Outcome.UNCHANGED

    def to_json(self) -> WholeRunJson:
        tables: list[TableEndJson] = [
            {
                "table": each.table,
                "outcome": each.outcome,
                "reason": redact(each.reason),
                "documents": [redact(address) for address in each.documents],
            }
            for each in self.tables
        ]
        return {"run_id": self.run_id, "outcome": self.outcome, "page": redact(self.page), "tables": tables}

    def __str__(self) -> str:
        return f"{summary_text(self.documents)}\n\nreport: {redact(self.page)}"


def night(
    *,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    master: str = "local[*]",
    run_id: str | None = None,
    spark: SparkSession | None = None,
) -> WholeRun:
    """Maintain every table of the policy, as the nightly DAG does: find them, order them, work within the budget, check
    what is published, write the page, send the messages.

    With the `run_id` of a night that ended midway, that one goes on. Raises UsageError for a policy that cannot be
    understood. Every other failure is the outcome of a table.
    """
    run = _begun(policy, reports, run_id, "night", RunOrder.NIGHT)
    return run.ended(_nightly(run, SessionOptions(master, spark)))


def sweep_all(
    *,
    policy: str | Path | None,
    reports: str | Path | None,
    master: str,
    run_id: str | None,
    spark: SparkSession | None,
) -> WholeRun:
    """Expire and sweep every table as its policy states, as the weekly DAG does."""
    run = _begun(policy, reports, run_id, "sweep", RunOrder.FILE)
    return run.ended(_weekly(run, SessionOptions(master, spark)), Operation.SWEEP)


@dataclass(frozen=True, slots=True)
class _Run:
    """A run over the tables of a policy, in their order. The run id of a table is `prefix:table`."""

    policy: PolicyFile
    reports: str
    prefix: str

    def group(self, tables: Sequence[str], *, without_session: bool = False) -> TableGroup:
        return TableGroup(
            self.policy,
            tuple(tables),
            self.prefix,
            self.reports,
            night=night_places(self.reports, self.prefix),
            without_session=without_session,
        )

    def ended(self, entries: Iterable[JobResult], operation: Operation | None = None) -> WholeRun:
        """Do the work that `entries` are of, settle each table by its documents, write the page and send messages."""
        tables = [table for group in groups(self.policy) for table in group]
        with _goes_on(self.prefix):
            settled = settle_run(self.reports, self.prefix, tables, [*entries])
            now = datetime.now(UTC)
            shown = RunPage(self.prefix, f"{self.prefix}, {now:%Y-%m-%d %H:%M}", now, operation)
            settled = store_missing(self.reports, shown, settled, self.policy)
            page = write_run(self.reports, shown, settled, policy=self.policy)
            stored = documents_of(settled, self.reports, self.prefix)
            documents = {address: unreported_as_failed(document) for address, document in stored.items()}
            notify_of_tables(
                self.policy, settled, documents, reports=self.reports, prefix=self.prefix, link=redact(page)
            )
            if is_configured():
                emit_published([*documents.values()])
            if removed := remove_old_reports(self.policy, self.reports, now):
                note(removed)
        return WholeRun(self.prefix, tuple(settled), tuple(documents.values()), page)


def _begun(
    policy: str | Path | None, reports: str | Path | None, run_id: str | None, kind: str, order: RunOrder
) -> _Run:
    file = require_policy(policy)
    place = reports_place(reports_beside(file, reports))
    prefix = run_id or f"{kind}-{datetime.now(UTC):%Y%m%dt%H%M%S}-{uuid.uuid4().hex[:6]}"
    if not _RUN_ID.fullmatch(prefix):
        raise UsageError(
            f"--run-id: expected at most 100 small letters, digits, '.', '_' and '-', beginning with one of the first "
            f"two, found {prefix!r:.200}"
        )
    if prefix in (INDEX, FLEET):
        raise UsageError(f"--run-id: expected a name for the page of a run, found {prefix!r}, which is that of another")
    with _goes_on(prefix):
        found = tables_of_run(file, place, prefix, order)
    note(f"{prefix}: {counted(len(found.tables), 'table')}")
    return _Run(found, place, prefix)


def _nightly(run: _Run, session: SessionOptions) -> Iterator[JobResult]:
    """The entries of a night: of a look at all tables without Spark, of a session for each group that is left, and of
    the checks that these left."""
    whole = groups(run.policy)
    tables = [table for group in whole for table in group]
    looked = [*_entries(run_tables(run.group(tables, without_session=True), (), session))]
    ended = ended_without_session(looked)
    yield from ended
    note(f"{len({entry.table for entry in ended})} of {len(tables)} tables need no Spark")
    for left in left_groups(run.policy, whole, {*tables} - {entry.table for entry in ended}):
        cared = [*_entries(run_tables(run.group(left), (), session))]
        yield from cared
        unchecked = [each.table for each in cared if each.committed_version is not None and awaits_check(each)]
        if unchecked:
            yield from _entries(check_tables(run.group([*dict.fromkeys(unchecked)]), session))


def _weekly(run: _Run, session: SessionOptions) -> Iterator[JobResult]:
    for group in groups(run.policy):
        yield from _entries(sweep_tables(run.group(group), session))


def _entries(group: AbstractContextManager[Iterable[StoredDocument]]) -> Iterator[JobResult]:
    """An entry for each document of a group. A group that fails as a whole does not end the others: its tables are
    settled by their documents, and one without any has failed."""
    try:
        with group as stored:
            for each in stored:
                note(str(each.document))
                yield reported(each.to_json())
    except UsageError:
        raise
    except NightkeepError as failure:
        _log.error("a group of tables ended early: %s", failure)


@contextmanager
def _goes_on(prefix: str) -> Iterator[None]:
    """A run that is interrupted in the `with` block names the run id under which all of it goes on."""
    try:
        yield
    except STOPS as stop:
        if isinstance(stop, Interrupted):
            stop.run_id = prefix
        raise
