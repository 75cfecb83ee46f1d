"""The document of a run while the run works on it, and facts that every document has."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Any, Final

from nightkeep.admission.order import Order
from nightkeep.admission.owner_settings import OwnerSettings
from nightkeep.admission.run_ids import ASKED
from nightkeep.model import Committed, Operation, Outcome
from nightkeep.model.operations import REWRITE_STAGES
from nightkeep.model.version import __version__
from nightkeep.policy import EffectivePolicy
from nightkeep.progress import Stage, in_stage
from nightkeep.records import CommitResult, Metrics, RunDocument

_UNMEASURED: Final = Metrics()
_NOT_LISTED: Final[Mapping[Operation, Mapping[str, object]]] = {
    Operation.EXPIRE: {"expired": [], "kept": []},
    Operation.SWEEP: {
        "orphans": [],
        "orphans_total": 0,
        "orphans_bytes": 0,
        "orphans_file": None,
        "live_files": None,
        "young_files": None,
    },
}
"""Keys that every document of such an operation has, even if the run ended before it listed anything."""


@dataclass
class RunLog:
    """What is known of a run so far; each stage adds its facts. `extra`: facts without a field of their own.

    `earlier` is the document of an attempt that changed the table and did not finish. `owner`: what the table's owner
    asks for, once the table is open.
    """

    policy: EffectivePolicy
    order: Order
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, object] = field(default_factory=dict)
    earlier: RunDocument | None = None
    owner: OwnerSettings = field(default_factory=OwnerSettings)
    committed: Callable[[], Sequence[Committed]] | None = None
    """Looks up what the run has published. None before its first attempt to publish."""
    publishes: bool = False
    """Whether a commit has started whose result is not in `facts` yet."""

    @property
    def table(self) -> str:
        return self.policy.address.name

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Record the seconds of the `with` block, without the seconds of stages nested in it."""
        started, nested = time.perf_counter(), sum(self.seconds.values())
        try:
            with in_stage(self.progress(name)):
                yield
        finally:
            inner = sum(self.seconds.values()) - nested
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started - inner

    def progress(self, stage: str) -> Stage:
        """The stage of this run that begins now, for who watches."""
        stages = REWRITE_STAGES if self.order.operation.rewrites else ()
        predicted = self.facts.get("metrics", _UNMEASURED).predicted
        return Stage(
            self.table,
            self.order.operation,
            stage,
            stages.index(stage) + 1 if stage in stages else None,
            len(stages) if stage in stages else None,
            sum(self.seconds.values()),
            None if predicted is None else predicted.seconds,
        )

    def document(self, outcome: Outcome, reason: str | None = None, **facts: Any) -> RunDocument:
        """The document of a run that ends now; `facts` are more of its fields. If this attempt changed nothing, the
        facts of an earlier one stay in it."""
        now = datetime.now(UTC)
        if self.earlier is not None and not self.extra.get("changed"):
            both = f"{reason}; an earlier attempt of this run had not ended"
            worst = Outcome.worst([outcome, self.earlier.outcome])
            return replace(self.earlier, outcome=worst, reason=both, finished_at=now)
        known = {**self.facts, **facts}
        return RunDocument(
            run_id=self.order.run_id,
            table=self.table,
            format=self.policy.address.format,
            operation=self.order.operation,
            outcome=outcome,
            reason=reason,
            address=str(self.policy.address),
            started_at=self.started,
            finished_at=now,
            versions=versions(),
            metrics=replace(known.pop("metrics", Metrics()), seconds=dict(self.seconds)),
            extra={**self._promised(), **self.extra, **known.pop("extra", {})},
            **known,
        )

    def _promised(self) -> dict[str, object]:
        order, options = self.order, self.order.options(self.policy)
        if order.operation is Operation.AUDIT:
            return {ASKED: options} if options else {}
        if not order.operation.rewrites:
            listed = _NOT_LISTED.get(order.operation)
            return {} if listed is None else {"mode": options["mode"], ASKED: options, **listed}
        night = {} if order.night is None else {"night": order.night.to_json()}
        return {**({ASKED: options} if options else {}), **night}


def commits(done: Sequence[Committed]) -> dict[str, Any]:
    """The document's facts about commits, oldest first; empty if nothing was published."""
    if not done:
        return {}
    return {
        "parent_version": done[-1].parent_version,
        "committed_version": done[-1].version,
        "commits": tuple(
            CommitResult(
                commit.version,
                commit.parent_version,
                commit.units,
                identity=str(commit.identity),
                parent_identity=None if commit.parent is None else str(commit.parent),
            )
            for commit in done
        ),
    }


_PACKAGES: Final = ("pyspark", "pyarrow", "polars", "pyroaring", "fastavro", "pyiceberg")


def versions() -> dict[str, str]:
    """The version of each package that takes part in a run, by name."""
    return {"nightkeep": __version__, "python": platform.python_version(), **_installed()}


@cache
def _installed() -> dict[str, str]:
    # Each is parsed from a file, which takes as long as a run without work; none changes while the process runs.
    return {name: found for name in _PACKAGES if (found := _version(name))}


def _version(name: str) -> str | None:
    """None for a package that is not there: pyspark is an extra's, or the cluster's."""
    try:
        return installed(name)
    except PackageNotFoundError:
        return None
