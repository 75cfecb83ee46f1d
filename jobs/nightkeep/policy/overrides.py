"""Options of one call, as typed -> the policy's settings with these options applied."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from nightkeep.errors import UsageError
from nightkeep.model import Clustering, Curve, Operation, VerifyLevel, Writers
from nightkeep.policy.clustering import along
from nightkeep.policy.settings import Settings
from nightkeep.policy.units import parse_size

T = TypeVar("T")

_OF_WORK = ("where", "full", "spec", "zorder", "hilbert", "target_size", "min_file_size", "max_deleted_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Options of a command or of a job. None and False keep the policy's value.

    `zorder` and `hilbert` are columns separated by commas; at most one of them is given. Sizes include their unit.
    """

    where: str | None = None
    full: bool = False
    spec: str | None = None
    zorder: str | None = None
    hilbert: str | None = None
    target_size: str | None = None
    min_file_size: str | None = None
    max_deleted_ratio: float | None = None
    allow_compacting_writers: bool = False
    writers: Writers | None = None
    verify: VerifyLevel | None = None
    task_memory: str | None = None

    def values(self, settings: Settings) -> dict[str, object]:
        """The settings that these options give, over `settings`.

        Raises UsageError: the option, what was expected, what was found."""
        changes = {
            "where": self.where,
            "full": self.full,
            "respec": _understood("--spec", self.spec, _is_current),
            "clustering": self._clustering(settings.clustering),
            "target_size": _understood("--target-size", self.target_size, parse_size),
            "min_file_size": _understood("--min-file-size", self.min_file_size, parse_size),
            "max_deleted_ratio": _understood("--max-deleted-ratio", self.max_deleted_ratio, _ratio),
            "allow_compacting_writers": self.allow_compacting_writers,
            "writers": self.writers,
            "verify": self.verify,
            "task_memory": _understood("--task-memory", self.task_memory, parse_size),
        }
        return {name: value for name, value in changes.items() if value is not None and value is not False}

    def asked(self) -> dict[str, object]:
        """The options that decide which work is done, as typed; without those that decide how it is done."""
        given = {name: getattr(self, name) for name in _OF_WORK}
        return {name: value for name, value in given.items() if value is not None and value is not False}

    @property
    def clusters(self) -> bool:
        """Whether columns to cluster by are given."""
        return bool(self.zorder or self.hilbert)

    def require_use(self, operations: Collection[Operation]) -> None:
        """Raise UsageError if columns to cluster by are given but none of the operations clusters."""
        if self.clusters and Operation.OPTIMIZE not in operations:
            option = "--zorder" if self.zorder else "--hilbert"
            raise UsageError(f"{option}: expected operation optimize, found {', '.join(operations)}")

    def _clustering(self, policy: Clustering | None) -> Clustering | None:
        if self.zorder is not None and self.hilbert is not None:
            raise UsageError(
                "--zorder and --hilbert: expected one of the two, as files are laid along one curve, "
                f"found {self.zorder!r} and {self.hilbert!r}"
            )
        zorder = _understood("--zorder", self.zorder, lambda columns: along(Curve.Z, columns, policy))
        return zorder or _understood("--hilbert", self.hilbert, lambda columns: along(Curve.HILBERT, columns, policy))


def _understood(option: str, value: object, parse: Callable[..., T]) -> T | None:
    if value is None:
        return None
    try:
        return parse(value)
    except ValueError as failure:
        raise UsageError(f"{option}: expected {failure.args[0]}, found {value!r}") from failure


def _is_current(spec: str) -> bool:
    if spec != "current":
        raise ValueError("current, the partition spec that new files have")
    return True


def _ratio(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError("a share from 0 to 1")
    return value
