"""States of tables -> families of samples, and documents of one run -> its figures. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from nightkeep.model import Outcome
from nightkeep.monitoring.table_states import TableState
from nightkeep.records import RunDocument


@dataclass(frozen=True, slots=True)
class GaugeSample:
    """A number and its labels."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """Samples of one name; all of ours are gauges. Its help is one line."""

    name: str
    help: str
    samples: tuple[GaugeSample, ...]


def families(states: Sequence[TableState], *, now: datetime) -> tuple[Family, ...]:
    """What is exported of these tables, in the order of the text. A later release only adds names."""
    last = [document for state in states for document in state.last]
    return (*_counts(states), *_times(states, now), *_of_last_runs(last))


def _counts(states: Sequence[TableState]) -> Iterator[Family]:
    outcomes, held = Counter(state.outcome for state in states), [state.table for state in states if state.is_held]
    each = (GaugeSample({"outcome": outcome.value}, outcomes[outcome]) for outcome in Outcome)
    yield Family("nightkeep_tables", "Tables by the outcome of their last run.", tuple(each))
    yield Family("nightkeep_holds", "Tables on hold.", (GaugeSample({}, len(held)),))
    ones = tuple(GaugeSample({"table": table}, 1) for table in held)
    yield Family("nightkeep_table_held", "1 for each table on hold.", ones)


_RUN, _SUCCESS, _VERIFIED = (f"nightkeep_last_{what}_timestamp_seconds" for what in ("run", "success", "verified"))


def _times(states: Sequence[TableState], now: datetime) -> Iterator[Family]:
    ended = {state.table: state.ended_at for state in states}
    succeeded = {state.table: state.succeeded_at for state in states}
    verified = {state.table: state.verified_at for state in states}
    yield Family(_RUN, "When the last run of a table ended.", _stamps(ended))
    yield Family(_SUCCESS, "When a rewrite of a table last was verified or had nothing to do.", _stamps(succeeded))
    yield Family(_VERIFIED, "When a version of a table was last published and verified.", _stamps(verified))
    ages = ((table, (now - at).total_seconds()) for table, at in verified.items() if at is not None)
    yield Family(
        "nightkeep_last_verified_age_seconds",
        "How long ago that was when this text was written.",
        tuple(GaugeSample({"table": table}, max(0.0, age)) for table, age in ages),
    )


def _stamps(times: Mapping[str, datetime | None]) -> tuple[GaugeSample, ...]:
    return tuple(GaugeSample({"table": table}, at.timestamp()) for table, at in times.items() if at is not None)


def _of_last_runs(last: Sequence[RunDocument]) -> Iterator[Family]:
    outcomes = (GaugeSample({**_of(each), "outcome": each.outcome.value}, 1) for each in last)
    yield Family(
        "nightkeep_last_run_outcome", "1 for the outcome of each operation of a table's last run.", tuple(outcomes)
    )
    seconds = (
        GaugeSample({**_of(each), "stage": stage}, took)
        for each in last
        for stage, took in each.metrics.seconds.items()
    )
    yield Family("nightkeep_last_run_seconds", "Seconds of each stage of a table's last run.", tuple(seconds))
    for what in ("bytes", "files"):
        text = f"{what.capitalize()} of a table's data before and after its last run."
        yield Family(f"nightkeep_last_run_{what}", text, tuple(_before_and_after(last, what)))
    proven = (GaugeSample(_of(each), each.rows_proven) for each in last)
    yield Family(
        "nightkeep_last_run_rows_proven", "Rows that the last run of a table proved to be the same.", tuple(proven)
    )


def _of(document: RunDocument) -> dict[str, str]:
    return {"table": document.table, "operation": document.operation.value}


def _before_and_after(last: Sequence[RunDocument], what: str) -> Iterator[GaugeSample]:
    for document in last:
        for state in ("before", "after"):
            value = getattr(document.metrics, f"{what}_{state}")
            if value is not None:
                yield GaugeSample({**_of(document), "state": state}, value)


def run_figures(outcomes: Iterable[Outcome], documents: Iterable[RunDocument], held: int) -> dict[str, float]:
    """The figures of one run over many tables, by dotted names: outcomes are those of its tables."""
    counted = Counter(outcomes)
    figures = defaultdict[str, float](float, dict.fromkeys(("rows_proven", "bytes_before", "bytes_after"), 0))
    for document in documents:
        metrics = document.metrics
        figures["rows_proven"] += document.rows_proven
        figures["bytes_before"] += metrics.bytes_before or 0
        figures["bytes_after"] += metrics.bytes_after or 0
        for stage, seconds in metrics.seconds.items():
            figures[f"seconds.{stage}"] += seconds
    return {**{f"tables.{each}": counted[each] for each in Outcome}, **figures, "holds": held}
