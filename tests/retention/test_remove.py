"""Sweeps, restores and expiries of tables that engines wrote: outcomes, documents, what is left; deaths on the way."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from samples import iceberg_places
from tests.drivers.memory_engine import MemoryEngine

from nightkeep.admission.order import Order, RemovalOptions
from nightkeep.checking import on_spark
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats import open_table
from nightkeep.groups import one_operation
from nightkeep.groups.one_operation import run_one
from nightkeep.groups.session.run_group import sweep_group
from nightkeep.groups.session.table_group import TableGroup
from nightkeep.model import Fingerprint, Operation, Outcome, View
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy, load, parse_window
from nightkeep.policy.units import Windows
from nightkeep.records import CheckStatus, Expectations, RunDocument, held, hold, load_document, store
from nightkeep.retention.kept_versions import unchecked_versions
from nightkeep.retention.sweep import sweep_orphans
from nightkeep.spark.engine import Engine

SAMPLES = Path(__file__).parents[2] / "samples"
TABLES = {"delta": "delta/shop.db/clicks", "paimon": "paimon/shop.db/customers"}
OLD = {"delta": "part-00000-left over %20 \u00c4.c000.snappy.parquet", "paimon": "bucket-0/data-left-over-0.parquet"}
OLD["iceberg"] = "data/day=2026-11-01/00000-1-579d7cd3-a6bb-418f-bc48-a9fad92d5610-00001.parquet"
YOUNG = {"delta": "part-00001-young.c000.snappy.parquet", "paimon": "bucket-0/data-young-0.parquet"}
DAY = 24 * 60 * 60


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        on_spark, "content", lambda address, engine, *, byte_budget, version=None: engine.content(version)
    )
    monkeypatch.setattr(on_spark, "judge", Looking.judge)


class Looking(Engine):
    """An engine without Spark: what a version holds is told by `says`, in turn, and how often it was asked is kept."""

    def __init__(self, *says: Fingerprint | Exception) -> None:
        super().__init__(master="none", task_memory_bytes=1 << 30)
        self.says, self.asked = [*says], list[int | None]()

    def spark(self) -> Any:
        return None

    def content(self, version: int | None) -> _Content:
        self.asked.append(version)
        said = self.says.pop(0) if self.says else Fingerprint(7, 1, 2)
        if isinstance(said, Exception):
            raise said
        return _Content(version or 5, {View.RAW: said}, "all of it")

    @staticmethod
    def judge(before: Any, after: Any, files: Any) -> list[Any]:
        same = before is None or after is None or before.views == after.views
        found = {"rows are the same": same, "files are there": not (files.absent or files.resized or files.unreadable)}
        statuses = {True: CheckStatus.PASSED, False: CheckStatus.FAILED}
        return [SimpleNamespace(name=name, status=statuses[ok], detail="") for name, ok in found.items()]


@dataclass
class _Content:
    version: int
    views: Mapping[View, Fingerprint]
    coverage: str


@dataclass
class Place:
    """One table, copied from a sample, with an old file that nobody needs and a young one."""

    kind: str
    folder: Path
    reports: Path
    location: str | None = None

    @property
    def policy(self) -> EffectivePolicy:
        address = f"{self.kind}:{self.location or self.folder}"
        return load("none.yaml", text="version: 1").effective(address)

    def order(self, mode: SweepMode | None = SweepMode.DRY_RUN, run_id: str = "run/1", **more: Any) -> Order:
        operation, checks = more.pop("operation", Operation.SWEEP), more.pop("checks", False)
        return Order(operation, run_id, str(self.reports), removal=RemovalOptions(mode=mode, **more), checks=checks)

    def swept(
        self, mode: SweepMode | None = SweepMode.DRY_RUN, *, engine: Engine | None = None, **more: Any
    ) -> RunDocument:
        return run_one(self.policy, self.order(mode, **more), engine or Looking()).document

    def checked(self, mode: SweepMode, *says: Fingerprint | Exception, **more: Any) -> RunDocument:
        return self.swept(mode, engine=Looking(*says), checks=True, **more)

    def restored(self, run_id: str = "run/1") -> RunDocument:
        return run_one(self.policy, self.order(None, run_id, operation=Operation.RESTORE), Looking()).document

    @property
    def old(self) -> Path:
        return self.folder / OLD[self.kind]

    @property
    def data(self) -> dict[str, tuple[bytes, int]]:
        """Content and time of all data files at home."""
        found = (path for path in self.folder.rglob("*.parquet") if "_nightkeep" not in path.parts)
        return {str(path.relative_to(self.folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}

    @property
    def live(self) -> str:
        """A data file that readers open."""
        ours = (OLD[self.kind], YOUNG[self.kind])
        return min(name for name in self.data if name not in ours and not name.startswith("_delta_log"))

    @property
    def history(self) -> set[str]:
        """Names of commits and snapshots: a removal is one of Delta's."""
        found = [*self.folder.glob("_delta_log/*.json"), *self.folder.glob("snapshot/*")]
        return {str(path.relative_to(self.folder)) for path in found}


