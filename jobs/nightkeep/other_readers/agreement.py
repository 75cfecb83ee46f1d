"""Two versions with the same rows, read by another engine and by Nightkeep -> one more result of the check.

Four fingerprints identify whose reading differs, and of which version. That the engine reads other rows of the
published version than of the one before, or others than Nightkeep does, fails the check. Where both find that nothing
changed, and yet read the table differently, they did so before the commit: that is an error, and no fault of the
version.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from nightkeep.causes import failure_text
from nightkeep.errors import NightkeepError, RefusedTable
from nightkeep.formats import open_table
from nightkeep.formats.iceberg.metadata.branches import location_and_branch
from nightkeep.kernels.fingerprint import NOTHING, fingerprint
from nightkeep.model import Address, VersionIdentity
from nightkeep.model.check_values import READS, ReaderName
from nightkeep.other_readers.normal_form import normal_form
from nightkeep.other_readers.reader_process import OtherReader, ReaderProcess, RowsSeen, VersionRead
from nightkeep.protocol import Snapshot
from nightkeep.protocol.reading import OpenReading, ReadView
from nightkeep.reading.plan import plan_read
from nightkeep.reading.request import ReadRequest
from nightkeep.reading.splits import read_split
from nightkeep.records.check_report import CheckReport, ComparedVersions, ExpectationResult
from nightkeep.records.document import CheckStatus

OURS: Final = "Nightkeep"


@dataclass(frozen=True, slots=True)
class BothReaders:
    """What the engine and Nightkeep see of one version. `what` names the version and the view."""

    what: str
    theirs: RowsSeen
    ours: RowsSeen

    @property
    def agree(self) -> bool:
        return self.theirs.rows is not None and self.theirs.rows == self.ours.rows


def with_other_reader(
    report: CheckReport, address: Address, reader: OtherReader, *, byte_budget: int | None
) -> CheckReport:
    """The report with the other reader's result. A report of a check that compared nothing stays as it is."""
    if report.compared is None:
        return report
    started = time.perf_counter()
    result = compare_readers(address, report.compared, reader, byte_budget=byte_budget)
    if result.status is CheckStatus.FAILED and _is_gone(address, report):
        why = f"version {report.compared.version} was replaced or removed while it was read"
        result = replace(result, status=CheckStatus.ERRORED, detail=why)
    seconds = report.seconds + time.perf_counter() - started
    statuses = (report.status, result.status)
    worst = next((each for each in (CheckStatus.FAILED, CheckStatus.ERRORED) if each in statuses), report.status)
    passed = result.status is CheckStatus.PASSED
    coverage = f"{report.coverage}; {result.name}: {result.detail}" if passed else report.coverage
    return replace(report, status=worst, coverage=coverage, results=(*report.results, result), seconds=seconds)


def _is_gone(address: Address, report: CheckReport) -> bool:
    """Whether the version that was checked is no longer the one with its number."""
    checked = None if report.identity is None else VersionIdentity.parse(report.identity)
    return checked is not None and open_table(address).digest(checked.version) != checked.commit


def compare_readers(
    address: Address, compared: ComparedVersions, reader: OtherReader, *, byte_budget: int | None = None
) -> ExpectationResult:
    """Whether both readers see the same rows, of both versions."""
    why = _why_not(address, compared, reader.name, byte_budget)
    if why is not None:
        return _result(reader.name, CheckStatus.SKIPPED, why)
    with ReaderProcess(reader) as process:
        return ask(address, compared, process)


def ask(address: Address, compared: ComparedVersions, process: ReaderProcess) -> ExpectationResult:
    """As `compare_readers`, of an engine that has been started."""
    try:
        seen = list(_seen(address, compared, process))
    except NightkeepError as failure:
        status = CheckStatus.SKIPPED if isinstance(failure, RefusedTable) else CheckStatus.ERRORED
        return _result(process.engine, status, f"{OURS} cannot read it: {failure_text(failure)}")
    return _result(process.engine, *judge(process.engine, *seen))


def judge(engine: str, before: BothReaders, after: BothReaders, *others: BothReaders) -> tuple[CheckStatus, str]:
    """The status and the reason. `others`: the published version in other views."""
    every = (before, after, *others)
    ended = [f"{each.what}: {each.theirs.reason}" for each in every if each.theirs.ended]
    unread = [f"{engine} cannot read {each.what}: {each.theirs.reason}" for each in every if each.theirs.rows is None]
    differ = [_difference(engine, each) for each in every if each.theirs.rows is not None and not each.agree]
    if ended:
        return CheckStatus.ERRORED, ended[0]
    if before.theirs.rows is not None and after.theirs.rows is None:
        return CheckStatus.ERRORED, f"{unread[0]}; it reads {before.what}"
    if _differ_alike(before, after):
        return CheckStatus.ERRORED, f"both find nothing changed, but read it differently: {differ[0]}"
    change = _change(engine, before, after)
    if change or differ:
        return CheckStatus.FAILED, "; ".join([*([change] if change else []), *differ])
    if unread:
        return CheckStatus.SKIPPED, "; ".join(unread)
    assert after.theirs.rows is not None
    return CheckStatus.PASSED, f"{after.theirs.rows.rows:,} rows of {' and of '.join(each.what for each in every)}"


