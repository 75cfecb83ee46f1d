"""Old versions of Delta tables expired: files that the table no longer protects, and none that is still needed."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.formats.delta.hand_log import HandLog, add, remove, vector
from tests.formats.delta.runs import files, opened
from tests.formats.delta.sweeping import run_of, swept

from nightkeep.formats.delta.deletes import z85
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Expiry, Retention
from nightkeep.retention.expire_versions import ExpireOrder, ExpiryResult, expire_versions
from nightkeep.retention.file_check import check_files
from nightkeep.retention.orphans.memory_sets import MemorySets

NOW = 1_795_000_000_000
UUID = b"0123456789abcdef"
VECTORS = "deletion_vector_30313233-3435-3637-3839-616263646566.bin"
DATA = {name: f"part-0000{number}-{name}.parquet" for number, name in enumerate("abcdef")}


class Log(HandLog):
    """A log whose files exist; commits are a day apart, the last of `of` now."""

    def made(self, version: int, *actions: Mapping[str, Any], days: float) -> None:
        at_ms = int(NOW - days * DAY_MS)
        for action in actions:
            for kind in action.keys() & {"add", "cdc"}:
                file = self.folder / str(action[kind]["path"])
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(b"x" * 100)
        path = self.commit(version, {"commitInfo": {"timestamp": at_ms}}, *actions)
        os.utime(path, ns=(at_ms * 1_000_000,) * 2)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """a and b, one vector file for both, gone 20 days ago; c gone 10 days ago; d gone yesterday; e stays."""
    log = Log(tmp_path / "table")
    marks = vector(z85.encode(UUID))
    log.made(0, *log.head, added("a", deletionVector=marks), added("b"), added("c"), added("d"), added("e"), days=30)
    (log.folder / VECTORS).write_bytes(b"x")
    log.made(1, gone("a", 20, deletionVector=marks), gone("b", 20), change("old"), days=20)
    log.made(2, gone("c", 10), days=10)
    log.made(3, gone("d", 1), change("new"), days=1)
    return log


def added(name: str, **more: Any) -> Mapping[str, Any]:
    return add(DATA[name], **more)


def gone(name: str, days: float, **more: Any) -> Mapping[str, Any]:
    return remove(DATA[name], deletionTimestamp=int(NOW - days * DAY_MS), **more)


def change(name: str) -> Mapping[str, Any]:
    return {"cdc": {"path": f"_change_data/cdc-{name}.parquet", "size": 100, "partitionValues": {}}}


def expired(
    log: Log, mode: SweepMode = SweepMode.DELETE, *, about: Callable[[Expiry], None] = lambda expiry: None, **asked: Any
) -> tuple[ExpiryResult, set[str]]:
    """What an expiry says, and the files that are gone since; `about` is called before anything changes."""
    before = files(log.folder).keys()
    request = ExpireRequest(NOW, **asked)
    order = ExpireOrder(mode, request, Retention(NOW, request.older_than_ms or 0, request.keep))
    told = expire_versions(opened(log.folder).retention, order, run_of(), sets=MemorySets, before=about)
    return told, {name for name in before - files(log.folder).keys() if not name.startswith("_delta_log")}


def test_files_removed_before_the_tables_retention_go_with_vectors_and_change_files(log: Log) -> None:
    told, lost = expired(log)
    assert told.outcome is Outcome.VERIFIED
    assert lost == {DATA["a"], DATA["b"], DATA["c"], VECTORS, "_change_data/cdc-old.parquet"}
    commits = sorted(path.name for path in log.log.glob("[0-9]*.json"))
    assert commits == [f"{version:020d}.json" for version in range(6)]
    assert expired(log)[1] == set()


@pytest.mark.parametrize("mode", SweepMode)
def test_what_is_gone_already_is_not_let_go_again(log: Log, mode: SweepMode) -> None:
    expired(log)
    before = files(log.folder)
    told, _ = expired(log, mode, about=lambda expiry: pytest.fail("nothing is about to change"))
    assert (told.outcome, told.counted, files(log.folder)) == (Outcome.UNCHANGED, None, before)


def test_a_dry_run_changes_nothing(log: Log) -> None:
    before = files(log.folder)
    told, _ = expired(log, SweepMode.DRY_RUN)
    assert told.outcome is Outcome.SKIPPED and told.counted is not None
    assert told.counted.orphans.files == 5
    assert files(log.folder) == before


@pytest.mark.parametrize(
    ("asked", "lost"),
    [
        ({"older_than_ms": 15 * DAY_MS}, {"a", "b"}),
        ({"older_than_ms": 1}, {"a", "b", "c"}),
        ({"older_than_ms": 25 * DAY_MS}, set()),
        ({"retain_last": 1}, {"a", "b", "c"}),
        ({"retain_last": 3}, {"a", "b"}),
        ({"retain_last": 4}, set()),
        ({"retain_last": 9}, set()),
        ({"keep": frozenset({1})}, {"a", "b"}),
        ({"keep": frozenset({0, 3})}, set()),
    ],
)
def test_the_gentlest_of_table_and_caller_holds(log: Log, asked: dict[str, Any], lost: set[str]) -> None:
    _, found = expired(log, **asked)
    assert {name for name in DATA if DATA[name] in found} == lost
    assert (VECTORS in found) == ("a" in lost)


def test_a_file_that_came_back_and_a_vector_that_another_file_needs_stay(log: Log) -> None:
    shared = {**vector(z85.encode(UUID)), "offset": 60}
    log.made(4, added("b"), gone("e", 0), added("e", deletionVector=shared), days=0)
    assert expired(log)[1] == {DATA["a"], DATA["c"], "_change_data/cdc-old.parquet"}


def test_a_vector_file_that_a_retained_version_needs_stays(log: Log) -> None:
    """Both removals are old; only one of them is before the versions that are to stay."""
    shared = {**vector(z85.encode(UUID)), "offset": 60}
    log.made(4, gone("e", 9.5), added("e", deletionVector=shared), days=9.5)
    log.made(5, gone("e", 9, deletionVector=shared), days=9)
    assert {DATA["a"], VECTORS} & expired(log, retain_last=2)[1] == {DATA["a"]}


def test_what_only_a_checkpoint_still_reports_goes_too(log: Log) -> None:
    log.single(2, [*log.head, added("d"), added("e"), gone("a", 20), gone("c", 10)])
    for version in range(3):
        (log.log / f"{version:020d}.json").unlink()
    assert expired(log)[1] == {DATA["a"], DATA["c"]}


def test_nothing_to_let_go_changes_nothing(tmp_path: Path) -> None:
    log = Log(tmp_path / "table")
    log.made(0, *log.head, added("a"), days=30)
    before = files(log.folder)
    told, _ = expired(log)
    assert (told.outcome, told.expiry.roots) == (Outcome.UNCHANGED, ())
    assert files(log.folder) == before


def test_what_a_vacuum_took_of_a_version_that_waits_for_its_check_is_not_missed(log: Log) -> None:
    """The table's own retention let it go: no damage, whatever we would have liked to look at."""
    keep = frozenset({0})
    told, orphans = swept(log.folder, keep=keep)
    assert (told.outcome, orphans) == (Outcome.UNCHANGED, set())
    (log.folder / DATA["a"]).unlink()
    told, orphans = swept(log.folder, keep=keep)
    assert (told.outcome, orphans) == (Outcome.UNCHANGED, set())
    found = check_files(
        opened(log.folder).retention, Retention(NOW, 7 * DAY_MS, keep), sets=MemorySets, salt="x", sample=0
    )
    assert found.faults == 0


