"""One operation on one table -> its document, stored, then checked and stored again."""

from __future__ import annotations

from dataclasses import replace

from nightkeep.errors import STOPS
from nightkeep.groups.cared_table import check_table, run_table
from nightkeep.model import Run
from nightkeep.policy import EffectivePolicy
from nightkeep.records import CheckStatus, Expectations, RunDocument, store_or_say
from nightkeep.running.interrupted_run import say_unchecked
from nightkeep.running.planned_work import Reader, Reading
from nightkeep.running.run_operation import RunOrder, read_table
from nightkeep.spark.engine import Engine


def run_and_check(chosen: EffectivePolicy, order: RunOrder, engine: Engine, *, checks: bool) -> RunDocument:
    """Run one operation and store its document. If a check follows, store the document again with its result.

    Raises UsageError for an invalid request. Every other ending is in the document.
    """
    document = run_table(chosen, order, engine, reader=_reader(engine))
    try:
        return _stored_and_checked(document, chosen, order, engine, checks=checks)
    except STOPS as stop:
        say_unchecked(document, stop)
        raise


def _stored_and_checked(
    document: RunDocument, chosen: EffectivePolicy, order: RunOrder, engine: Engine, *, checks: bool
) -> RunDocument:
    stored, _ = store_or_say(document, order.reports)
    if checks and document.committed_version is not None:
        stored, _ = store_or_say(check_table(document, chosen, order.reports, engine=engine), order.reports)
    elif document.awaits_check and document.expectations.status is CheckStatus.NOT_RUN:
        # The document must say that no check will follow: versions that wait for a check do not expire.
        why = "left out by --no-check" if chosen.settings.check.enabled else "the policy turns the check off"
        skipped = Expectations(CheckStatus.SKIPPED, reason=why)
        stored, _ = store_or_say(replace(document, expectations=skipped), order.reports)
    return stored


def _reader(engine: Engine) -> Reader:
    """Reads the table, and tells the engine how large the version is."""

    def reader(policy: EffectivePolicy, order: RunOrder, run: Run, *, plans: bool) -> Reading:
        reading = read_table(policy, order, run, plans=plans)
        if reading.planned is not None:
            engine.stored_bytes = sum(reading.planned.base.sizes.bytes)
        return reading

    return reader
