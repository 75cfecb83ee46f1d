"""What the tasks of a DAG are given, as a value that the DAG's first task has among its arguments. Imports nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

FIRST_TASKS: Final = ("in_time", "asked")
"""The first task of a DAG of ours: of a schedule, and of the form."""
ARGUMENT: Final = "needs"


@dataclass(frozen=True, slots=True)
class Needs:
    """Where things are, and the names of what Airflow has. `connection` is empty for a way to submit of one's own."""

    policy: str
    reports: str
    jobs: str
    connection: str
    pool: str

    def to_json(self) -> dict[str, str]:
        return asdict(self)

    @staticmethod
    def from_json(value: Mapping[str, str]) -> Needs:
        """The inverse of `to_json`. Raises TypeError for anything else."""
        return Needs(**value)
