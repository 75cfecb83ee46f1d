"""nightkeep.audit: a table -> the commits of all writers judged, read-only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nightkeep.admission.order import AuditOptions, Order
from nightkeep.api.call_context import find_context, name_run, parse_duration_option, start_engine
from nightkeep.api.notices import notify_of_documents
from nightkeep.errors import UsageError
from nightkeep.groups.one_operation import run_one
from nightkeep.model import Operation
from nightkeep.policy import parse_size
from nightkeep.records import RunDocument
from nightkeep.records.kept_index import indexed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def audit(
    table: str,
    *,
    since: str | int | None = None,
    files: bool = False,
    byte_budget: str | None = None,
    run_id: str | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    master: str = "local[*]",
    spark: SparkSession | None = None,
) -> RunDocument:
    """Prove the commits that state that they keep rows, by whoever, and hold the others against their metadata.

    Goes on after the last audit of the table; the first one goes back seven days. `since` is a version, or an age such
    as 7d. `files`: also look for every file that a retained version needs. Reads the table and writes nothing to it.

    Raises UsageError for invalid arguments. Every other failure is the document's outcome.
    """
    context = find_context(policy, reports)
    asked = {"since": None if since is None else str(since), "files": files or None, "byte_budget": byte_budget}
    order = Order(
        Operation.AUDIT,
        name_run(run_id),
        context.reports,
        audit=_options(since, files=files, byte_budget=byte_budget),
        asked={name: value for name, value in asked.items() if value is not None},
    )
    chosen = context.chosen(table)
    runs = [(chosen.address.name, order.run_id)]
    with start_engine(chosen, master, spark) as engine, indexed(order.reports, order.run_id, runs):
        document = run_one(chosen, order, engine).document
    notify_of_documents(chosen, [document], order.reports)
    return document


def _options(since: str | int | None, *, files: bool, byte_budget: str | None) -> AuditOptions:
    try:
        budget = None if byte_budget is None else parse_size(byte_budget)
    except ValueError as failure:
        raise UsageError(f"--byte-budget: expected {failure.args[0]}, found {byte_budget!r}") from failure
    text = None if since is None else str(since).strip()
    if text is None or text.isdecimal():
        return AuditOptions(since=None if text is None else int(text), files=files, byte_budget=budget)
    return AuditOptions(since_ms=parse_duration_option("--since", text), files=files, byte_budget=budget)
