"""Audits of Paimon tables of tests. Their documents are read as those of Iceberg tables are."""

from itertools import count
from pathlib import Path
from typing import Any

from tests.auditing.iceberg_audits import Audited
from tests.formats.paimon.upgrade import policy

from nightkeep.admission.order import AuditOptions, Order
from nightkeep.groups.one_operation import run_one
from nightkeep.model import Operation
from nightkeep.spark.engine import Engine

_RUNS = count()


def audited(table: Path, *, mark: str = "reports", **asked: Any) -> Audited:
    """One audit, with the mark of the earlier ones that had the same `mark`. `asked` are options of the audit."""
    order = Order(
        Operation.AUDIT, f"audit {next(_RUNS)}", str(table.parent / f"{table.name}-{mark}"), audit=AuditOptions(**asked)
    )
    with Engine(master="local[1]", task_memory_bytes=1 << 30, starts=False) as engine:
        return Audited(run_one(policy(table), order, engine).document)


def require_proven(found: Audited) -> int:
    """How many commits that keep rows were proven: all of them, but those whose parent has expired."""
    found.require_sound()
    keeping = [each for each in found.commits if each["claim"] == "keeps-rows"]
    for each in keeping:
        has_expired = each["verdict"] == "not provable" and "/snapshot/snapshot-" in str(each["why"])
        assert each["verdict"] == "proven" or has_expired, each
    return sum(each["verdict"] == "proven" for each in keeping)
