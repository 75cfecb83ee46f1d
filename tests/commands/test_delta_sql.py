"""OPTIMIZE of a Delta table as one types it: what is done, and slips that say what would work."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.runs import files, opened

from nightkeep.commands.app import main
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline, inline_exchange

GOLDEN = Path(__file__).parents[1] / "golden" / "delta"
DAYS = ("2026-11-01", "2026-11-02")


@dataclass(frozen=True)
class Said:
    status: object
    out: str
    err: str


Say = Callable[[str], Said]


@pytest.fixture
def say(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Say:
    """Runs a statement without Spark."""
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    monkeypatch.setattr(Engine, "exchange", lambda engine: inline_exchange)
    monkeypatch.chdir(tmp_path)
    for name in ("NIGHTKEEP_POLICY", "NIGHTKEEP_REPORTS"):
        monkeypatch.delenv(name, raising=False)

    def said(statement: str) -> Said:
        with pytest.raises(SystemExit) as ended:
            main(["sql", statement, "--no-check", "--json", "--reports", str(tmp_path / "reports")])
        return Said(ended.value.code, *capsys.readouterr())

    return said


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    """Two days in three files each; the columns are id, price, note and day."""
    made = HandMade(tmp_path / "a b'c" / "events")
    for day in DAYS:
        for start in (0, 40, 80):
            made.append(day, range(start, start + 40))
    return made


@pytest.mark.parametrize("order", ["(id, price)", "id, price"])
@pytest.mark.parametrize("spelled", ['"{}"', "delta.`{}`"])
def test_a_statement_lays_the_partitions_it_names(say: Say, made: HandMade, spelled: str, order: str) -> None:
    truth, other = made.rows(), partition(made, DAYS[1])
    said = say(f"OPTIMIZE {spelled.format(made.folder)} WHERE day < DATE '2026-11-02' ZORDER BY {order}")
    assert said.status == 0, said.err
    document: dict[str, Any] = json.loads(said.out)
    assert [unit["partition"] for unit in document["units"]] == ["day=2026-11-01"]
    assert {"columns": ["id", "price"], "curve": "z-order"}.items() <= document["plan"]["clustering"].items()
    assert {"overlap", "skipping", "losing"} <= document["metrics"].keys()
    assert made.rows() == truth and partition(made, DAYS[1]) == other
    assert [len(partition(made, day)) for day in DAYS] == [1, 3]


def partition(made: HandMade, day: str) -> set[str]:
    return {add["path"] for add in made.live().values() if add["partitionValues"]["day"] == day}


SLIPS = {
    "WHERE id = 3": "partition filter 'id = 3': expected a partition column (partition columns are day), found id",
    "WHERE day = '2026-11-01' OR note = 'x'": "expected a partition column (partition columns are day), found note",
    "WHERE nothing = 3": "expected a partition column (partition columns are day), found nothing",
    "ZORDER BY (nothing)": "cluster by nothing: the table has no such column; id, price, note would work",
    "ZORDER BY (id, day)": "cluster by day: it is a partition column, one value in every file; id, price, note would",
    "ZORDER BY (id, ID)": "expected different columns",
}


@pytest.mark.parametrize("clause", SLIPS)
def test_a_slip_is_reported_with_what_would_work_before_anything_is_written(
    say: Say, made: HandMade, clause: str
) -> None:
    before = files(made.folder)
    said = say(f'OPTIMIZE "{made.folder}" {clause}')
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("nightkeep: ") and said.err.count("\n") == 1
    assert SLIPS[clause] in said.err
    assert files(made.folder) == before


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("stats_named_columns", "id", "it has no statistics, so that no reader could skip files by it; "),
        ("stats_nested", "counts", "its type map<string, int32> has no order; place.x"),
        ("stats_nested", "place", "expected a leaf of a struct, one of place.x"),
    ],
)
def test_columns_that_no_file_is_skipped_by_are_slips(
    name: str, column: str, message: str, say: Say, tmp_path: Path
) -> None:
    table = Path(shutil.copytree(GOLDEN / name / "table", tmp_path / "t"))
    said = say(f"OPTIMIZE '{table}' ZORDER BY ({column})")
    assert (said.status, said.out) == (2, "")
    assert f"cluster by {column}: {message}" in said.err


def test_a_leaf_of_a_struct_may_be_clustered_by(say: Say, tmp_path: Path) -> None:
    table = Path(shutil.copytree(GOLDEN / "stats_nested" / "table", tmp_path / "t"))
    said = say(f"OPTIMIZE '{table}' FULL ZORDER BY (place.x, place.inner.name)")
    assert said.status == 0, said.err
    (file,) = (file for unit in opened(table).snapshot().units for file in unit.files)
    assert json.loads(file.tags["nightkeep.clustering"])["columns"] == ["place.x", "place.inner.name"]
