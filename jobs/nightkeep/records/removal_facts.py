"""Keys that documents of sweeps, expiries and restores have beside those of every run. Types alone."""

from __future__ import annotations

from typing import TypedDict


class FileCount(TypedDict):
    """A number of files, and their bytes."""

    files: int
    bytes: int


class OrphanRow(TypedDict):
    """A file that nothing needs: an entry of `orphans`, and a line of `orphans_file`."""

    path: str
    bytes: int
    modified_at: str
    kind: str


class UnremovedFile(TypedDict):
    """A file that could not be moved or removed, and why."""

    path: str
    reason: str


class KeptVersion(TypedDict):
    """A version that did not expire, and why."""

    version: int | str
    reason: str


class LogFacts(TypedDict):
    """What an expiry did about a table's log, or would do. `checkpoints`: versions that got one. `oldest`: the version
    before which log files were removed, null if none were. `files`: the first 1,000 of them."""

    checkpoints: list[int]
    oldest: int | None
    removed: FileCount
    files: list[str]


class RemovalFacts(TypedDict, total=False):
    """What a removal found and did. A document that ended before that lacks these keys, and null is what was not
    counted.

    `found_by`: `listing` or `log`, where a sweep found candidates. `log_since`: the version after which the log was
    read, null for all of it; `log_through`: the version up to which nothing that the log names as removed is left.
    `orphans`: the first 1,000; `orphans_file` has all. `evidence`: whether other metadata proves the lists of live
    files complete; `unproven` states why not. `acted`: files that were removed, quarantined or restored; `left`: those
    that were kept in the end; `purged`: those of old quarantines; `failed`: those that could not be. `closed`:
    quarantines that are empty now. `expired`: versions by number, or branches and tags by name. `plan_digest`: of what
    is listed, as `--expect-plan` takes it.
    """

    mode: str
    plan_digest: str
    cutoff: str
    found_by: str
    log_since: int | None
    log_through: int | None
    orphans: list[OrphanRow]
    orphans_total: int
    orphans_bytes: int
    orphans_file: str | None
    by_kind: dict[str, FileCount]
    by_age: dict[str, FileCount]
    listed_files: int | None
    live_files: int | None
    young_files: int | None
    unknown_files: int | None
    doubted_files: int | None
    needed_files: int | None
    evidence: str | None
    unproven: list[str]
    acted: FileCount
    left: FileCount
    purged: FileCount
    failed: list[UnremovedFile]
    quarantine: str | None
    closed: list[str]
    notes: list[str]
    expired: list[int | str]
    kept: list[KeptVersion]
    restored_run: str
    changed: bool
    finished: bool
    earlier: dict[str, object]
    log: LogFacts
