"""Audits of Iceberg tables of tests, and what their documents state of a version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.runs import address

from nightkeep.admission.order import AuditOptions, Order
from nightkeep.groups.one_operation import run_one
from nightkeep.model import Operation, Outcome
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.records import RunDocument
from nightkeep.spark.engine import Engine

_RUNS = count()


def audited(
    table: Table, *, mark: str = "reports", settings: Mapping[str, Any] | None = None, **asked: Any
) -> "Audited":
    """One audit, with the mark of the earlier ones that had the same `mark`. `asked` are options of the audit."""
    policy = EffectivePolicy(address(table), Settings().model_copy(update=dict(settings or {})), {})
    reports = str(table.warehouse.folder.parent / f"{table.warehouse.name}-{mark}")
    order = Order(Operation.AUDIT, f"audit {next(_RUNS)}", reports, audit=AuditOptions(**asked))
    with Engine(master="local[1]", task_memory_bytes=1 << 30, starts=False) as engine:
        return Audited(run_one(policy, order, engine).document)


@dataclass(frozen=True)
class Audited:
    document: RunDocument

    @property
    def outcome(self) -> Outcome:
        return self.document.outcome

    @property
    def section(self) -> Mapping[str, Any]:
        found = self.document.extra.get("audit", self.document.reason)
        assert isinstance(found, Mapping), found
        return found

    @property
    def commits(self) -> Sequence[Mapping[str, Any]]:
        """In the order of time."""
        commits: list[Mapping[str, Any]] = [*self.section["commits"]]
        return sorted(commits, key=lambda each: each["time_ms"])

    @property
    def verdicts(self) -> Mapping[int, str]:
        return {each["version"]: str(each["verdict"]) for each in self.commits}

    @property
    def wrong(self) -> Mapping[int, Mapping[str, Any]]:
        return {each["version"]: each for each in self.commits if each["verdict"] in ("differs", "unsound")}

    def rows_of(self, version: int) -> tuple[int, int, int]:
        """How many rows are missing, extra and doubled."""
        (commit,) = (each for each in self.commits if each["version"] == version)
        return commit["missing"], commit["extra"], commit["doubled"]

    def require_sound(self) -> "Audited":
        assert not self.wrong, [(each["kind"], each["why"]) for each in self.wrong.values()]
        assert not self.section["vanished"], self.section["vanished"]
        assert self.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED, Outcome.SKIPPED), self.document.reason
        return self
