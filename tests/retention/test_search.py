"""Where a sweep finds candidates: by the order, the policy's interval, and how far earlier sweeps have come."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.formats.delta.breaking import breaking
from tests.formats.delta.swept_log import SweptLog, grown, name
from tests.support.faulty_store import Fuse, Point, fail

import nightkeep
from nightkeep.errors import UsageError
from nightkeep.records import RunDocument
from nightkeep.records.sweep_marks import SweepMark, keep_sweep_mark, sweep_mark


class Swept:
    """A table of a policy that lists folders every four weeks."""

    def __init__(self, folder: Path) -> None:
        self.log, self.folder = grown(folder / "table"), folder
        self.policy, self.reports = folder / "tables.yaml", folder / "reports"
        self.write("{list_every: 28d, max_share: 1.0}")

    def write(self, sweep: str) -> None:
        table = f"  - table: delta:{self.log.folder}\n    name: db.events\n    sweep: {sweep}\n"
        self.policy.write_text(f"version: 1\ntables:\n{table}")

    def sweep(self, **options: Any) -> RunDocument:
        asked = {"delete": True, **options}
        return nightkeep.sweep("db.events", policy=self.policy, reports=self.reports, no_check=True, **asked)

    @property
    def mark(self) -> SweepMark | None:
        return sweep_mark(self.reports, "db.events")

    def listed(self, days: float) -> None:
        """The folders were last listed so many days ago."""
        mark = self.mark
        assert mark is not None
        at = datetime.now(UTC) - timedelta(days=days)
        changed = {field: getattr(mark, field) for field in ("table", "table_id", "version", "digest", "swept_at")}
        keep_sweep_mark(self.reports, SweepMark(**changed, listed_at=at))


@pytest.fixture
def table(tmp_path: Path) -> Swept:
    return Swept(tmp_path)


def how(document: RunDocument) -> tuple[object, object, object]:
    return document.extra["found_by"], document.extra["log_since"], document.extra["log_through"]


def test_the_first_sweep_lists_and_the_next_ones_read_the_log(table: Swept) -> None:
    first = table.sweep()
    # A listing leaves a day more to the next sweep: writers' clocks may be ahead of the store's.
    assert (first.outcome, how(first)) == ("verified", ("listing", None, 2))
    assert first.extra["orphans_total"] == 6
    assert "the folders were listed: no earlier sweep is on record that listed them" in str(first.extra["notes"])
    second = table.sweep()
    assert (second.outcome, how(second)) == ("unchanged", ("log", 2, 2))
    assert table.mark is not None and table.mark.listed_at is not None


def test_a_listing_is_due_after_the_interval(table: Swept) -> None:
    table.sweep()
    table.log.leave(name("x"), days=30)
    table.listed(27)
    assert (table.sweep().extra["orphans_total"], name("x") in table.log.names) == (0, True)
    table.listed(29)
    again = table.sweep()
    assert how(again)[0] == "listing" and name("x") not in table.log.names
    assert "they were listed 28d ago or earlier" in str(again.extra["notes"])


def test_a_time_ahead_of_ours_makes_a_listing_due(table: Swept) -> None:
    table.sweep()
    table.listed(-1)
    assert how(table.sweep())[0] == "listing"


def test_without_an_interval_each_sweep_lists(table: Swept) -> None:
    table.write("{max_share: 1.0}")
    assert how(table.sweep())[0] == "listing"
    assert how(table.sweep())[0] == "listing"


def test_the_order_overrides_the_interval(table: Swept) -> None:
    first = table.sweep(find="log")
    assert (first.outcome, how(first)) == ("verified", ("log", None, 2))
    assert name("k") in table.log.names
    assert table.mark is not None and table.mark.listed_at is None
    assert how(table.sweep(find="listing")) == ("listing", None, 2)
    assert name("k") not in table.log.names
    assert how(table.sweep(find="log")) == ("log", 2, 2)


def test_a_dry_run_moves_no_mark(table: Swept) -> None:
    shown = table.sweep(find="log", delete=False)
    assert (shown.outcome, shown.extra["orphans_total"], table.mark) == ("skipped", 5, None)
    assert how(shown) == ("log", None, None)


def test_files_of_one_run_are_found_by_a_listing(table: Swept) -> None:
    table.sweep()
    assert how(table.sweep(run="nightly-1"))[0] == "listing"
    with pytest.raises(UsageError, match="--find log and --run"):
        table.sweep(run="nightly-1", find="log")
    with pytest.raises(UsageError, match="--find: expected listing or log, found 'ls'"):
        table.sweep(find="ls")


def test_a_mark_that_is_lost_or_damaged_means_a_listing(table: Swept) -> None:
    table.sweep()
    path = table.reports / "~sweeps" / "db.events.json"
    path.write_text(path.read_text()[:40])
    assert how(table.sweep())[0] == "listing"
    path.unlink()
    assert how(table.sweep())[0] == "listing"


def test_a_log_with_a_gap_means_a_listing_and_refuses_an_order_for_the_log(table: Swept) -> None:
    table.sweep()
    table.log.single(3, table.log.head)
    for version in (0, 1, 2):
        (table.log.log / f"{version:020d}.json").unlink()
    refused = table.sweep(find="log")
    assert refused.outcome == "refused"
    assert "commit 2, up to which the sweep on record went, is gone" in str(refused.reason)
    assert "sweep once by a listing" in str(refused.reason)
    # Not even a file that no version needs goes without evidence: it is quarantined.
    listed = table.sweep(delete=False, quarantine=True)
    assert how(listed)[0] == "listing"
    assert "the folders were listed: commit 2" in str(listed.extra["notes"])


def test_another_table_of_the_same_name_begins_anew(table: Swept) -> None:
    table.sweep()
    shutil.rmtree(table.log.folder)
    log = SweptLog(table.log.folder)
    table.log = grown(log.folder)
    head = (log.log / f"{0:020d}.json").read_text()
    (log.log / f"{0:020d}.json").write_text(head.replace("00000000-0000", "11111111-0000"))
    # The log is whole, so that it can be read from its start.
    assert how(table.sweep(find="log"))[:2] == ("log", None)


def test_a_restore_forgets_the_mark(table: Swept) -> None:
    done = table.sweep(find="log", delete=False, quarantine=True, run_id="tidy")
    assert done.outcome == "verified" and table.mark is not None
    assert nightkeep.restore("db.events", "tidy", policy=table.policy, reports=table.reports, dry_run=True)
    assert table.mark is not None
    back = nightkeep.restore("db.events", "tidy", policy=table.policy, reports=table.reports)
    assert back.outcome == "verified" and table.mark is None
    assert table.sweep(find="log").extra["acted"] == done.extra["acted"]


def test_a_file_that_could_not_be_deleted_is_found_again(table: Swept) -> None:
    class Refusing(Fuse):
        def pass_on(self, point: Point) -> None:
            if point.step == "delete" and point.name == name("b"):
                fail(point)

    with breaking(Refusing()):
        failed = table.sweep(find="log")
    assert failed.outcome == "failed" and table.mark is None
    assert name("b") in str(failed.extra["failed"])
    again = table.sweep(find="log")
    assert again.extra["acted"] == {"files": 1, "bytes": 100}
    assert table.mark is not None and table.mark.version == 2


def test_reports_that_cannot_keep_the_mark_cost_a_listing(table: Swept) -> None:
    (table.reports / "~sweeps").parent.mkdir(parents=True)
    (table.reports / "~sweeps").write_text("a file, where the folder of marks should be")
    assert table.sweep(find="log").outcome == "verified"
    assert how(table.sweep())[0] == "listing"


def test_the_log_is_for_delta_alone(table: Swept, tmp_path: Path) -> None:
    sample = Path(__file__).parents[2] / "samples/paimon/shop.db/orders"
    shutil.copytree(sample, tmp_path / "orders")
    with pytest.raises(UsageError, match="expected a table of Delta Lake"):
        nightkeep.sweep(f"paimon:{tmp_path / 'orders'}", find="log", reports=table.reports)
