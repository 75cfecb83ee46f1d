"""Rows that a merge leaves out of its window, against Java's readers and against a window over all rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout
from tests.formats.paimon.contents import opened
from tests.formats.paimon.spark.test_view import java_rows, spark_rows

from nightkeep.formats.paimon.metadata.schema import PaimonSchema
from nightkeep.formats.paimon.spark import largest_run, view
from nightkeep.formats.paimon.spark.data_files import PaimonStoredFile, numbered_files
from nightkeep.formats.paimon.spark.largest_run import largest_runs
from nightkeep.model import View

Files = Sequence[PaimonStoredFile]
EVERYTHING = 1 << 62
KEYS = {
    "INT": range(-70, 70),
    "BIGINT": [*range(40), *(1 << 40 | n for n in range(40))],
    "STRING": ["", *(f"k{n}" for n in range(80))],
    "DOUBLE": [0.0, "-0.0", "NaN", *(n / 4 for n in range(80))],
    "DATE": [f"2026-{month:02}-{day:02}" for month in range(1, 9) for day in range(1, 11)],
}
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "vectors": {"deletion-vectors.enabled": "true"},
    "sequence": {"sequence.field": "rank"},
    "descending": {"sequence.field": "rank", "sequence.field.sort-order": "descending"},
    "retracts": {"ignore-delete": "true"},
    "first row": {"merge-engine": "first-row"},
}


def made(java: PaimonJava, folder: Path, kind: str, options: Mapping[str, str], *, days: tuple[str, ...]) -> Path:
    """A table with one large run in each bucket and few newer rows, some on level 1, most on level 0."""
    dice, table = Random(f"{kind} {options} {days}"), folder / "t"
    columns = [("day", "STRING NOT NULL"), ("key", f"{kind} NOT NULL"), ("rank", "INT"), ("text", "STRING")]
    keys, partitions = (["day", "key"], ["day"]) if len(days) > 1 else (["key"], [])
    layout = Layout(columns, keys, partitions, {"bucket": "2", "write-only": "true", "num-levels": "4", **options})
    java.create(table, layout)
    kinds = ["+I", "+U"] if options.get("merge-engine") == "first-row" else ["+I", "+U", "-D"]

    def write(share: float, text: str) -> None:
        chosen = [(day, key) for day in days for key in KEYS[kind] if dice.random() < share]
        java.write(table, [(dice.choice(kinds), *pair, dice.choice([None, 1, 2, 3]), text) for pair in chosen])

    write(0.9, "first")
    java.compact(table, Compaction(full=True))
    write(0.05, "second")
    write(0.1, "third")
    return table


@pytest.mark.few(4)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    ("kind", "days"), [*((kind, ("a",)) for kind in KEYS), ("INT", ("a", "b")), ("STRING", ("a", "b"))]
)
def test_lone_rows_are_those_that_no_other_row_meets(
    spark: SparkSession,
    paimon_java: PaimonJava,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    days: tuple[str, ...],
    options: str,
) -> None:
    table = made(paimon_java, tmp_path, kind, OPTIONS[options], days=days)
    monkeypatch.setattr(largest_run, "FEW_ROWS", EVERYTHING)
    windowed = spark_rows(spark, table, View.MERGED)
    monkeypatch.setattr(largest_run, "FEW_ROWS", 0)
    monkeypatch.setattr(largest_run, "_LEAST_RATIO", 2)
    found: list[tuple[int, int]] = []

    def counted(files: Files, schema: PaimonSchema) -> tuple[Files, Files]:
        runs = largest_runs(files, schema)
        found.append((len(runs[0]), len(runs[1])))
        return runs

    monkeypatch.setattr(view, "largest_runs", counted)
    shown = spark_rows(spark, table, View.MERGED)
    assert found and all(min(sizes) > 0 for sizes in found)
    assert shown == windowed
    if options != "first row":  # no option makes Java's readers of such a table show level 0
        assert shown == java_rows(paimon_java, table, MERGE_ON_READ)


def test_a_level_whose_ranges_overlap_is_no_run(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = made(paimon_java, tmp_path, "INT", {}, days=("a",))
    snapshot = opened(table).snapshot()
    files = [(place, bucket, file) for place, bucket in enumerate(snapshot.units) for file in bucket.files]
    top = [each for each in files if each[2].level > 0]
    assert [file.file for file in largest_runs(numbered_files(top), snapshot.schema)[0]] == [each[2] for each in top]
    place, bucket, file = top[0]
    twice = numbered_files([*top, (place, bucket, replace(file, name="other.parquet"))])
    inverted = numbered_files([(place, bucket, replace(file, min_key=file.max_key, max_key=file.min_key)), *top[1:]])
    for damaged in (twice, inverted):
        assert largest_runs(damaged, snapshot.schema) == ([], damaged)
