"""Commits of the log, oldest first -> what the actions of each contradict: in themselves, and in earlier commits.

Only what earlier commits of the same range state is known here. A file that was added before them is not.
PROTOCOL.md: "Action Reconciliation", "Row Tracking", "In-Commit Timestamps", "Per-file Statistics".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from nightkeep.formats.delta.metadata.actions import Action, Raw, vector_id
from nightkeep.formats.delta.metadata.struct_stats import row_count

File = tuple[str, str | None]
"""The path of a data file, and its vector: another vector makes another logical file of it."""


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """A commit with its actions. `info` is its commitInfo, empty without one."""

    version: int
    info: Raw
    actions: Sequence[Action]

    def of(self, kind: str) -> list[Raw]:
        return [body for each, body in self.actions if each == kind]


@dataclass
class LogReplay:
    """What the commits up to one have stated: live files by path, removed ones with the version that removed them, the
    row id high water mark and the in-commit timestamp."""

    live: dict[str, Raw] = field(default_factory=dict)
    gone: dict[File, int] = field(default_factory=dict)
    mark: int | None = None
    time_ms: int | None = None

    def take(self, commit: LoggedCommit) -> tuple[str, ...]:
        """The faults of the next commit. It then counts as an earlier one."""
        adds, removes = commit.of("add"), commit.of("remove")
        faults = (
            *_twice(adds, removes),
            *self._removes(removes),
            *self._adds(adds, removes),
            *(fault for add in adds for fault in _statistics(add)),
            *self._row_ids(commit, adds),
            *self._times(commit),
            *_changes(commit, [*adds, *removes]),
        )
        self._apply(commit, adds, removes)
        return faults

    def _apply(self, commit: LoggedCommit, adds: Sequence[Raw], removes: Sequence[Raw]) -> None:
        added = set(map(file_of, adds))
        for file in map(file_of, removes):
            if file[0] in self.live and file_of(self.live[file[0]]) == file:
                del self.live[file[0]]
            if file not in added:
                self.gone[file] = commit.version
        for add in adds:
            self.live[str(add["path"])] = add
            self.gone.pop(file_of(add), None)
        self.mark = _mark(commit, self.mark)
        self.time_ms = _time_ms(commit)

    def _removes(self, removes: Sequence[Raw]) -> Iterator[str]:
        again = [file for file in map(file_of, removes) if file in self.gone and file[0] not in self.live]
        if again:
            what = again[0][0] if len(again) == 1 else f"{len(again)} files, such as {again[0][0]}"
            yield f"it removes {what}, which version {self.gone[again[0]]} has removed"
        for remove in removes:
            add = self.live.get(str(remove["path"]))
            if add is None:
                continue
            if vector_id(add) != vector_id(remove):
                # The file stays live, and what was written of its rows is there twice (Trino #31253).
                yield f"it removes {remove['path']} with vector {vector_id(remove)}, and the file has {vector_id(add)}"
            elif remove.get("size") is not None and remove["size"] != add["size"]:
                yield f"it removes {remove['path']} of {remove['size']} bytes, and the file has {add['size']}"

    def _adds(self, adds: Sequence[Raw], removes: Sequence[Raw]) -> Iterator[str]:
        removed = set(map(file_of, removes))
        for add in adds:
            before = self.live.get(str(add["path"]))
            if before is None:
                continue
            if vector_id(before) != vector_id(add) and file_of(before) not in removed:
                yield f"it adds {add['path']} with another vector, and does not remove the file as it was"
            if before["size"] != add["size"]:
                yield f"it adds {add['path']} again with {add['size']} bytes, and the file has {before['size']}"
            rows, counted = rows_of(before), rows_of(add)
            if None not in (rows, counted) and rows != counted:
                yield f"it adds {add['path']} again with {counted} rows, and the file has {rows}"

    def _row_ids(self, commit: LoggedCommit, adds: Sequence[Raw]) -> Iterator[str]:
        """Row ids are assigned once, and the mark is the highest of them."""
        mark = _mark(commit, self.mark)
        if mark is None:
            return
        if self.mark is not None and mark < self.mark:
            yield f"its row id high water mark is {mark}, and it was {self.mark}"
        yield from _spans(adds, mark)
        for add in adds:
            made, span = add.get("defaultRowCommitVersion"), _span(add)
            if isinstance(made, int) and made > commit.version:
                yield f"{add['path']} has rows of version {made}, which is later than its own"
            is_new = made == commit.version and str(add["path"]) not in self.live
            if is_new and span is not None and self.mark is not None and span[0] <= self.mark:
                yield f"{span[2]} has new row ids from {span[0]} on, and the mark before was {self.mark}"

    def _times(self, commit: LoggedCommit) -> Iterator[str]:
        now = _time_ms(commit)
        if now is not None and self.time_ms is not None and now <= self.time_ms:
            yield f"its in-commit timestamp is {now}, and the commit before has {self.time_ms}"


def file_of(action: Raw) -> File:
    return str(action["path"]), vector_id(action)


def rows_of(action: Raw) -> int | None:
    """The stated number of physical rows, None without statistics."""
    stats = action.get("stats")
    return row_count(stats) if isinstance(stats, str) else None


def _twice(adds: Sequence[Raw], removes: Sequence[Raw]) -> Iterator[str]:
    """A path that is added twice makes two files of one, whatever their vectors."""
    added = Counter(str(add["path"]) for add in adds)
    yield from (f"it adds {path} {count} times" for path, count in added.items() if count > 1)
    removed = Counter(map(file_of, removes))
    yield from (f"it removes {file[0]} {count} times" for file, count in removed.items() if count > 1)


def _statistics(add: Raw) -> Iterator[str]:
    rows, vector = rows_of(add), add.get("deletionVector")
    hidden = vector.get("cardinality") if isinstance(vector, Mapping) else None
    if rows is None:
        return
    if isinstance(hidden, int) and hidden > rows:
        yield f"the vector of {add['path']} hides {hidden} rows, and the file has {rows}"
    stats = json.loads(str(add["stats"]))
    nulls = dict(_leaves(stats.get("nullCount")))
    for path, count in nulls.items():
        if isinstance(count, int) and not 0 <= count <= rows:
            yield f"statistics of {add['path']} state {count} nulls of {'.'.join(path)} in {rows} rows"
    lows, highs = dict(_leaves(stats.get("minValues"))), dict(_leaves(stats.get("maxValues")))
    for path in lows.keys() & highs.keys():
        if _is_above(lows[path], highs[path]):
            yield f"statistics of {add['path']} state a minimum of {'.'.join(path)} above its maximum"


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _leaves(each, (*path, str(name)))
    elif path and value is not None:
        yield path, value


def _is_above(low: object, high: object) -> bool:
    """Texts of different lengths may be numbers or times: only those of equal length are compared."""
    if isinstance(low, str) and isinstance(high, str):
        return len(low) == len(high) and low > high and low[:1] not in "+-" and high[:1] not in "+-"
    numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (low, high))
    return numbers and low > high  # type: ignore[operator]


def _spans(adds: Sequence[Raw], mark: int) -> Iterator[str]:
    spans = sorted(span for add in adds if (span := _span(add)) is not None)
    for first, last, path in spans:
        if last > mark:
            yield f"{path} has row ids {first} to {last}, above the high water mark, {mark}"
    for left, right in pairwise(spans):
        if right[0] <= left[1]:
            yield f"{left[2]} and {right[2]} have row ids in common, from {right[0]} on"


def _span(add: Raw) -> tuple[int, int, str] | None:
    base, rows = add.get("baseRowId"), rows_of(add)
    return (base, base + rows - 1, str(add["path"])) if isinstance(base, int) and rows else None


def _mark(commit: LoggedCommit, before: int | None) -> int | None:
    for body in commit.of("domainMetadata"):
        if body["domain"] == "delta.rowTracking" and body.get("removed") is not True:
            try:
                mark = json.loads(str(body["configuration"])).get("rowIdHighWaterMark")
            except (ValueError, AttributeError, RecursionError):
                return before
            return mark if isinstance(mark, int) else before
    return before


def _time_ms(commit: LoggedCommit) -> int | None:
    stated = commit.info.get("inCommitTimestamp")
    return stated if isinstance(stated, int) else None


def _changes(commit: LoggedCommit, files: Sequence[Raw]) -> Iterator[str]:
    """A commit that keeps rows has nothing to report to readers of the change feed."""
    reported = len(commit.of("cdc"))
    if reported and files and all(each.get("dataChange") is False for each in files):
        yield f"it states that it keeps rows, and has {reported} files of changes"
