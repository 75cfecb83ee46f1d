"""Statements -> small tables written by delta-spark 4.4.0, each beside its rows as delta-spark reads them.

Same rows and actions on every run; names, ids and times are Delta's own. Run from the repository:
python -m tests.formats.delta.make_golden [name ...]
"""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.drivers.delta_spark import DeltaSpark
from tests.drivers.lake_rows import Rows
from tests.formats.delta.golden_features import FEATURES, variant
from tests.formats.delta.golden_layout import LAYOUT, optimize
from tests.formats.delta.golden_statistics import STATISTICS

GOLDEN = Path(__file__).parents[2] / "golden" / "delta"
ROW_IDS = ("id", "_metadata.row_id", "_metadata.row_commit_version")

Story = Callable[[DeltaSpark, Path], None]
STORIES: tuple[Story, ...] = (*LAYOUT, *FEATURES, *STATISTICS)


def main(names: Sequence[str]) -> None:
    with DeltaSpark() as spark:
        for story in STORIES:
            if not names or story.__name__ in names:
                _make(spark, story)


def _make(spark: DeltaSpark, story: Story) -> None:
    folder = GOLDEN / story.__name__
    shutil.rmtree(folder, ignore_errors=True)
    table = folder / "table"
    folder.mkdir(parents=True)
    story(spark, table)
    _tidy(table, keep_checksums=story is optimize)
    spark.forget()
    if story is not variant:
        _write_rows(folder / "rows.json", spark.read(table))
    if "row_tracking" in story.__name__:
        _write_rows(folder / "row_ids.json", spark.read(table, columns=ROW_IDS))


def _tidy(table: Path, *, keep_checksums: bool) -> None:
    """Without Hadoop's checksums, without Delta's where one table suffices, without empty folders."""
    for file in sorted(table.rglob("*")):
        if file.name.endswith(".crc") and (file.name.startswith(".") or not keep_checksums):
            file.unlink()
    for folder in sorted((path for path in table.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def _write_rows(file: Path, rows: Rows) -> None:
    """One row per line."""
    lines = ",\n  ".join(json.dumps(row) for row in rows.rows)
    head = f'{{"columns": {json.dumps(rows.columns)},\n "types": {json.dumps(rows.types)},\n "rows": [\n  '
    file.write_text(f"{head}{lines}\n]}}\n" if rows.rows else f"{head}]}}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
