"""Tables of every feature that we laid anew -> delta-spark goes on with them as with their untouched copies.

The same statements run on both: the rows, what is refused and what is counted must be the same afterwards.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lake_rows import Rows
from tests.formats.delta.runs import optimize
from tests.support.extended import some_extended

from nightkeep.model import Outcome

GOLDEN = Path(__file__).parents[2] / "golden" / "delta"
CLUSTERED: dict[str, Any] = {"full": True, "clustering": {"zorder": ["id"]}}
NUMBERED = (
    "INSERT INTO {table} VALUES (100, 3, 'new'), (101, 1, NULL)",
    """MERGE INTO {table} t USING (SELECT id FROM VALUES (1), (3), (4), (500) AS v(id)) s ON t.id = s.id
        WHEN MATCHED AND s.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET text = 'merged'
        WHEN NOT MATCHED THEN INSERT (id, k, text) VALUES (id, 9, 'merged')""",
)


@dataclass(frozen=True)
class Onwards:
    """What delta-spark does, what it must go on refusing, and the columns that are compared."""

    statements: tuple[str, ...]
    refused: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ("*",)
    settings: tuple[tuple[str, Any], ...] = tuple(CLUSTERED.items())


STORIES = {
    "constraints": Onwards(
        (
            "INSERT INTO {table} (id, at) SELECT /*+ COALESCE(1) */ * FROM VALUES (9, TIMESTAMP'2026-11-03T06:00:00')",
            "UPDATE {table} SET at = TIMESTAMP'2026-11-04T06:00:00' WHERE id = 1",
        ),
        (
            ("INSERT INTO {table} (id, at) VALUES (-1, NULL)", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
            ("INSERT INTO {table} (key, id, at) VALUES (77, 1, NULL)", "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT"),
        ),
    ),
    "mapping_name": Onwards(
        (
            "ALTER TABLE {table} RENAME COLUMN place.east TO west",
            "INSERT INTO {table} VALUES (20, 'p1', named_struct('west', 20, 'y,z', 'n'), NULL, 8)",
            "UPDATE {table} SET part = 'p9' WHERE `a b` = 2",
        ),
        settings=(("full", True), ("clustering", {"hilbert": ["a b", "place.east"]})),
    ),
    "type_widening": Onwards(
        (
            "ALTER TABLE {table} ALTER COLUMN n TYPE BIGINT",
            "INSERT INTO {table} SELECT 7, 70000000000, 1.5D, 1, day, place, tags FROM {table} WHERE id = 3",
            "DELETE FROM {table} WHERE f < 0.2D AND n = 1",
        ),
        settings=(("full", True), ("clustering", {"zorder": ["price", "day"]})),
    ),
    "row_tracking": Onwards(NUMBERED, columns=("*", "_metadata.row_id")),
    "append_only": Onwards(
        ("INSERT INTO {table} VALUES (100, 3, 'new')",), (("DELETE FROM {table}", "DELTA_CANNOT_MODIFY_APPEND_ONLY"),)
    ),
}


@pytest.mark.parametrize("name", some_extended(STORIES, keep=1))
def test_delta_spark_goes_on_as_if_we_had_never_been(name: str, delta_spark: DeltaSpark, tmp_path: Path) -> None:
    story = STORIES[name]
    ours, untouched = (Path(shutil.copytree(GOLDEN / name / "table", tmp_path / f"{which}")) for which in "ab")
    document = optimize(ours, **dict(story.settings))
    assert document.outcome is Outcome.VERIFIED, document.reason
    for table in (ours, untouched):
        went_on(delta_spark, table, story)
    truth = delta_spark.read(untouched, columns=story.columns)
    assert without_ids(delta_spark.read(ours, columns=story.columns)) == without_ids(truth)
    before = delta_spark.read(ours, columns=story.columns)
    again = optimize(ours, full=True)
    assert again.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), again.reason
    assert delta_spark.read(ours, columns=story.columns) == before


def went_on(delta_spark: DeltaSpark, table: Path, story: Onwards) -> None:
    delta_spark.sql(*(statement.format(table=named(table)) for statement in story.statements))
    for statement, condition in story.refused:
        with pytest.raises(EngineError) as caught:
            delta_spark.sql(statement.format(table=named(table)))
        assert condition in caught.value.condition


def without_ids(rows: Rows) -> Rows:
    """Ids are given out by files, of which there are others after us; that no two are the same is all they promise."""
    if "row_id" not in rows.columns:
        return rows
    at = rows.columns.index("row_id")
    assert len(set(rows.column("row_id"))) == len(rows.rows)
    cut = [tuple(value for n, value in enumerate(some) if n != at) for some in (rows.columns, rows.types, *rows.rows)]
    return Rows(cut[0], cut[1], tuple(cut[2:])).ordered()
