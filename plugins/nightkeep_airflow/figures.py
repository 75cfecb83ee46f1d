"""A settled run -> gauges of Airflow's own metrics: StatsD, Datadog or OpenTelemetry, as Airflow is configured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from nightkeep.monitoring.families import run_figures
from nightkeep.monitoring.table_states import longest_lag
from nightkeep.nights.settled import Settled
from nightkeep.records import RunDocument, holds_of
from nightkeep.records.kept_index import read_index
from nightkeep_airflow.releases import Stats, conf

_SWITCHES = ("statsd_on", "statsd_datadog_enabled", "otel_on")


def are_on() -> bool:
    """Whether Airflow emits metrics at all."""
    return any(conf.getboolean("metrics", switch, fallback=False) for switch in _SWITCHES)


def emit_figures(dag_id: str, results: Sequence[Settled], documents: Iterable[RunDocument], reports: str) -> None:
    """Emit the figures of a run as `nightkeep.<dag_id>.<figure>`."""
    tables = [result.table for result in results]
    figures = run_figures([result.outcome for result in results], documents, len(holds_of(reports, tables)))
    lag = longest_lag(read_index(reports).documents, tables, datetime.now(UTC))
    for name, value in (figures if lag is None else {**figures, "lag_seconds": lag}).items():
        Stats.gauge(f"nightkeep.{dag_id}.{name}", value)
