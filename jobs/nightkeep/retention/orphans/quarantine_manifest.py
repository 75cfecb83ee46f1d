"""A quarantine in the store: parts, each with a plan that is written before its first file is moved.

<home>/_nightkeep/quarantine/<run>/plan-00000.jsonl       a header, then one JSON object per file
<home>/_nightkeep/quarantine/<run>/00000/00000.file       the files, under names that no engine reads
<home>/_nightkeep/quarantine/<run>/done-00000.json        written once each file of the part is in one place
<home>/_nightkeep/quarantine/<run>/restored-00000.json    written once all files of the part are restored
<home>/_nightkeep/quarantine/<run>/restoring.json         when a restore last began
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, TypeVar
from uuid import uuid4

import pyarrow as pa

from nightkeep.errors import CorruptMetadata, MissingFile
from nightkeep.model import Run
from nightkeep.protocol.table_files import TableFiles
from nightkeep.retention.orphans.classify import KEPT, below, is_home_for, own_folder
from nightkeep.retention.orphans.lease import Lease, ourselves
from nightkeep.storage import Storage, spelled

T = TypeVar("T")

PART: Final = 1_000
"""Most files of one part. After a crash the files of an open part are checked one by one."""

_FORMAT: Final = 1
_NAMES = re.compile(r"(plan|done|restored)-(\d{5,})\.jsonl?")


class Mark(Enum):
    """How far a part is; the values begin the names of the mark files."""

    DONE = "done"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """One file: its place `path`, its place `to` in the quarantine, and how it was listed."""

    path: str
    to: str
    bytes: int
    modified_ms: int
    kind: str


@dataclass(frozen=True, slots=True)
class PartHeader:
    """Who wrote a part's plan, and when, by the writer's own clock."""

    run_id: str
    owner: Lease
    planned_ms: int


@dataclass(frozen=True, slots=True)
class QuarantinePart:
    """One part as listed: its number, whether it has a plan, and which marks it has."""

    folder: str
    number: int
    planned: bool
    marks: frozenset[Mark]

    @property
    def cut_short(self) -> bool:
        return self.planned and not self.marks

    @property
    def files(self) -> str:
        """The folder of the part's files."""
        return f"{self.folder}/{self.number:05d}"

    def file(self, number: int) -> str:
        """The place of a file of the part, by its number."""
        return f"{self.files}/{number:05d}.file"

    @property
    def plan(self) -> str:
        return f"{self.folder}/plan-{self.number:05d}.jsonl"

    def mark(self, mark: Mark) -> str:
        return f"{self.folder}/{mark.value}-{self.number:05d}.json"


def quarantines(table_files: TableFiles) -> tuple[str, ...]:
    """The quarantines of all runs, in the table's own folder."""
    return table_files.storage.folders(below(own_folder(table_files), "quarantine"))


def folder_of(table_files: TableFiles, run: Run) -> str:
    """The quarantine of one operation of a run."""
    return below(own_folder(table_files), f"quarantine/{_slug(run.run_id)}-{run.token}")


def folders_of(table_files: TableFiles, run_id: str, *, vouched: Sequence[str] = ()) -> tuple[str, ...]:
    """The quarantines of a run id: one per operation; earlier releases had one for all operations.

    `vouched` are quarantines below earlier places of the table. Those of other runs are left out.
    """
    named = re.compile(f"(?:.*/)?{re.escape(f'{KEPT}/quarantine/{_slug(run_id)}')}(-[0-9a-f]{{16}})?")
    return tuple(dict.fromkeys(folder for folder in (*quarantines(table_files), *vouched) if named.fullmatch(folder)))


def home_of(folder: str) -> str:
    """The table's folder that contains this quarantine."""
    return folder.rpartition(f"{KEPT}/quarantine/")[0].rstrip("/")


def _slug(run_id: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9.-]+", "-", run_id).strip("-.")[:60]
    return f"{readable}-{hashlib.sha256(run_id.encode()).hexdigest()[:8]}".lstrip("-")


def parts(storage: Storage, folder: str) -> tuple[QuarantinePart, ...]:
    """All parts of a quarantine, by number."""
    marks: dict[int, set[str]] = {}
    for stored in storage.list(folder):
        if match := _NAMES.fullmatch(stored.name.rpartition("/")[2]):
            marks.setdefault(int(match[2]), set()).add(match[1])
    return tuple(
        QuarantinePart(folder, number, "plan" in words, frozenset(mark for mark in Mark if mark.value in words))
        for number, words in sorted(marks.items())
    )


