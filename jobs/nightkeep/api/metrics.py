"""nightkeep.metrics: stored documents -> numbers for monitoring."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nightkeep.api.call_context import find_context
from nightkeep.errors import EvidenceError, UsageError
from nightkeep.monitoring.exposition import exposition
from nightkeep.monitoring.families import Family, families
from nightkeep.monitoring.table_states import table_states
from nightkeep.places import absolute, report_store, write_file
from nightkeep.records.store import why_not


@dataclass(frozen=True, slots=True)
class Exported:
    """Families of samples. `out` is the file that they were written to, None if none was asked for."""

    families: tuple[Family, ...]
    out: str | None = None

    @property
    def text(self) -> str:
        """The families in the text format of Prometheus."""
        return exposition(self.families)

    def to_json(self) -> list[dict[str, object]]:
        return [
            {"name": family.name, "labels": dict(sample.labels), "value": sample.value}
            for family in self.families
            for sample in family.samples
        ]

    def __str__(self) -> str:
        return self.text.rstrip("\n") if self.out is None else self.out


def metrics(
    *, out: str | Path | None = None, policy: str | Path | None = None, reports: str | Path | None = None
) -> Exported:
    """Outcomes, times, sizes and holds of every table that has documents, as Prometheus reads them.

    `out`: the file to write, which is replaced at once. node_exporter reads files whose names end in .prom.
    """
    context = find_context(policy, reports)
    if not report_store(context.reports).exists():
        raise UsageError(f"{context.reports}: expected a folder of reports, found none")
    found = families(table_states(context.reports), now=datetime.now(UTC))
    if out is None:
        return Exported(found)
    place = absolute(str(out))
    try:
        return Exported(found, write_file(place, exposition(found)))
    except OSError as failure:
        raise EvidenceError(place, "a file that can be written", why_not(failure)) from failure
