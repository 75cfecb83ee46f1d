"""A run does what a dry run showed, or nothing: for each operation that has a dry run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.api.test_front_door import SAMPLE

import nightkeep
from nightkeep.records import RunDocument
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline, inline_exchange

ANOTHER = "the plan is not the one that was shown: expected "


class Clicks:
    """A copy of the sample of Delta."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.reports = folder / "clicks", folder / "reports"
        shutil.copytree(SAMPLE, self.folder)
        self.table = f"delta:{self.folder}"

    def files(self) -> set[str]:
        return {str(path) for path in self.folder.rglob("*") if path.is_file()}

    def leave(self, name: str) -> None:
        left = self.folder / f"part-00000-{name}.c000.snappy.parquet"
        left.write_bytes(b"left over")
        os.utime(left, (1_700_000_000, 1_700_000_000))

    def optimize(self, *, plan: str | None = None) -> RunDocument:
        asked = {"operation": "optimize", "full": True, "reports": self.reports}
        if plan is None:
            return nightkeep.plan(self.table, **asked)[0]  # type: ignore[arg-type]
        return nightkeep.run(self.table, expect_plan=plan, no_check=True, **asked)[0]  # type: ignore[arg-type]

    def delete(self, *, plan: str | None = None) -> RunDocument:
        how = {"dry_run": True} if plan is None else {"expect_plan": plan, "no_check": True}
        return nightkeep.delete(self.table, rows_where="click_id < 100", reports=self.reports, **how)  # type: ignore[arg-type]

    def sweep(self, *, plan: str | None = None) -> RunDocument:
        how = {} if plan is None else {"expect_plan": plan, "quarantine": True, "no_check": True}
        return nightkeep.sweep(self.table, older_than="8d", reports=self.reports, **how)  # type: ignore[arg-type]

    def change(self) -> None:
        """A commit that removes files of every plan, and a file that nothing needs."""
        some = {"where": "day >= '2026-11-02'", "full": True, "no_check": True, "reports": self.reports}
        assert nightkeep.run(self.table, operation="optimize", **some).outcome == "verified"  # type: ignore[arg-type]
        self.leave("later")


@pytest.fixture
def clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clicks:
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    monkeypatch.setattr(Engine, "exchange", lambda engine: inline_exchange)
    for name in ("NIGHTKEEP_POLICY", "NIGHTKEEP_REPORTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    made = Clicks(tmp_path)
    made.leave("earlier")
    return made


WORK: list[Callable[..., RunDocument]] = [Clicks.optimize, Clicks.delete, Clicks.sweep]


@pytest.mark.parametrize("work", WORK, ids=lambda each: each.__name__)
def test_the_plan_that_was_shown_is_done(clicks: Clicks, work: Callable[..., RunDocument]) -> None:
    shown = work(clicks)
    assert shown.outcome == "skipped" and str(shown.reason).startswith("dry run")
    done = work(clicks, plan=shown.extra["plan_digest"])
    assert done.outcome == "verified", done.reason


@pytest.mark.parametrize("work", WORK, ids=lambda each: each.__name__)
def test_another_plan_is_not_done(clicks: Clicks, work: Callable[..., RunDocument]) -> None:
    shown = work(clicks)
    clicks.change()
    before = clicks.files()
    done = work(clicks, plan=shown.extra["plan_digest"])
    assert (done.outcome, clicks.files()) == ("skipped", before)
    assert str(done.reason).startswith(f"{ANOTHER}{shown.extra['plan_digest']}, found ")
    assert str(done.reason).endswith("; nothing was done, plan again")
    again = work(clicks)
    assert again.extra["plan_digest"] == done.extra["plan_digest"] != shown.extra["plan_digest"]
    assert work(clicks, plan=again.extra["plan_digest"]).outcome == "verified"
