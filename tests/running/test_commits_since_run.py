"""`commits_since_run` and `bytes_since_run`: what other writers brought since the last run, by their commits."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from samples.working_copy import copy_tables
from tests.formats.delta.lake import Lake

import nightkeep
from nightkeep.model import Operation, Outcome
from nightkeep.records import RunDocument, store

ROWS = pa.table({"id": pa.array(range(100), pa.int64())})


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYICEBERG_CATALOG__SINCE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__SINCE__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__SINCE__WAREHOUSE", f"file://{tmp_path}/warehouse")
    return tmp_path


def ran(lake: Path, version: int, outcome: Outcome = Outcome.VERIFIED) -> None:
    """A run left this version behind."""
    now = datetime.now(UTC)
    published = {"committed_version": version} if outcome is Outcome.VERIFIED else {"base_version": version}
    document = RunDocument(
        run_id=f"night-{version}-{outcome}", table="t", format="delta", operation=Operation.OPTIMIZE, outcome=outcome,
        reason=None, started_at=now, finished_at=now, **published,
    )  # fmt: skip
    store(document, lake / "reports")


def skipped(lake: Path, table: str, when: str) -> str | None:
    """Why a run of the table would be skipped; None where it would not."""
    policy = lake / "tables.yaml"
    entry = f"{{name: t, table: '{table}', operations: [optimize], when: '{when}', min_file_size: 1MB}}"
    policy.write_text(f"version: 1\ndefaults: {{check: {{enabled: false}}}}\ntables:\n  - {entry}\n", encoding="utf-8")
    (planned,) = nightkeep.plan("t", policy=policy, reports=lake / "reports").documents
    return next((each for each in planned.plan.notes if "would be skipped" in each), None)


def test_of_a_delta_table(lake: Path) -> None:
    made, table = Lake(lake / "d", ROWS.schema), f"delta:{lake}/d"

    def append(times: int) -> None:
        for _ in range(times):
            made.append(ROWS)

    append(3)
    size = next((lake / "d").glob("*.parquet")).stat().st_size
    why = "a run would be skipped now: when: expected commits_since_run >= 4, found commits_since_run 3"
    assert skipped(lake, table, "commits_since_run >= 4") == why
    assert skipped(lake, table, f"bytes_since_run > {3 * size}") is not None
    assert skipped(lake, table, f"bytes_since_run >= {3 * size}") is None
    assert skipped(lake, table, "commits_since_run >= 3") is None
    newest = max(int(file.stem) for file in (lake / "d/_delta_log").glob("*.json"))
    ran(lake, newest - 1)
    assert str(skipped(lake, table, "commits_since_run > 1")).endswith("found commits_since_run 1")
    ran(lake, newest, Outcome.UNCHANGED)
    assert str(skipped(lake, table, "bytes_since_run > 0")).endswith("found bytes_since_run 0")
    # What ended otherwise has not done its work.
    ran(lake, newest - 2, Outcome.CONFLICTED)
    append(2)
    assert str(skipped(lake, table, "commits_since_run > 2")).endswith("found commits_since_run 2")
    assert skipped(lake, table, f"bytes_since_run > {2 * size}") is not None
    assert skipped(lake, table, f"bytes_since_run >= {2 * size}") is None


def test_of_an_iceberg_table(lake: Path) -> None:
    (lake / "warehouse").mkdir()
    catalog = SqlCatalog("since", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}/warehouse")
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", ROWS.schema)
    for _ in range(3):
        made.append(ROWS)
    size = made.inspect.files()["file_size_in_bytes"][0].as_py()
    assert skipped(lake, "iceberg:since/db.t", "commits_since_run >= 4") is not None
    assert skipped(lake, "iceberg:since/db.t", f"bytes_since_run >= {3 * size}") is None
    assert skipped(lake, "iceberg:since/db.t", "commits_since_run >= 3") is None
    newest = made.refresh().current_snapshot()
    assert newest is not None
    ran(lake, newest.snapshot_id)
    made.append(ROWS)
    found = skipped(lake, "iceberg:since/db.t", "commits_since_run > 1")
    assert str(found).endswith("found commits_since_run 1")
    assert skipped(lake, "iceberg:since/db.t", f"bytes_since_run > {size}") is not None
    assert skipped(lake, "iceberg:since/db.t", f"bytes_since_run >= {size}") is None


def test_of_a_paimon_table(lake: Path) -> None:
    copy_tables(lake / "warehouse")
    table = f"paimon:{lake}/warehouse/paimon/shop.db/orders"
    policy = lake / "tables.yaml"

    def came(when: str) -> str | None:
        entry = f"{{name: t, table: '{table}', when: '{when}'}}"
        policy.write_text(f"version: 1\ntables:\n  - {entry}\n", encoding="utf-8")
        (planned,) = nightkeep.plan("t", policy=policy, reports=lake / "reports", operation=None).documents
        return next((each for each in planned.plan.notes if "would be skipped" in each), None)

    # Five of the sample's seven snapshots are appends, the others compactions.
    assert str(came("commits_since_run > 5")).endswith("found commits_since_run 5")
    assert came("commits_since_run >= 5") is None
    on_disk = sum(file.stat().st_size for file in Path(table.removeprefix("paimon:")).glob("**/bucket-*/data-*"))
    assert came(f"bytes_since_run > {on_disk}") is not None and came(f"bytes_since_run > {on_disk // 10}") is None


@pytest.mark.slow
def test_status_states_what_a_condition_names_and_reads_no_commits_without_one(lake: Path) -> None:
    Lake(lake / "d", ROWS.schema).append(ROWS)
    policy = lake / "tables.yaml"
    for when, found in (("commits_since_run > 1", True), ("files > 1", False)):
        policy.write_text(f"version: 1\ntables:\n  - {{name: t, table: 'delta:{lake}/d', when: '{when}'}}\n")
        (one,) = nightkeep.status(policy=policy, reports=lake / "reports").tables
        assert ("commits_since_run" in one.metrics) is found
        assert (one.metrics.get("commits_since_run"), one.metrics.get("bytes_since_run", 0) != 0) == (
            (1, True) if found else (None, False)
        )