def planted(folder: Path, name: str, days: float) -> None:
    path = folder / name
    path.write_bytes(b"PAR1 " + name.encode())
    os.utime(path, (time.time() - days * DAY,) * 2)


@pytest.fixture(params=TABLES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    folder = tmp_path / "shop.db" / "table"
    shutil.copytree(SAMPLES / TABLES[request.param], folder)
    planted(folder, OLD[request.param], 40)
    planted(folder, YOUNG[request.param], 2)
    return Place(request.param, folder, tmp_path / "reports")


@pytest.fixture
def iceberg_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    iceberg_places.place(SAMPLES / "iceberg", tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/catalog.db")
    folder = tmp_path / "shop/orders"
    planted(folder, OLD["iceberg"], 40)
    return Place("iceberg", folder, tmp_path / "reports", "lake/shop.orders")


def extra(document: RunDocument, *names: str) -> list[object]:
    return [document.extra.get(name) for name in names]


class TestDryRun:
    def test_reports_every_orphan_and_touches_nothing(self, place: Place) -> None:
        before = place.data
        found = place.swept()
        assert (found.outcome, found.expectations.status) == (Outcome.SKIPPED, CheckStatus.NOT_RUN)
        assert str(found.reason).startswith("dry run: 1 orphan of")
        told = place.old.stat()
        size, modified = told.st_size, datetime.fromtimestamp(told.st_mtime_ns // 10**6 / 1000, UTC)
        (orphan,) = found.to_json()["orphans"]  # type: ignore[misc]
        assert orphan == {
            "path": str(place.old),
            "bytes": size,
            "kind": "data",
            "modified_at": modified.isoformat(timespec="milliseconds"),
        }
        assert extra(found, "mode", "orphans_total", "orphans_bytes", "young_files") == ["dry-run", 1, size, 1]
        assert extra(found, "by_kind", "by_age") == [
            {"data": {"files": 1, "bytes": size}},
            {"30 to 90 days": {"files": 1, "bytes": size}},
        ]
        assert json.loads(Path(str(found.extra["orphans_file"])).read_text()) == orphan
        assert (place.data, (place.folder / "_nightkeep").exists()) == (before, False)

    def test_asks_no_engine_and_keeps_its_document(self, place: Place) -> None:
        found = place.checked(SweepMode.DRY_RUN, RuntimeError("nobody asks"))
        (path,) = place.reports.glob("*/*.json")
        assert load_document(path) == found

    def test_of_a_clean_table_is_unchanged(self, place: Place) -> None:
        place.old.unlink()
        found = place.swept()
        assert (found.outcome, *extra(found, "orphans_total", "orphans_file")) == (Outcome.UNCHANGED, 0, None)

    def test_of_one_run_reports_only_what_that_left(self, place: Place) -> None:
        assert place.swept(of_run="night:table").outcome is Outcome.UNCHANGED

    def test_of_a_broken_table_fails(self, place: Place) -> None:
        live = place.live
        (place.folder / live).unlink()
        found = place.swept()
        assert (found.outcome, found.extra["orphans_total"]) == (Outcome.FAILED, 0)
        assert live.rpartition("/")[2] in str(found.reason)


class TestSweep:
    def test_deletes_what_it_reported_and_nothing_else(self, place: Place) -> None:
        before = place.data
        found = place.checked(SweepMode.DELETE)
        assert (found.outcome, found.expectations.status) == (Outcome.VERIFIED, CheckStatus.PASSED)
        assert place.data == {name: content for name, content in before.items() if name != OLD[place.kind]}
        assert found.extra["acted"] == {"files": 1, "bytes": found.extra["orphans_bytes"]}
        (unit,) = found.units
        assert (unit.rows, unit.equal, unit.outcome, unit.extra["version"]) == (7, True, Outcome.VERIFIED, 5)
        assert "footers opened, 0 unreadable; all of it" in str(found.expectations.coverage)

    def test_puts_aside_and_restore_brings_all_back(self, place: Place) -> None:
        before = place.data
        found = place.swept(SweepMode.QUARANTINE)
        assert (found.outcome, place.old.exists()) == (Outcome.VERIFIED, False)
        folder = Path(str(found.extra["quarantine"]))
        assert folder.is_relative_to(place.folder / "_nightkeep/quarantine")
        assert len([*folder.rglob("*.file")]) == 1
        back = place.restored()
        assert (back.outcome, back.operation, back.extra["restored_run"]) == (
            Outcome.VERIFIED,
            Operation.RESTORE,
            "run/1",
        )
        assert (back.extra["acted"], place.data) == (found.extra["acted"], before)

    def test_a_file_in_the_way_is_named_and_stays(self, place: Place) -> None:
        place.swept(SweepMode.QUARANTINE)
        place.old.write_bytes(b"another")
        back = place.restored()
        assert (back.outcome, place.old.read_bytes()) == (Outcome.FAILED, b"another")
        assert [each["path"] for each in back.extra["failed"]] == [str(place.old)]  # type: ignore[attr-defined]

    def test_restoring_nothing_is_a_slip(self, place: Place) -> None:
        with pytest.raises(UsageError, match="nothing of run unknown is in quarantine"):
            place.restored("unknown")

    def test_younger_files_than_the_floor_are_a_slip(self, place: Place) -> None:
        with pytest.raises(UsageError, match="expected at least"):
            place.swept(SweepMode.DELETE, older_than_ms=1000)
        found = place.swept(SweepMode.DELETE, older_than_ms=DAY * 1000, below_floor=True)
        assert found.extra["acted"] == {"files": 2, "bytes": found.extra["orphans_bytes"]}

    def test_the_policy_decides_where_nobody_states(self, place: Place) -> None:
        assert place.swept(None).extra["mode"] == "dry-run"
        settings = place.policy.settings
        chosen = settings.model_copy(update={"sweep": settings.sweep.model_copy(update={"mode": "quarantine"})})
        found = run_one(replace(place.policy, settings=chosen), place.order(None), Looking()).document
        assert (found.extra["mode"], place.old.exists()) == ("quarantine", False)

    @pytest.mark.parametrize("reason", ["pause", "window", "hold"])
    def test_waits_as_the_policy_states_and_restore_does_not(self, place: Place, reason: str) -> None:
        place.swept(SweepMode.QUARANTINE)
        policy = place.policy
        now = datetime.now(UTC)
        closed = f"{(now.hour + 2) % 24:02}:00-{(now.hour + 3) % 24:02}:00 UTC"
        updates: dict[str, Any] = {"pause": "moving", "window": Windows(parse_window(closed))}
        if reason == "hold":
            hold(place.reports, policy.address.name, place.swept(run_id="other"))
        else:
            policy = replace(policy, settings=policy.settings.model_copy(update={reason: updates[reason]}))
        found = run_one(policy, place.order(SweepMode.DELETE, "run/2"), Looking()).document
        assert found.outcome is Outcome.SKIPPED
        assert str(found.reason).startswith({"pause": "paused: ", "window": "outside", "hold": "on hold"}[reason])
        order = place.order(None, operation=Operation.RESTORE)
        assert run_one(policy, order, Looking()).document.outcome is Outcome.VERIFIED

    def test_a_table_that_is_not_swept_is_refused(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        bare = open_table(MemoryEngine("shop.visits").address)
        monkeypatch.setattr("nightkeep.retention.remove.open_table", lambda address: bare)
        found = place.swept()
        assert (found.outcome, found.outcome.exit_status) == (Outcome.REFUSED, 3)


def test_an_iceberg_table_is_swept_and_restored(iceberg_place: Place) -> None:
    place, before = iceberg_place, iceberg_place.data
    found = place.checked(SweepMode.QUARANTINE)
    assert (found.outcome, found.expectations.status, place.old.exists()) == (
        Outcome.VERIFIED,
        CheckStatus.PASSED,
        False,
    )
    assert "0 missing, 0 of another size" in str(found.expectations.coverage)
    assert place.restored().outcome is Outcome.VERIFIED
    assert place.data == before


class TestAfterwards:
    """What is looked at once files went."""

    def test_other_rows_hold_the_table(self, place: Place) -> None:
        found = place.checked(SweepMode.DELETE, Fingerprint(7, 1, 2), Fingerprint(7, 1, 3))
        assert (found.outcome, found.go_back, [unit.equal for unit in found.units]) == (Outcome.MISMATCH, None, [False])
        assert found.reason == "after files went, not so: rows are the same; on hold"
        placed = held(place.reports, place.policy.address.name)
        assert placed is not None
        assert (placed.run_id, placed.operation) == ("run/1", Operation.SWEEP)

    def test_a_missing_file_holds_the_table_and_states_how_to_restore_it(self, place: Place) -> None:
        live = place.live

        class Losing(Looking):
            """Something else takes a live file while files are quarantined."""

            def content(self, version: int | None) -> Any:
                (place.folder / live).unlink()
                return super().content(version)

        engine = Losing()
        found = place.swept(SweepMode.QUARANTINE, engine=engine, checks=True)
        back = f"nightkeep restore {place.policy.address.name} run/1"
        assert (found.outcome, found.go_back) == (Outcome.MISMATCH, back)
        assert f"{live} is not there" in str(found.reason)
        assert str(found.reason).endswith(f"; on hold; {back} restores what was quarantined")
        assert len(engine.asked) == 1, "rows are not asked for where files are missing"

    def test_what_cannot_be_read_before_stays(self, place: Place) -> None:
        before, history = place.data, place.history
        found = place.checked(SweepMode.DELETE, OSError("connection reset"))
        assert (found.outcome, place.data, place.history) == (Outcome.FAILED, before, history)
        assert "connection reset" in str(found.to_json())

    def test_what_cannot_be_read_after_fails_and_holds_nothing(self, place: Place) -> None:
        found = place.checked(SweepMode.DELETE, Fingerprint(7, 1, 2), OSError("connection reset"))
        assert (found.outcome, found.expectations.status) == (Outcome.FAILED, CheckStatus.ERRORED)
        assert held(place.reports, place.policy.address.name) is None
        unfinished = "the check of what is left did not finish: OSError: connection reset"
        assert unfinished in str(found.reason)
        again = place.checked(SweepMode.DELETE)
        assert "did not finish" not in str(again.reason)
        assert (again.outcome, again.expectations.status, again.units[0].equal) == (
            Outcome.VERIFIED,
            CheckStatus.PASSED,
            True,
        )
        assert again.extra["acted"] == found.extra["acted"]

    def test_what_spark_cannot_read_is_not_proven(self, place: Place) -> None:
        found = place.checked(SweepMode.DELETE, RefusedTable("t", "an odd type", "none"))
        assert (found.outcome, found.expectations.status, found.units) == (Outcome.VERIFIED, CheckStatus.SKIPPED, ())

    def test_a_policy_without_checks_asks_nobody(self, place: Place) -> None:
        policy, engine = without_checks(place.policy), Looking()
        found = run_one(policy, place.order(SweepMode.DELETE, checks=True), engine).document
        assert (found.outcome, found.expectations.status, engine.asked) == (Outcome.VERIFIED, CheckStatus.NOT_RUN, [])


class TestAgain:
    """A retry has the run id of the first attempt."""

    @pytest.mark.parametrize("mode", [SweepMode.DELETE, SweepMode.QUARANTINE])
    def test_what_is_done_is_reported_again(self, place: Place, mode: SweepMode) -> None:
        first = place.checked(mode)
        planted(place.folder, OLD[place.kind], 40)
        assert place.checked(mode) == first
        assert place.checked(mode, run_id="run/2").extra["acted"] != {"files": 0, "bytes": 0}

    @pytest.mark.few(4)
    @pytest.mark.parametrize("mode", [SweepMode.DELETE, SweepMode.QUARANTINE])
    @pytest.mark.parametrize("when", ["before the first file", "after the last"])
    def test_a_death_is_gone_on_from(
        self, place: Place, mode: SweepMode, when: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = sweep_orphans
        with monkeypatch.context() as patch:

            def dies(*arguments: Any) -> RunDocument:
                if when == "before the first file":
                    patch.setattr("nightkeep.retention.orphans.sweep_table.remove", lambda *a, **m: died([*a[1]]))
                return died(real(*arguments))

            patch.setitem(one_operation.KINDS, Operation.SWEEP, one_operation.removal(dies))
            with pytest.raises(KeyboardInterrupt):
                place.checked(mode)
        (path,) = place.reports.glob("*/*.json")
        left = load_document(path)
        assert (left.outcome, left.extra["orphans_total"], left.units[0].rows) == (Outcome.FAILED, 1, 7)
        assert str(left.reason).startswith("ended before it was done")
        engine = Looking()
        again = place.swept(mode, engine=engine, checks=True)
        assert (again.outcome, again.expectations.status, place.old.exists()) == (
            Outcome.VERIFIED,
            CheckStatus.PASSED,
            False,
        )
        assert engine.asked == [5], "what the version held is known from before the first file went"
        assert extra(again, "orphans_total", "orphans") == extra(left, "orphans_total", "orphans")
        if mode is SweepMode.QUARANTINE:
            assert again.extra["acted"] == {"files": 1, "bytes": left.extra["orphans_bytes"]}
            assert place.restored().outcome is Outcome.VERIFIED

    @pytest.mark.slow
    def test_a_surprise_keeps_what_was_stored(self, place: Place) -> None:
        class Surprised(Looking):
            def content(self, version: int | None) -> Any:
                raise RuntimeError("out of memory")

        text = f"version: 1\ntables: [{{name: t, table: '{place.kind}:{place.folder}', sweep: {{mode: quarantine}}}}]\n"
        (place.reports.parent / "tables.yaml").write_text(text)
        group = TableGroup(load(place.reports.parent / "tables.yaml"), ("t",), "weekly", str(place.reports))
        (first,) = sweep_group(group, Surprised())
        assert (first.document.outcome, place.old.exists()) == (Outcome.FAILED, True)
        assert str(first.document.reason).startswith("RuntimeError: out of memory")
        (again,) = sweep_group(group, Looking())
        assert (again.document.outcome, again.document.run_id) == (Outcome.VERIFIED, "weekly:t")
        assert load_document(again.path) == again.document


def died(_: object) -> RunDocument:
    raise KeyboardInterrupt


class TestGroup:
    @pytest.mark.slow
    def test_expires_where_the_policy_states_and_sweeps_every_table(self, place: Place) -> None:
        text = f"""
version: 1
defaults: {{check: {{enabled: false}}, sweep: {{mode: delete}}}}
tables:
  - {{name: gone, table: "{place.kind}:{place.folder}-gone"}}
  - {{name: there, table: "{place.kind}:{place.folder}", expire: {{enabled: true}}}}
"""
        policy = load(place.reports.parent / "tables.yaml", text=text)
        found = [*sweep_group(TableGroup(policy, ("gone", "there"), "weekly", str(place.reports)), Looking())]
        assert [(each.document.table, each.document.operation, each.document.outcome) for each in found] == [
            ("gone", Operation.SWEEP, Outcome.FAILED),
            ("there", Operation.EXPIRE, Outcome.UNCHANGED),
            ("there", Operation.SWEEP, Outcome.VERIFIED),
        ]
        assert len({each.path for each in found}) == 3
        planted(place.folder, OLD[place.kind], 40)
        group = TableGroup(policy, ("there",), "weekly-2", str(place.reports), dry_run=True)
        assert [each.document.extra["mode"] for each in sweep_group(group, Looking())] == ["dry-run", "dry-run"]
        assert place.old.exists()


def unchecked(place: Place, *, days: float = 0, policy: EffectivePolicy | None = None) -> frozenset[int]:
    """Versions that wait for a check, so many days from now."""
    now_ms = time.time_ns() // 1_000_000 + int(days * DAY * 1000)
    return unchecked_versions(policy or place.policy, str(place.reports), now_ms=now_ms)


def without_checks(policy: EffectivePolicy) -> EffectivePolicy:
    check = policy.settings.check.model_copy(update={"enabled": False})
    return replace(policy, settings=policy.settings.model_copy(update={"check": check}))


@pytest.fixture
def published(place: Place) -> RunDocument:
    """A run of now that published a version which no check has judged."""
    found = replace(
        place.swept(),
        run_id="night",
        operation=Operation.OPTIMIZE,
        base_version=3,
        parent_version=4,
        committed_version=5,
        finished_at=datetime.now(UTC),
    )
    store(found, place.reports)
    return found


def test_versions_of_unchecked_runs_are_named_to_formats(place: Place, published: RunDocument) -> None:
    assert unchecked(place) == {3, 4, 5}
    (place.reports.glob("*/night-optimize.json").__next__()).write_text("{")
    assert place.swept(run_id="other").outcome is Outcome.FAILED, "it may be of a run that nobody checked"


def test_nobody_waits_for_a_check_for_ever(place: Place, published: RunDocument) -> None:
    assert unchecked(place, days=6.9) == {3, 4, 5}
    assert unchecked(place, days=7.1) == frozenset()


def test_nobody_waits_for_a_check_that_is_turned_off_or_left_out(place: Place, published: RunDocument) -> None:
    assert unchecked(place, policy=without_checks(place.policy)) == frozenset()
    store(replace(published, expectations=Expectations(CheckStatus.SKIPPED, reason="left out")), place.reports)
    assert unchecked(place) == frozenset()


@pytest.mark.parametrize(
    "others", [{"mode": SweepMode.DELETE}, {"older_than_ms": 30 * DAY * 1000}, {"below_floor": True}]
)
def test_a_run_id_belongs_to_its_options(place: Place, others: dict[str, Any]) -> None:
    assert place.swept(SweepMode.QUARANTINE).outcome is Outcome.VERIFIED
    (path,) = place.reports.glob("*/*-sweep.json")
    told = path.read_bytes()
    planted(place.folder, OLD[place.kind].replace("left", "new"), 40)
    with pytest.raises(UsageError, match=r"run id 'run/1': expected the options of its first attempt, mode = 'quar"):
        place.swept(**{"mode": SweepMode.QUARANTINE} | others)
    assert path.read_bytes() == told
    # The same again is a retry, and another id another run.
    assert place.swept(SweepMode.QUARANTINE).to_json() == load_document(path).to_json()
    assert place.swept(SweepMode.DELETE, run_id="run/2").extra["acted"] == {"files": 1, "bytes": place_bytes(place)}


def test_a_dry_run_does_not_take_the_place_of_what_its_run_did(place: Place) -> None:
    assert place.swept(SweepMode.QUARANTINE).outcome is Outcome.VERIFIED
    with pytest.raises(UsageError, match="found mode = 'dry-run'"):
        place.swept(SweepMode.DRY_RUN)
    assert place.restored().outcome is Outcome.VERIFIED


def test_a_run_id_of_a_dry_run_may_act(place: Place) -> None:
    assert place.swept(SweepMode.DRY_RUN).outcome is Outcome.SKIPPED
    assert place.swept(SweepMode.QUARANTINE).outcome is Outcome.VERIFIED


def place_bytes(place: Place) -> int:
    return len(b"PAR1 " + OLD[place.kind].replace("left", "new").encode())