def _differ_alike(before: BothReaders, after: BothReaders) -> bool:
    """Whether the readers disagree, but neither sees a change."""
    if before.theirs.rows is None or before.agree:
        return False
    return before.theirs.rows == after.theirs.rows and before.ours.rows == after.ours.rows


def _change(engine: str, before: BothReaders, after: BothReaders) -> str | None:
    """What the engine sees to have changed."""
    was, now = before.theirs.rows, after.theirs.rows
    if was is None or now is None or was == now:
        return None
    other = "others" if was.rows == now.rows else f"{now.rows:,}"
    return f"{engine} reads {was.rows:,} rows of {before.what}, {other} of {after.what}"


def _difference(engine: str, seen: BothReaders) -> str:
    theirs, ours = seen.theirs.rows, seen.ours.rows
    assert theirs is not None and ours is not None
    other = " others" if theirs.rows == ours.rows else f" {ours.rows:,}"
    return f"{seen.what}: {engine} reads {theirs.rows:,} rows, {OURS}{other}"


def _result(engine: str, status: CheckStatus, why: str) -> ExpectationResult:
    return ExpectationResult(f"{engine} and {OURS} read the same rows", None, status, why)


def _why_not(address: Address, compared: ComparedVersions, name: ReaderName, byte_budget: int | None) -> str | None:
    """Why there is nothing to ask of this engine."""
    if address.format not in READS[name]:
        return f"{name} reads no {address.format} tables"
    if compared.changes_rows:
        return f"version {compared.version} changes rows, and the condition is known to {OURS} alone"
    if byte_budget is not None and compared.bytes > byte_budget:
        return f"both versions have {compared.bytes:,} bytes, more than check.byte_budget, {byte_budget:,}"
    if name in _OF_FOLDERS and _folder(address) is None:
        return f"{name} is asked about tables in folders only"
    return None


_OF_FOLDERS: Final = frozenset({ReaderName.DUCKDB, ReaderName.PYPAIMON})
"""Engines that take credentials for buckets in a way of their own, not from the environment."""


def _seen(address: Address, compared: ComparedVersions, process: ReaderProcess) -> Iterator[BothReaders]:
    """The parent, then the published version."""
    yield next(read_by_both(address, compared.parent, process))
    yield from read_by_both(address, compared.version, process)


def read_by_both(address: Address, version: int, process: ReaderProcess) -> Iterator[BothReaders]:
    """A version with all of its files merged; then as batch readers see it, if that may show others.

    Raises RefusedTable, UsageError and EvidenceError if Nightkeep cannot read it.
    """
    reading, merges = _reading(address), address.format == "paimon"
    request = VersionRead(address.format, _location(address, process.name), version, merges)
    yield _both(address, reading, request, ReadView.MERGE_ON_READ if merges else None, process)
    if merges and _shows_less(reading, reading.snapshot(version)):
        yield _both(address, reading, replace(request, merged=False), None, process)


def _shows_less(reading: OpenReading, snapshot: Snapshot) -> bool:
    """Whether a batch read looks at other files than a merge does, or at the same ones in another way."""
    default = reading.default_view(snapshot)
    return default is not ReadView.MERGE_ON_READ and bool(
        reading.sections(snapshot, default) != reading.sections(snapshot, ReadView.MERGE_ON_READ)
    )


def _both(
    address: Address, reading: OpenReading, request: VersionRead, view: ReadView | None, process: ReaderProcess
) -> BothReaders:
    planned = plan_read(address.name, address.format, reading, ReadRequest(version=request.version, view=view))
    schema = planned.shown.schema
    theirs = process.read(request, schema)
    rows = NOTHING
    for split in planned.splits:
        for batch in read_split(planned.files, split, planned.shown):
            rows += fingerprint(normal_form(batch, schema))
    what = f"version {request.version}{', merged' if request.merged else ''}"
    return BothReaders(what, theirs, RowsSeen(rows))


def _reading(address: Address) -> OpenReading:
    reading = open_table(address).reading
    assert reading is not None, f"{address.format}: expected a format in READS"
    return reading


def _location(address: Address, name: ReaderName) -> str:
    """How the engine names the table. Of Iceberg, pyiceberg asks the catalog, and DuckDB gets the metadata file."""
    if address.format == "iceberg" and name is ReaderName.DUCKDB:
        from nightkeep.formats.iceberg.catalog.catalog import open_handle  # noqa: PLC0415 -- pyiceberg

        return _path(open_handle(address.location).load()[1]) or ""
    return _folder(address) or address.location


def _folder(address: Address) -> str | None:
    if address.format != "iceberg":
        return _path(address.location)
    # Versions are read by their ids, which a branch shares with the table.
    return location_and_branch(address.location)[0]


def _path(location: str) -> str | None:
    """The path of a location on this machine, None of one elsewhere."""
    if "://" not in location and not location.startswith("file:"):
        return str(Path(location).absolute())
    parts = urlsplit(location)
    return unquote(parts.path) if parts.scheme == "file" else None
