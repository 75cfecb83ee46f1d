"""What Spark counts of a changelog that is published: nothing of a sound one, every change of one that lies."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.drivers.history import Compact, Expire, play
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.random_history import changelog_history
from tests.formats.paimon.contents import SAMPLES
from tests.formats.paimon.gate.test_changes import AFTER, BEFORE, GONE, INSERT, KIND, with_options
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.formats.views import open_view
from nightkeep.model import Address, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records.document import CheckStatus
from nightkeep.spark.view import TableView

LOOKUP = {"changelog-producer": "lookup"}
SILENT = {
    **LOOKUP,
    "changelog-producer.row-deduplicate": "true",
    "changelog-producer.row-deduplicate-ignore-fields": "updated_at,note",
}
TOLD = "streaming readers receive every change"


def upgraded(folder: Path, options: Mapping[str, str]) -> Path:
    table = with_options(Path(shutil.copytree(SAMPLES / "orders", folder / "orders")), dict(options))
    document = upgrade(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    return table


def opened(spark: SparkSession, table: Path) -> TableView:
    relation = open_view(Address("paimon", str(table), "t"), spark)
    for number in (7, 8):
        assert relation.version(number) is not None
    return relation


def counted(spark: SparkSession, table: Path) -> int:
    relation = opened(spark, table)
    version = relation.version(8)
    assert version is not None
    return sum(relation.unreported(8, 7, sorted(version.units)).values())


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [{}, LOOKUP, SILENT], ids=["none", "lookup", "silent"])
def test_a_sound_changelog_has_no_wrong_change(spark: SparkSession, tmp_path: Path, options: Mapping[str, str]) -> None:
    table = upgraded(tmp_path, options)
    assert counted(spark, table) == 0
    assert bool(list(table.rglob("changelog-nk-*"))) == bool(options)


def test_every_wrong_change_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    table = upgraded(tmp_path, LOOKUP)
    path = max(table.rglob("changelog-nk-*.parquet"), key=lambda path: path.stat().st_size)
    rows = pq.read_table(path)
    kinds = rows.column(KIND).to_pylist()
    assert {INSERT, BEFORE, AFTER, GONE} == {*kinds}
    place = rows.schema.get_field_index(KIND)

    def replaced(change: pa.Table) -> int:
        pq.write_table(change, path, store_schema=False, store_decimal_as_integer=True)
        return counted(spark, table)

    # A change of another kind is one that is missing, and one too many.
    kinds[kinds.index(INSERT)] = AFTER
    assert replaced(rows.set_column(place, rows.schema.field(place), pa.array(kinds, pa.int8()))) == 2
    assert replaced(rows.slice(2)) == 2
    assert replaced(pa.concat_tables([rows, rows.slice(0, 3)])) == 3
    names = rows.column("status").to_pylist()
    at = rows.schema.get_field_index("status")
    assert replaced(rows.set_column(at, rows.schema.field(at), pa.array(["?", *names[1:]]))) == 2
    assert replaced(rows) == 0


@pytest.mark.extended
def test_the_check_names_the_bucket_whose_readers_are_reported_wrongly(spark: SparkSession, tmp_path: Path) -> None:
    table = upgraded(tmp_path, LOOKUP)
    address = Address("paimon", str(table), "t")
    assert check(CheckRequest(address, 8), spark=spark).status is CheckStatus.PASSED
    path = max(table.rglob("changelog-nk-*.parquet"), key=lambda path: path.stat().st_size)
    pq.write_table(pq.read_table(path).slice(1), path, store_schema=False, store_decimal_as_integer=True)
    report = check(CheckRequest(address, 8), spark=spark)
    failed = [(result.name, result.unit) for result in report.results if result.status is CheckStatus.FAILED]
    day, bucket = path.parent.parent.name, path.parent.name
    assert failed == [(TOLD, f"{day}/{bucket}")]


def _tells_what_it_shows(seed: int) -> bool:
    """A full compaction tells something; Java's changelog contradicts its readers where a sequence group has no
    sequence."""
    history = changelog_history(seed)
    tells = any(isinstance(step, Compact) and step.full for step in history.steps)
    return tells and not any(option.endswith(".sequence-group") for option in history.layout.options)


@pytest.mark.parametrize("seed", some_extended(filter(_tells_what_it_shows, range(12)), keep=1))
def test_what_java_reports_is_sound(seed: int, spark: SparkSession, paimon_java: PaimonJava, tmp_path: Path) -> None:
    history = changelog_history(seed)
    table = tmp_path / "t"
    paimon_java.create(table, history.layout)
    play(paimon_java, table, [step for step in history.steps if not isinstance(step, Expire)])
    relation = open_view(Address("paimon", str(table), "t"), spark)
    told = [s["id"] for s in paimon_java.snapshots(table) if s.get("changelogManifestList") is not None]
    assert told
    for number in told:
        before, version = relation.version(number - 1), relation.version(number)
        assert before is not None and version is not None
        units = sorted(version.units)
        assert relation.unreported(number, number - 1, units) == dict.fromkeys(units, 0)