def write_plan(
    storage: Storage, part: QuarantinePart, run: Run, *, files: pa.RecordBatch, now_ms: int
) -> tuple[PlannedMove, ...]:
    """Write the plan of a part for `files` (schema ORPHANS). Raises CorruptMetadata if another process wrote it."""
    planned = tuple(
        PlannedMove(str(row["name"]), part.file(n), row["bytes"], row["modified_ms"], str(row["kind"]))
        for n, row in enumerate(files.to_pylist())
    )
    header = {"quarantine": _FORMAT, "run_id": run.run_id, "attempt": run.attempt, "planned_ms": now_ms}
    lines = [header | {"why": "nothing needs these files", "owner": asdict(ourselves())}]
    # `asdict` would copy each value, which takes several times as long.
    lines += [
        {name: getattr(file, name) for name in PlannedMove.__slots__} | {"modified_at": iso(file.modified_ms)}
        for file in planned
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if not storage.put_if_absent(part.plan, text.encode(), temporary=_temporary(part.plan)):
        raise CorruptMetadata(spelled(storage, part.plan), "none yet", "one of another process of this run")
    return planned


def read_plan(table_files: TableFiles, part: QuarantinePart) -> tuple[PartHeader, tuple[PlannedMove, ...]]:
    """Read the plan of a part. It is untrusted: anyone who may write to the table's folder may have written it.

    Raises CorruptMetadata for an incomplete plan, and for a plan with a file that is not of this part or whose place is
    not of this table.
    """
    name = spelled(table_files.storage, part.plan)
    try:
        head, *rest = [json.loads(line) for line in table_files.storage.read(part.plan).splitlines()]
        header = _header(head)
        planned = tuple(_planned(line) for line in rest)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as failure:
        actual = f"something else ({type(failure).__name__})"
        raise CorruptMetadata(name, "a list of files, one JSON object a line", actual) from None
    if head.get("quarantine") != _FORMAT:
        raise CorruptMetadata(name, f"format {_FORMAT}", "another one")
    _require_own(table_files, part, planned)
    return header, planned


def _require_own(table_files: TableFiles, part: QuarantinePart, planned: Sequence[PlannedMove]) -> None:
    """Raises CorruptMetadata unless every file is of this part, has a place of the table, and no place comes twice."""
    name = spelled(table_files.storage, part.plan)
    home = home_of(part.folder)
    for number, file in enumerate(planned):
        if file.to != part.file(number):
            raise CorruptMetadata(f"{name}: file {number}", f"at {part.file(number)}", repr(file.to))
        if not is_home_for(table_files, file.path, home):
            raise CorruptMetadata(f"{name}: file {number}", "a name in the table's own folders", repr(file.path))
    if len({file.path for file in planned}) != len(planned):
        raise CorruptMetadata(name, "each file once", "one of them again")


def write_mark(storage: Storage, part: QuarantinePart, mark: Mark, *, left: Sequence[str], now_ms: int) -> None:
    """Write a mark of the part; `left` are files that were not moved. An existing mark is kept."""
    text = json.dumps({"at_ms": now_ms, "at": iso(now_ms), "left": list(left)}) + "\n"
    name = part.mark(mark)
    storage.put_if_absent(name, text.encode(), temporary=_temporary(name))


def read_mark(storage: Storage, part: QuarantinePart, mark: Mark) -> tuple[int, frozenset[str]]:
    """When the mark was written, in epoch milliseconds, and which files were not moved."""
    try:
        fields = json.loads(storage.read(part.mark(mark)))
        return int(fields["at_ms"]), frozenset(map(str, fields["left"]))
    except (ValueError, KeyError, TypeError, RecursionError) as failure:
        actual = f"something else ({type(failure).__name__})"
        raise CorruptMetadata(spelled(storage, part.mark(mark)), "a mark as JSON", actual) from None


def write_restoring(storage: Storage, folder: str, *, now_ms: int) -> None:
    """Record that a restore is about to move files. A later restore replaces the record."""
    text = json.dumps({"at_ms": now_ms, "at": iso(now_ms)}) + "\n"
    storage.replace(_restoring(folder), text.encode(), temporary=_temporary(_restoring(folder)))


def read_restoring(storage: Storage, folder: str) -> int | None:
    """When a restore last began, in epoch milliseconds; None if none did."""
    try:
        return int(json.loads(storage.read(_restoring(folder)))["at_ms"])
    except MissingFile:
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as failure:
        actual = f"something else ({type(failure).__name__})"
        raise CorruptMetadata(spelled(storage, _restoring(folder)), "a mark as JSON", actual) from None


def iso(milliseconds: int) -> str:
    """Epoch milliseconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def _restoring(folder: str) -> str:
    return f"{folder}/restoring.json"


def _temporary(name: str) -> str:
    """A unique name for each write: a failed write may leave its file behind."""
    return f"{name}.{uuid4().hex}"


def _header(head: dict[str, Any]) -> PartHeader:
    """Parse the header. Raises TypeError, as `_planned` does, for a value of the wrong type."""
    lease = head["owner"]
    owner = Lease(_a(str, lease["host"]), _a(int, lease["pid"]), _a(str, lease["started"]))
    return PartHeader(_a(str, head["run_id"]), owner, _a(int, head["planned_ms"]))


def _planned(line: dict[str, Any]) -> PlannedMove:
    path, to, kind = (_a(str, line[key]) for key in ("path", "to", "kind"))
    return PlannedMove(path, to, _a(int, line["bytes"]), _a(int, line["modified_ms"]), kind)


def _a(kind: type[T], value: object) -> T:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}")
    return value