@pytest.mark.parametrize(
    ("asked", "reasons"),
    [
        ({}, {2: "no file of it was removed more than 7 days ago", 3: "the newest version"}),
        (
            {"keep": frozenset({1})},
            {
                1: "a run started from it that no check has judged",
                2: "later than version 1, which stays",
                3: "the newest version",
            },
        ),
        (
            {"retain_last": 3},
            {1: "one of the last 3 versions", 2: "one of the last 3 versions", 3: "the newest version"},
        ),
        (
            {"older_than_ms": 25 * DAY_MS},
            {**dict.fromkeys((0, 1, 2), "no file of it was removed more than 25 days ago"), 3: "the newest version"},
        ),
    ],
)
def test_every_version_that_stays_has_a_reason(log: Log, asked: dict[str, Any], reasons: Mapping[int, str]) -> None:
    told, _ = expired(log, SweepMode.DRY_RUN, **asked)
    assert dict(told.expiry.kept) == {f"version {version}": reason for version, reason in reasons.items()}


def test_a_file_that_only_got_another_vector_goes_from_no_version(tmp_path: Path) -> None:
    log = Log(tmp_path / "table")
    log.made(0, *log.head, added("a"), added("b"), days=30)
    marks = vector(z85.encode(UUID))
    log.made(1, gone("a", 20), added("a", deletionVector=marks), days=20)
    log.made(2, gone("a", 10, deletionVector=marks), gone("b", 10), days=10)
    (log.folder / VECTORS).write_bytes(b"x")
    log.made(3, added("a"), days=1)
    told, _ = expired(log, SweepMode.DRY_RUN, keep=frozenset({1}))
    assert {version for version, _ in told.expiry.kept} == {f"version {version}" for version in range(4)}
    told, _ = expired(log, SweepMode.DRY_RUN)
    assert {version for version, _ in told.expiry.kept} == {"version 2", "version 3"}
