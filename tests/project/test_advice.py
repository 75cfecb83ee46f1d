"""What a refusal advises: nothing that would destroy the table somebody needs."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from tests.formats.delta.lake import Lake
from tests.support.commands import said

JOBS = Path(__file__).parents[2] / "jobs" / "nightkeep"


@pytest.mark.parametrize("verb", ["plan", "run", "sweep", "expire"])
def test_a_delta_table_called_paimons_is_recognised_by_its_own_address(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    lake.append(pa.table({"id": [1]}))
    told = said(capsys, verb, f"paimon:{lake.folder}", "--reports", str(tmp_path / "reports"), "--json")
    assert (told.status, told.json["outcome"]) == (3, "refused")
    assert "is the metadata of a table of Delta's" in told.json["reason"]
    assert f"its address is delta:{lake.folder}" in told.json["reason"]
    assert "delete nothing" in told.json["reason"]


def test_no_refusal_advises_to_remove_what_may_be_in_use() -> None:
    advice = re.compile(r"remove what is old|remove that file|drop the one|delete the (?:folder|files|log|table)")
    # The help of a command says what the command does.
    modules = (path for path in JOBS.rglob("*.py") if path.parent.name != "commands")
    found = [str(path) for path in modules if advice.search(path.read_text())]
    assert found == []
