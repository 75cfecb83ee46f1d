"""What `make nightly` prints while its DAG runs: which table is at work, how each ended, how many are left."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from samples.watched_dag import Watch, watch_run
from samples.working_copy import copy_tables
from tests.records.test_kept_index import document

from nightkeep.model import Operation, Outcome
from nightkeep.records import CheckStatus, Expectations, RunDocument, store
from nightkeep.records.failure_outcomes import UNFINISHED, unreported_as_failed


def begun(table: str) -> RunDocument:
    return replace(document(table, 1, Outcome.FAILED), reason=f"{UNFINISHED}; ...")


def test_each_table_is_named_as_its_work_begins_and_ends(tmp_path: Path) -> None:
    watch = Watch(tmp_path, "nightly-", 3)
    assert [*watch.news()] == []
    store(begun("shop.a"), tmp_path)
    store(replace(document("shop.b", 1), run_id="other:shop.b"), tmp_path)
    assert [*watch.news()] == ["shop.a optimize: at work; 3 tables left"]
    assert [*watch.news()] == []
    published = replace(document("shop.a", 1, Outcome.VERIFIED), expectations=Expectations(CheckStatus.NOT_RUN))
    store(unreported_as_failed(published), tmp_path)
    assert [*watch.news()] == ["shop.a optimize: published, its check is to come; 3 tables left"]
    store(document("shop.a", 1, Outcome.VERIFIED), tmp_path)
    store(document("shop.c", 1), tmp_path)
    (tmp_path / "shop.c" / "nightly-damaged.json").write_text("{")
    assert [*watch.news()] == ["shop.a optimize: verified; 2 tables left", "shop.c optimize: unchanged; 1 table left"]
    # A second operation of a table that has ended is at work again.
    store(replace(begun("shop.a"), operation=Operation.UPGRADE), tmp_path)
    assert [*watch.news()] == ["shop.a upgrade: at work; 2 tables left"]


def test_documents_of_earlier_runs_are_no_news(tmp_path: Path) -> None:
    earlier = Path(store(document("shop.a", 1), tmp_path))
    os.utime(earlier, (1000, 1000))
    assert [*Watch(tmp_path, "nightly-", 1, since=1001.0).news()] == []


@pytest.mark.slow
@pytest.mark.parametrize("status", [0, 3])
def test_a_run_is_watched_until_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int) -> None:
    store(document("shop.a", 1), tmp_path)
    script = f"import sys, time; print('in the log', flush=True); time.sleep(1.5); sys.exit({status})"
    watch = Watch(tmp_path, "nightly-", 1)
    assert watch_run([sys.executable, "-c", script], tmp_path / "log", watch) == status
    assert (tmp_path / "log").read_text() == "in the log\n"
    assert capsys.readouterr().out == "shop.a optimize: unchanged; 0 tables left\n"


def test_each_table_that_is_copied_is_named(tmp_path: Path) -> None:
    lines = list[str]()
    copy_tables(tmp_path / "warehouse", lines.append)
    assert lines[0] == f"copying delta/shop.db/accounts, {len(lines) + 1} tables left"
    assert lines[-1] == "copying the Iceberg tables, 2 tables left"
    assert len({*lines}) == len(lines) == len([*(tmp_path / "warehouse").glob("[dp]*/*.db/*")]) + 1
