"""What is to be submitted, whichever way: one script over a group of tables, and where its outcomes will be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a task.

    `script` is a path, or the address of the file, as the deployment names the folder of jobs. `arguments` are those of
    the script; the policy, the reports and the result are among them. `result` is the file that the job writes its
    outcomes to: an address where the reports are at one, else a path of this machine. `configuration` has Spark's
    settings by name, and `environment` the variables that a driver on another machine needs to reach stores and
    catalogs, credentials among them. `task_memory` is that of the largest task, in bytes. `mark` is the same in every
    try of the task and in no other task: letters and digits.
    """

    script: str
    arguments: tuple[str, ...]
    name: str
    tables: tuple[str, ...]
    policy: str
    reports: str
    result: str
    mark: str
    task_memory: int
    configuration: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


MARK_LABEL = "nightkeep-job"
"""The label of a driver's pod in Kubernetes, whose value is the mark of its job."""
Submit: TypeAlias = Callable[[Job], "BaseOperator"]
"""A way to submit a job: an operator that returns once the job has ended, and raises if it did not end well. Its
`on_kill` ends the job."""
