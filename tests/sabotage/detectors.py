"""A kind of sabotage -> who catches it: the gate at both levels; of the version published without it, each check."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.other_readers.engines import other_reader
from tests.sabotage.bases import Bases, Published
from tests.sabotage.kinds import Kind

from nightkeep.checking.check import check
from nightkeep.errors import NightkeepError
from nightkeep.formats import open_table
from nightkeep.model import VerifyLevel
from nightkeep.model.check_values import READS, CheckRequest, ReaderName
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.other_readers.agreement import ask
from nightkeep.other_readers.reader_process import ReaderProcess
from nightkeep.protocol.table_files import Retention
from nightkeep.records import CheckStatus
from nightkeep.records.check_report import ComparedVersions
from nightkeep.retention.file_check import check_files
from nightkeep.retention.orphans.memory_sets import MemorySets

CAUGHT, BROKEN, MISSED, NOT_ASKED = "yes", "stops", "-", ""
"""BROKEN: it ends with an error, as what is published cannot be read. NOT_ASKED: there is nothing to judge."""
COLUMNS = ("full", "touched", "check", "presence", "other reader")
_STATUS = {
    CheckStatus.FAILED: CAUGHT,
    CheckStatus.ERRORED: BROKEN,
    CheckStatus.PASSED: MISSED,
    CheckStatus.SKIPPED: NOT_ASKED,
}


@dataclass
class Detectors:
    """What is started once for all kinds."""

    spark: SparkSession
    bases: Bases
    readers: Mapping[ReaderName, ReaderProcess]

    @classmethod
    def started(cls, spark: SparkSession, folder: Path, stack: ExitStack) -> Detectors:
        readers = {name: stack.enter_context(ReaderProcess(other_reader(name))) for name in ReaderName}
        return cls(spark, Bases(folder, stack), readers)

    def of(self, kind: Kind, folder: Path) -> tuple[str, ...]:
        """In the order of COLUMNS."""
        gates = [self._gate(kind, folder / level.value, level) for level in (VerifyLevel.FULL, VerifyLevel.TOUCHED)]
        try:
            published = kind.prepared(self.bases, folder / "published")[1]()
        except (NightkeepError, ValueError, AssertionError, LookupError):
            # The commit itself finds nothing that it could publish.
            return (*gates, NOT_ASKED, NOT_ASKED, NOT_ASKED)
        return (*gates, self._check(published), self._presence(published), self._others(published))

    def _gate(self, kind: Kind, folder: Path, level: VerifyLevel) -> str:
        return CAUGHT if kind.prepared(self.bases, folder)[0](level) else MISSED

    def _check(self, found: Published) -> str:
        request = CheckRequest(found.address, version=found.version, base_version=found.base)
        return _STATUS[check(request, spark=self.spark).status]

    def _presence(self, found: Published) -> str:
        retention: Any = open_table(found.address).retention
        kept = Retention(int(time.time() * 1000), 7 * DAY_MS)
        return _asked(lambda: bool(check_files(retention, kept, sets=MemorySets, salt="sabotage").faults))

    def _others(self, found: Published) -> str:
        """The best of all engines that read such tables."""
        if not found.same_rows:
            return NOT_ASKED
        compared = ComparedVersions(found.version, found.parent, not found.same_rows, 0)
        asked = [name for name, formats in READS.items() if found.address.format in formats]
        said = {_STATUS[ask(found.address, compared, self.readers[name]).status] for name in asked}
        return next(each for each in (CAUGHT, BROKEN, MISSED, NOT_ASKED) if each in said)


def _asked(fails: Callable[[], bool]) -> str:
    try:
        return CAUGHT if fails() else MISSED
    except NightkeepError:
        return BROKEN
