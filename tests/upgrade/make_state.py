"""The sample tables -> the state that this Nightkeep stores of runs on them, as an archive for later releases.

Run once per release: `make release-state` writes `states/<version>`, which must not exist. The state of a
release is never made again: it stands for files that users of the release have.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from pyspark.sql import SparkSession
from samples.iceberg_places import place
from samples.leftovers import plant
from tests.drivers.toolchain import FEW_ROWS
from tests.formats.delta.hand_made import HandMade
from tests.support.disk import never_wait_for_the_disk
from tests.upgrade.shown import shown
from tests.upgrade.stored_state import EXPECTED, ICEBERG, STATES, pack, variables

import nightkeep
from nightkeep.commands.job import run_job
from nightkeep.groups import one_operation
from nightkeep.model.version import __version__
from nightkeep.nights.run_pages import RunPage, write_run
from nightkeep.nights.run_tables import RunOrder, find_all, found_option, night_option, order_all, run_policy
from nightkeep.nights.settled import parse, settle_results
from nightkeep.records import RunDocument
from nightkeep.running.rewrites import run_operation
from nightkeep.spark import session
from nightkeep_airflow.runs import run_prefix

ROOT: Final = Path(__file__).parents[2]
PAIMON: Final = ("orders", "customers", "events_raw", "stock", "untouched")
LAKE: Final = "warehouse/delta/shop.db"
DELTA: Final = ("clicks", "accounts")
NIGHT: Final = (
    "shop.orders",
    "shop.untouched",
    "lake.accounts",
    "lake.broken",
    "lake.foreign",
    "lake.first",
    "stream.customers",
)
SWEPT: Final = ("shop.orders", "lake.clicks", "stream.orders")

PROPERTIES: Final = {
    # Files go as soon as no version that stays needs them.
    "pending": {"delta.deletedFileRetentionDuration": "interval 0 hours"},
    # A property that nobody knows is refused.
    "foreign": {"nightkeep.foreign": "1"},
}

POLICY: Final = """\
version: 1
budget: {time: 2h}
defaults: {preset: balanced, tables_per_session: 20}
discover:
  - {paimon: warehouse/paimon, name: "shop.{table}"}
  - {delta: warehouse/delta/shop.db, name: "lake.{table}"}
  - {iceberg: lake, name: "stream.{table}"}
patterns:
  - {match: "*", check: {byte_budget: 1GB}, sweep: {mode: quarantine}, expire: {enabled: true}}
  # A delete of the greatest id breaks this, and puts the table on hold.
  - match: lake.watched_*
    expectations: [{type: expect_column_max_to_be_between, kwargs: {column: id, min_value: 119}}]
