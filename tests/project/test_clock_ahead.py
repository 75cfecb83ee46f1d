"""Clocks that are ahead, ours or another writer's: nothing of ours is of the future, and nothing goes too early or
stays for good."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.delta.hand_log import HandLog, add, remove
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.runs import files, optimize
from tests.formats.delta.runs import opened as delta
from tests.formats.delta.sweeping import run_of
from tests.formats.iceberg import runs
from tests.formats.iceberg.sweeping import rewritten
from tests.formats.paimon.contents import SAMPLES
from tests.formats.paimon.contents import opened as paimon
from tests.formats.paimon.keeping import expired as paimon_expired
from tests.formats.paimon.upgrade import upgrade

from nightkeep.model import Operation, Outcome, Run, run_token
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.retention.expire_versions import ExpireOrder, ExpiryResult, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sweep_request import SweepOrder
from nightkeep.retention.orphans.sweep_table import sweep_table
from nightkeep.storage import LocalStorage
from nightkeep.storage.times import TICK_MS, happened_ms, not_ahead

HOUR_MS = DAY_MS // 24
YEARS_MS = 3650 * DAY_MS
DAYS = ("2026-11-01", "2026-11-02")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock that runs go by is three days ahead; the store's is not."""
    asked: list[int] = []

    def time_ns() -> int:
        asked.append(time.time_ns() + 3 * DAY_MS * 1_000_000)
        return asked[-1]

    monkeypatch.setattr("nightkeep.admission.order.time", SimpleNamespace(time_ns=time_ns))
    yield
    assert asked


@pytest.fixture
def stock(tmp_path: Path) -> Path:
    """A Paimon table of three snapshots."""
    return Path(shutil.copytree(SAMPLES / "stock", tmp_path / "stock"))


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    """A Delta table with in-commit timestamps."""
    made = HandMade(tmp_path / "made", row_ids=True)
    for day in DAYS:
        for start in (0, 40, 80):
            made.append(day, range(start, start + 40))
    return made


@pytest.fixture
def iceberg_table(iceberg_java: IcebergJava, iceberg: Warehouse) -> Iterator[Table]:
    with runs.configured(iceberg):
        table = iceberg.table()
        runs.changed(iceberg_java, table, version=2)
        yield table


