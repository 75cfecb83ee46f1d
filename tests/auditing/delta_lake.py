"""Delta tables written by hand, compactions of them by a foreign writer, and their audits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from tests.formats.delta.hand_made import HandMade, removal

import nightkeep
from nightkeep.records import RunDocument

DAY, OTHER = "2026-11-01", "2026-11-02"
Action = dict[str, Any]


@dataclass
class Lake:
    """A table of two days with deleted rows, and the audits of it, whose reports are beside it."""

    made: HandMade
    reports: Path

    def audit(self, **options: Any) -> RunDocument:
        """The first one reads all commits: their times are fixed, and may be long ago."""
        if not (self.reports / "~audits").exists():
            options = {"since": "3650d", **options}
        return nightkeep.audit(f"delta:{self.made.folder}", reports=self.reports, **options)

    def live(self, day: str = DAY) -> list[Action]:
        """The add actions of a day, oldest first."""
        return [add for add in self.made.live().values() if add["partitionValues"] == {"day": day}]

    def rows(self, add: Action) -> pa.Table:
        """The rows of a file that its vector leaves."""
        table = pq.read_table(self.made.folder / unquote(add["path"]), partitioning=None)
        gone = self.made.deleted(add)
        return table.take(pa.array([place for place in range(len(table)) if place not in gone], pa.int64()))

    def tracked(self, add: Action) -> pa.Table:
        """As `rows`, with the row ids and versions that a rewrite must store in a table with row tracking."""
        table = self.rows(add)
        stored = set(table.column_names)
        if "_row-id-col" in stored:
            return table
        gone, rows = self.made.deleted(add), json.loads(add["stats"])["numRecords"]
        ids = [add["baseRowId"] + place for place in range(rows) if place not in gone]
        table = table.append_column("_row-id-col", pa.array(ids, pa.int64()))
        versions = [add["defaultRowCommitVersion"]] * len(ids)
        return table.append_column("_row-commit-version-col", pa.array(versions, pa.int64()))

    def compact(self, change: Callable[[pa.Table], pa.Table] = lambda rows: rows, *, day: str = DAY) -> int:
        """All files of a day as one, the rows changed on the way; the version."""
        held = self.live(day)
        read = self.tracked if "baseRowId" in held[0] else self.rows
        rows = change(pa.concat_tables([read(add) for add in held]))
        return self.replace(held, self.made.written(day, rows))

    def replace(self, gone: Sequence[Action], actions: Sequence[Action]) -> int:
        """A commit that states that it keeps rows."""
        removes = [{"remove": {**removal(add), "dataChange": False}} for add in gone]
        added = [{kind: {**body, "dataChange": False} for kind, body in action.items()} for action in actions]
        self.made.commit("OPTIMIZE", *removes, *added)
        return self.made.version

    def edit(self, change: Callable[[list[Action]], list[Action]], version: int | None = None) -> None:
        """Change the actions of a commit, the newest without `version`."""
        path = self.log / f"{self.made.version if version is None else version:020d}.json"
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(f"{json.dumps(action)}\n" for action in change(actions)))

    @property
    def log(self) -> Path:
        return self.made.folder / "_delta_log"


def two_days(folder: Path, **how: Any) -> Lake:
    """Three files of one day with two deleted rows, and one of another day."""
    made = HandMade(folder / "clicks", **how)
    for number in range(3):
        made.append(DAY, range(number * 10, number * 10 + 10))
    made.append(OTHER, range(100, 110))
    made.delete(DAY, [3, 14])
    return Lake(made, folder / "reports")


def commits(document: RunDocument) -> dict[int, dict[str, Any]]:
    section: Any = document.extra["audit"]
    return {each["version"]: each for each in section["commits"]}