"""


class Killed(BaseException):
    """The process ends here, for all that the code above can do."""


def make(folder: Path, spark: SparkSession) -> None:
    """Place tables in `folder` and work on them, so that each kind of stored file is there."""
    for step in STEPS:
        begun = time.monotonic()
        step(folder, spark)
        print(f"{step.__name__}: {time.monotonic() - begun:.1f} s", flush=True)


def place_tables(folder: Path, _: SparkSession) -> None:
    """Small tables of the three formats, with what killed writers have left."""
    lake = folder / LAKE
    for name in PAIMON:
        shutil.copytree(ROOT / "samples/paimon/shop.db" / name, folder / "warehouse/paimon/shop.db" / name)
    for name in DELTA:
        shutil.copytree(ROOT / "samples/delta/shop.db" / name, lake / name)
    place(ROOT / "samples/iceberg", folder / ICEBERG)
    for name in ("first", "raced", "waiting", "watched_held", "watched_freed", "pending", "foreign"):
        made = HandMade(lake / name, properties=PROPERTIES.get(name))
        for day in ("2026-11-01", "2026-11-02"):
            for start in range(0, 120, 20):
                made.append(day, range(start, start + 20))
    (lake / "broken/_delta_log").mkdir(parents=True)
    (lake / f"broken/_delta_log/{0:020}.json").write_text("{")
    plant(folder / "warehouse", time.time())
    (folder / "tables.yaml").write_text(POLICY)


def run_night(folder: Path, _: SparkSession) -> None:
    """A run of the nightly DAG over some of the tables: its files, its job and its page."""
    policy, reports = str(folder / "tables.yaml"), str(folder / "reports")
    prefix = run_prefix("nightly", "scheduled__2026-11-25T02:00:00+00:00")
    order_all(find_all(policy, reports, prefix), reports, prefix, RunOrder.NIGHT)
    result = f"{reports}/~results/{prefix}-0.json"
    Path(result).parent.mkdir(parents=True)
    tables = [part for name in NIGHT for part in ("--table", name)]
    options = [*night_option(reports, prefix), *found_option(reports, prefix)]
    given = ["--policy", policy, "--reports", reports, "--run-id-prefix", prefix, "--result", result]
    assert run_job([*given, *options, *tables], operations=()) == 0
    settled = settle_results(NIGHT, parse(Path(result).read_text()))
    page = RunPage(prefix, "nightly, 2026-11-25 02:00", datetime.now(UTC))
    write_run(reports, page, settled, policy=run_policy(policy, reports, prefix))


def remove_files(_: Path, spark: SparkSession) -> None:
    """Sweeps that list, quarantine, and are restored; in the end a quarantine of each format is left."""
    nightkeep.sweep("shop.orders", run_id="listed", spark=spark)
    nightkeep.sweep("shop.orders", run_id="restored", quarantine=True, spark=spark)
    nightkeep.restore("shop.orders", "restored", spark=spark)
    for table in SWEPT:
        nightkeep.sweep(table, run_id="tidy", quarantine=True, spark=spark)
    nightkeep.expire("shop.events_raw", run_id="expired", delete=True, spark=spark)
    nightkeep.expire("stream.customers", run_id="expired", quarantine=True, spark=spark)


def delete_rows(_: Path, spark: SparkSession) -> None:
    """Rows deleted and verified."""
    nightkeep.delete("lake.clicks", rows_where="user_id = 7", run_id="erasure", spark=spark)


def put_on_hold(_: Path, spark: SparkSession) -> None:
    """Two tables put on hold by what a delete broke; one of them released, and maintained again."""
    for name in ("lake.watched_held", "lake.watched_freed"):
        nightkeep.delete(name, rows_where="id = 119", run_id="broken", spark=spark)
        nightkeep.run(name, run_id="on-hold", spark=spark)
    nightkeep.release("lake.watched_freed")
    nightkeep.run("lake.watched_freed", run_id="released", spark=spark)


def run_by_hand(folder: Path, spark: SparkSession) -> None:
    """A run that is verified, one that loses a race, and one whose version nobody checks."""
    nightkeep.run("lake.clicks", run_id="manual", spark=spark)
    with _before_publishing(lambda: HandMade.at(folder / LAKE / "raced").delete("2026-11-01", [1])):
        nightkeep.run("lake.raced", run_id="raced", spark=spark)
    nightkeep.run("stream.orders", run_id="unchecked", operation="persist-deletes", no_check=True, spark=spark)


def kill_runs(_: Path, spark: SparkSession) -> None:
    """Runs whose process ends before the check of what they published, and before they know that they published."""
    for table in ("shop.events_raw", "lake.pending"):
        with patch.object(one_operation, "_checked", _kill), _survived():
            nightkeep.run(table, run_id="before-check", spark=spark)
    real = run_operation.publish

    def publish(*arguments: Any, **named: Any) -> None:
        real(*arguments, **named)
        raise Killed

    with patch.object(run_operation, "publish", publish), _survived():
        nightkeep.run("shop.stock", run_id="after-commit", spark=spark)


def write_pages(_: Path, __: SparkSession) -> None:
    """The pages of all runs, and their index."""
    nightkeep.report()


STEPS: Final = (place_tables, run_night, remove_files, delete_rows, put_on_hold, run_by_hand, kill_runs, write_pages)


def _kill(*_: object, **__: object) -> None:
    raise Killed


@contextmanager
def _survived() -> Iterator[None]:
    """The block must end in Killed."""
    try:
        yield
    except Killed:
        return
    raise AssertionError("expected a run that was killed")


@contextmanager
def _before_publishing(work: Callable[[], None]) -> Iterator[None]:
    """Do `work` between the proof of a rewrite and its commit."""
    real = run_operation.publish

    def publish(*arguments: Any, **named: Any) -> Any:
        work()
        return real(*arguments, **named)

    with patch.object(run_operation, "publish", publish):
        yield


def quarantined(folder: Path) -> dict[str, dict[str, str]]:
    """Digests of the files in quarantine, by table and by their place at home relative to the table."""
    found = dict[str, dict[str, str]]()
    places = {
        "shop.orders": "warehouse/paimon/shop.db/orders",
        "lake.clicks": "warehouse/delta/shop.db/clicks",
        "stream.orders": f"{ICEBERG}/shop/orders",
    }
    for table, place_of in places.items():
        home = folder / place_of
        # Names are of the table's folder, or of the whole disk.
        root = Path("/") if table == "stream.orders" else home
        files = dict[str, str]()
        for line in (line for plan in home.rglob("plan-*.jsonl") for line in plan.read_text().splitlines()[1:]):
            move = json.loads(line)
            if (root / move["to"]).exists():
                name = str((root / move["path"]).relative_to(home))
                files[name] = hashlib.sha256((root / move["to"]).read_bytes()).hexdigest()
        found[table] = files
    return found


def _commit() -> str:
    asked = ["git", "log", "-1", "--format=%s", "--", "jobs", "plugins"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _written_by(documents: tuple[RunDocument, ...]) -> dict[str, object]:
    listed = [f"{each.table} {each.operation} {each.run_id}: {each.outcome}" for each in documents]
    return {
        "nightkeep": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "runs": sorted(listed),
    }


@contextmanager
def small_session() -> Iterator[SparkSession]:
    """A session for few rows, as tests have it."""
    never_wait_for_the_disk()
    settings = {name: FEW_ROWS.get(name, value) for name, value in session.SESSION.items()}
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join(f"--conf {n}={v}" for n, v in FEW_ROWS.items()) + " pyspark-shell"
    with (
        patch.object(session, "SESSION", settings),
        session.spark_session(master="local[2]", app_name="nightkeep-state", task_memory_bytes=1 << 30) as started,
    ):
        yield started


def main() -> None:
    target = STATES / __version__
    if target.exists():
        sys.exit(f"{target.relative_to(ROOT)}: expected no state of this release, found one; it is never made again")
    with tempfile.TemporaryDirectory(prefix="nightkeep-upgrade-") as scratch:
        folder = Path(scratch) / "state"
        folder.mkdir()
        os.environ.update(variables(folder))
        with small_session() as spark:
            make(folder, spark)
        facts = _written_by(nightkeep.history().documents)
        (folder / EXPECTED).write_text(json.dumps(shown() | {"quarantined": quarantined(folder)}, indent=1) + "\n")
        pack(folder, __version__)
    target.joinpath("written_by.json").write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