def snapshot_json(table: Path, number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((table / f"snapshot/snapshot-{number}").read_text())
    return found


def touched(path: Path, ms: int) -> None:
    os.utime(path, ns=(ms * 1_000_000,) * 2)


# The two rules


def test_a_time_of_ours_stands_unless_it_is_ahead_of_the_stores(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.put("written", b"")
    touched(tmp_path / "written", 1_000_000)
    for ours, told in ((999_000, 999_000), (1_000_000 + TICK_MS, 1_000_000 + TICK_MS), (2_000_000, 1_000_000)):
        assert not_ahead(ours, storage, "written") == told


@pytest.mark.parametrize(
    ("times", "told"), [((5, 3), 5), ((11, 3), 3), ((11, 12), 10), ((10,), 10), ((), 10), ((11, 12, 1), 1)]
)
def test_the_first_time_that_is_not_ahead_reports(times: tuple[int, ...], told: int) -> None:
    assert happened_ms(10, iter(times)) == told


# Our own clock


def test_a_snapshot_of_paimon_is_of_the_stores_time(stock: Path, ahead: None) -> None:
    assert upgrade(stock).outcome is Outcome.VERIFIED
    assert snapshot_json(stock, 3)["timeMillis"] <= snapshot_json(stock, 4)["timeMillis"] <= now_ms()


def test_a_commit_of_delta_is_of_the_stores_time(made: HandMade, ahead: None) -> None:
    assert optimize(made.folder).outcome is Outcome.VERIFIED
    info, now = made.all("commitInfo")[-1]["commitInfo"], now_ms()
    removed = [each["remove"]["deletionTimestamp"] for each in made.all("remove")]
    assert removed and max(removed) <= now
    assert info["timestamp"] <= now and info["inCommitTimestamp"] <= now
    assert not [name for name in files(made.folder) if ".staged-" in name]


def test_a_snapshot_of_iceberg_is_of_the_stores_time(
    iceberg_table: Table, iceberg_java: IcebergJava, ahead: None
) -> None:
    """Java refuses a table that was last updated more than a minute from now."""
    assert runs.care_for(iceberg_table).outcome is Outcome.VERIFIED
    document = iceberg_table.document()
    assert max(each["timestamp-ms"] for each in document["snapshots"]) <= document["last-updated-ms"] <= now_ms()
    iceberg_java.append(iceberg_table, [runs.row(DAYS[0], 7000)])


def a_month_later(run_id: str, operation: Operation) -> Run:
    return Run(run_id, run_token(run_id, operation), "later", now_ms() + 30 * DAY_MS)


def test_a_run_finds_its_own_commit_of_paimon_by_a_clock_that_is_ahead(stock: Path) -> None:
    assert upgrade(stock, run_id="ours").outcome is Outcome.VERIFIED
    raw = snapshot_json(stock, 4)
    (stock / "snapshot/snapshot-5").write_text(json.dumps({**raw, "id": 5, "commitUser": "another"}))
    (found,) = paimon(stock).commits.committed(a_month_later("ours", Operation.UPGRADE))
    assert found.version == 4


def test_a_look_back_for_lost_deletes_goes_by_the_newest_snapshot(stock: Path) -> None:
    table = paimon(stock)
    head = table.snapshot()
    assert table.watch(head, None, now_ms=now_ms() + YEARS_MS) == table.watch(head, None, now_ms=now_ms())


# Another writer's clock


@pytest.fixture
def from_the_future(stock: Path) -> Path:
    """The second of three snapshots, and the last, are of a clock that was ahead by years."""
    for number in (2, 3):
        path = stock / f"snapshot/snapshot-{number}"
        path.write_text(json.dumps({**snapshot_json(stock, number), "timeMillis": now_ms() + YEARS_MS + number}))
    schema = stock / "schema/schema-1"
    told = json.loads(schema.read_text())
    told["options"] |= {"snapshot.num-retained.min": "1", "snapshot.time-retained": "1 d"}
    schema.write_text(json.dumps(told))
    return stock


@pytest.mark.parametrize(
    ("days", "going"),
    [((9, 9, 9), [1, 2]), ((9, 9, 0.5), [1]), ((9, 0.5, 0.5), []), ((9, -9, 9), [1, 2]), ((9, -9, 0.5), [])],
    ids=["old", "the last is young", "both are young", "a file of the future", "and then a young one"],
)
def test_snapshots_of_paimon_go_by_their_files(
    from_the_future: Path, days: tuple[float, float, float], going: list[int]
) -> None:
    for number, age in enumerate(days, 1):
        touched(from_the_future / f"snapshot/snapshot-{number}", int(now_ms() - age * DAY_MS))
    done = paimon_expired(from_the_future)
    assert [root.version for root in done.expiry.roots] == going
    assert done.outcome is (Outcome.VERIFIED if going else Outcome.UNCHANGED)


def test_a_run_on_a_snapshot_of_the_future_goes_on_from_its_time(from_the_future: Path) -> None:
    """Readers that travel by time search for it."""
    assert upgrade(from_the_future).outcome is Outcome.VERIFIED
    assert snapshot_json(from_the_future, 4)["timeMillis"] == snapshot_json(from_the_future, 3)["timeMillis"]


class Log(HandLog):
    """A Delta log whose files exist, by times of a clock that is ahead by years."""

    def made(self, version: int, *actions: Mapping[str, Any], days: float) -> Path:
        for action in actions:
            if "add" in action:
                (self.folder / action["add"]["path"]).write_bytes(b"x" * 100)
        ms = now_ms() + YEARS_MS + version
        path = self.commit(version, {"commitInfo": {"timestamp": ms, "inCommitTimestamp": ms}}, *actions)
        touched(path, int(now_ms() - days * DAY_MS))
        return path


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """a was removed 20 days ago and b yesterday, by the store's clock; c stays."""
    log = Log(tmp_path / "log")
    log.log.mkdir(parents=True)
    log.made(0, *log.head, added("a"), added("b"), added("c"), days=30)
    log.made(1, gone("a"), days=20)
    log.made(2, gone("b"), days=1)
    return log


def data(name: str) -> str:
    return f"part-00000-{name}.parquet"


def added(name: str) -> Mapping[str, Any]:
    return add(data(name))


def gone(name: str) -> Mapping[str, Any]:
    return remove(data(name), deletionTimestamp=now_ms() + YEARS_MS)


def expired(log: Log, *, clock: Callable[[], int] = now_ms) -> tuple[ExpiryResult, set[str]]:
    """What an expiry says, and which data files are gone since."""
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(clock()), Retention(clock(), 0))
    done = expire_versions(
        delta(log.folder).retention, order, run_of(), sets=MemorySets, before=lambda _: None, clock=clock
    )
    return done, {name for name in "abc" if not (log.folder / data(name)).exists()}


def test_files_of_delta_go_by_the_files_of_the_commits_that_removed_them(log: Log) -> None:
    done, lost = expired(log)
    assert (done.outcome, lost) == (Outcome.VERIFIED, {"a"})


@pytest.mark.parametrize(("days", "lost"), [(10, {"a"}), (1, set()), (-10, set())])
def test_what_only_a_checkpoint_reports_goes_by_its_file(log: Log, days: float, lost: set[str]) -> None:
    log.single(1, [*log.head, added("b"), added("c"), gone("a")])
    touched(log.log / f"{1:020d}.checkpoint.parquet", int(now_ms() - days * DAY_MS))
    for version in range(2):
        (log.log / f"{version:020d}.json").unlink()
    assert expired(log)[1] == lost


def test_files_that_a_run_removes_from_a_table_of_the_future_are_removed_now(made: HandMade) -> None:
    """What says when it was removed in the future stays until then."""
    last = max((made.folder / "_delta_log").glob("[0-9]*.json"))
    first, *others = last.read_text().splitlines()
    future = now_ms() + YEARS_MS
    info = json.loads(first)["commitInfo"] | {"timestamp": future, "inCommitTimestamp": future}
    last.write_text("\n".join([json.dumps({"commitInfo": info}), *others, ""]))
    assert optimize(made.folder).outcome is Outcome.VERIFIED
    removed = [each["remove"]["deletionTimestamp"] for each in made.all("remove")]
    assert removed and max(removed) <= now_ms()
    # The protocol wants them to ascend.
    assert made.all("commitInfo")[-1]["commitInfo"]["inCommitTimestamp"] == future + 1


def of_the_future(table: Table, *days: float) -> None:
    """All snapshots are of a clock that is ahead by years; their manifest lists of so many days ago, or of now."""
    snapshots = table.document()["snapshots"]
    ages = [*days, *[0.0] * (len(snapshots) - len(days))]
    for place, (snapshot, age) in enumerate(zip(snapshots, ages, strict=True)):
        snapshot["timestamp-ms"] = now_ms() + YEARS_MS + place
        touched(Path(snapshot["manifest-list"].removeprefix("file:")), int(now_ms() - age * DAY_MS))
    log = [{"snapshot-id": each["snapshot-id"], "timestamp-ms": each["timestamp-ms"]} for each in snapshots]
    rewritten(table, **{"snapshots": snapshots, "snapshot-log": log, "last-updated-ms": log[-1]["timestamp-ms"]})


def test_snapshots_of_iceberg_go_by_their_manifest_lists(iceberg_table: Table) -> None:
    of_the_future(iceberg_table, 9, 9, 1)
    before = [each["snapshot-id"] for each in iceberg_table.document()["snapshots"]]
    order = ExpireOrder(SweepMode.DELETE, ExpireRequest(now_ms()), Retention(now_ms(), 0))
    table = runs.opened(iceberg_table)
    done = expire_versions(
        table.retention, order, Run("expiry", "0" * 16, "a", now_ms()), sets=MemorySets, before=lambda _: None
    )
    assert done.outcome is Outcome.VERIFIED
    assert [each["snapshot-id"] for each in iceberg_table.document()["snapshots"]] == before[2:]


def test_a_run_on_an_iceberg_snapshot_of_the_future_goes_on_from_its_time(iceberg_table: Table) -> None:
    of_the_future(iceberg_table)
    before = iceberg_table.document()["last-updated-ms"]
    assert runs.care_for(iceberg_table).outcome is Outcome.VERIFIED
    document = iceberg_table.document()
    assert (document["last-updated-ms"], document["snapshots"][-1]["timestamp-ms"]) == (before, before)


# Sweeps and expiries, where ours is ahead by less than what is refused


def half_an_hour_ahead() -> int:
    return now_ms() + HOUR_MS // 2


def test_a_tombstone_is_as_old_as_the_store_reports(log: Log) -> None:
    """Within the table's own week still, by the store's clock, and past it by ours."""
    touched(log.log / f"{1:020d}.json", now_ms() - 7 * DAY_MS + HOUR_MS // 4)
    touched(log.folder / data("a"), now_ms() - 30 * DAY_MS)
    run = Run("weekly", run_token("weekly", Operation.SWEEP), "a", half_an_hour_ahead())
    sets = MemorySets()
    order = SweepOrder(SweepMode.DELETE, max_share=1.0)
    assert (
        sweep_table(delta(log.folder).retention, order, run, sets=sets, clock=half_an_hour_ahead).outcome
        is Outcome.UNCHANGED
    )
    sets.close()
    assert (log.folder / data("a")).exists()
    assert expired(log, clock=half_an_hour_ahead)[1] == set()


def test_what_a_history_reports_removals_is_of_the_stores_time(tmp_path: Path) -> None:
    made = HandMade(tmp_path / "made", row_ids=True)
    made.append(DAYS[0], range(10))
    orphan = made.folder / f"day={DAYS[0]}/part-00000-0123abcd-0000-4000-8000-00000000beef.c000.snappy.parquet"
    orphan.write_bytes(b"left behind")
    touched(orphan, now_ms() - 30 * DAY_MS)
    run = Run("weekly", run_token("weekly", Operation.SWEEP), "a", half_an_hour_ahead())
    sets = MemorySets()
    order = SweepOrder(SweepMode.DELETE, max_share=1.0)
    assert (
        sweep_table(delta(made.folder).retention, order, run, sets=sets, clock=half_an_hour_ahead).outcome
        is Outcome.VERIFIED
    )
    sets.close()
    told = [each["commitInfo"] for each in made.all("commitInfo")][-2:]
    assert [each["operation"] for each in told] == ["VACUUM START", "VACUUM END"]
    assert max(each[name] for each in told for name in ("timestamp", "inCommitTimestamp")) <= now_ms()
