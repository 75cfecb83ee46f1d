"""nightkeep.status and the command: all tables, the worst first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from samples.working_copy import copy_tables
from tests.drivers.memory_engine import MemoryEngine
from typer.testing import CliRunner

import nightkeep
from nightkeep.api.status import Statuses
from nightkeep.commands.app import app
from nightkeep.running.inspection.table_status import TableStatus

POLICY = """\
version: 1
tables:
  - {{name: fine, table: "delta:{0}/delta/shop.db/accounts"}}
  - {{name: worn, table: "delta:{0}/delta/shop.db/clicks"}}
  - {{name: gone, table: "delta:{0}/nowhere"}}
  - {{name: unset, table: "delta:${{NO_SUCH_VARIABLE}}/t"}}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    copy_tables(tmp_path / "warehouse")
    file = tmp_path / "tables.yaml"
    file.write_text(POLICY.format(tmp_path / "warehouse"), encoding="utf-8")
    return file


@pytest.mark.slow
def test_the_worst_comes_first_and_what_cannot_be_reported_last(policy: Path) -> None:
    found = nightkeep.status(policy=policy)
    assert [each.name for each in found] == ["worn", "fine", "gone", "unset"]
    assert [each.score is None for each in found] == [False, True, True, True]
    assert found[3].why.startswith("refused: ") and "NO_SUCH_VARIABLE" in found[3].why
    lines = str(found).splitlines()
    assert lines[0].split()[:4] == ["table", "score", "files", "small"]
    assert lines[1].startswith("worn ") and "    optimize: 43 files would become 5" in lines[2]
    assert max(len(line) for line in lines if str(policy.parent) not in line) <= 80
    printed = CliRunner().invoke(app, ["status", "worn", "--policy", str(policy), "--json"])
    assert printed.exit_code == 0
    (only,) = json.loads(printed.stdout)
    assert only["would"]["operation"] == "optimize" and only["metrics"]["small_files"] == 43
    assert list(only) == ["name", "table", "format", "score", "metrics", "would", "why", "night"]


def test_a_format_without_health_has_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightkeep.policy.address.FORMATS", ("memory",))
    engine = MemoryEngine(str(tmp_path))
    engine.append("2026-11-01", range(10))
    (found,) = nightkeep.status(str(engine.address))
    assert (found.score, found.metrics["orphans"]) == (None, None)


def test_an_unknown_table_is_an_error(policy: Path) -> None:
    printed = CliRunner().invoke(app, ["status", "wornn", "--policy", str(policy)])
    assert printed.exit_code != 0
    with pytest.raises(nightkeep.errors.AddressError, match="did you mean worn"):
        nightkeep.status("wornn", policy=policy)


def test_json_and_text_hold_no_credentials() -> None:
    address, why = "delta:s3://key:hunter2hunter2@bucket/t", "refused: https://u:hunter2hunter2@host/x"
    told = Statuses((TableStatus(name="t", table=address, format="delta", why=why),))
    assert "hunter2" not in json.dumps(told.to_json()) + str(told)
