"""Deleting rows by vectors: the rows that delta-spark's own DELETE leaves, in every reader, and never unproven."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.drivers.delta_spark import DeltaSpark, Generated, Writing, latest_version, named
from tests.drivers.lake_rows import Rows
from tests.drivers.lakes_oracle import Lakes
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.commands.app import main
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats.delta.format import DeltaTable, open_table
from nightkeep.model import Address, Mismatch, Operation, Plan, Request, Run, Verified, VerifyLevel
from nightkeep.model.check_values import CheckRequest
from nightkeep.records.document import CheckStatus
from nightkeep.sql_text.rows.keys import key_condition
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.publish import publish
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

NOW = 1_800_000_000_000
RUN = Run("by hand", "0123456789abcdef", "01234567", NOW)
SELECT = (
    "id",
    "CAST(id % 3 AS INT) AS k",
    "if(id % 5 = 0, NULL, id % 10) AS n",
    "if(id % 7 = 0, DOUBLE('NaN'), id / 8) AS r",
    "'row ' || id AS t",
)
VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture(scope="module")
def source(delta_spark: DeltaSpark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three partitions of two files, some with vectors already; row ids are kept."""
    table = tmp_path_factory.mktemp("delete") / "a b" / "t"
    properties = {**VECTORS, "delta.enableRowTracking": "true"}
    for start in (0, 300):
        rows = Generated(300, tuple(each.replace("id", f"(id + {start})") for each in SELECT[1:]))
        named_id = (f"(id + {start}) AS id", *rows.select)
        delta_spark.write(table, Generated(300, named_id), Writing(partition_by=("k",), properties=properties))
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE id % 13 = 3")
    return table


@pytest.fixture(scope="module")
def source_rows(delta_spark: DeltaSpark, source: Path) -> int:
    return len(delta_spark.read(source).rows)


@pytest.fixture
def table(source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(source, tmp_path / "t"))


def opened(table: Path) -> DeltaTable:
    return open_table(Address("delta", str(table), "t"))


def planned(table: Path, condition: str | None) -> Plan:
    handle = opened(table)
    return plan(handle, handle.snapshot(), Request(Operation.DELETE, NOW, rows=condition))


def deleted(table: Path, condition: str) -> tuple[int, Verified]:
    """Plan, mark, prove and publish; the version."""
    handle, found = opened(table), planned(table, condition)
    rewrites = execute(handle, found, RUN, mapper=inline)
    candidate = handle.commits.stage(handle.snapshot(), rewrites, RUN)
    checked = verify(handle, found, rewrites, candidate, level=VerifyLevel.TOUCHED, mapper=inline)
    assert isinstance(checked, Verified), checked
    published = publish(handle, checked, RUN)
    return published.version, checked  # type: ignore[union-attr]


def actions(table: Path) -> list[dict[str, Any]]:
    commit = table / "_delta_log" / f"{latest_version(table):020d}.json"
    return [json.loads(line) for line in commit.read_text().splitlines()]


CONDITIONS = (
    "n = 4",
    "n < 5 OR r > 60",
    "NOT n > 2 AND k <> 1",
    "r >= 1e300 OR id < 20",
    "t LIKE 'row 1%'",
    "k = 2",
    "n IS NULL",
)


@pytest.mark.parametrize("condition", some_extended(CONDITIONS, keep=1))
def test_the_rows_that_delta_sparks_delete_leaves_are_left(
    delta_spark: DeltaSpark, lakes: Lakes, source: Path, table: Path, tmp_path: Path, condition: str
) -> None:
    judge = Path(shutil.copytree(source, tmp_path / "judge"))
    delta_spark.sql(f"DELETE FROM {named(judge)} WHERE {condition}")
    deleted(table, condition)
    columns = ("*", "_metadata.row_id")
    left = delta_spark.read(table, columns=columns)
    assert left == delta_spark.read(judge, columns=columns)
    without_ids = Rows(left.columns[:-1], left.types[:-1], tuple(row[:-1] for row in left.rows))
    assert lakes.duckdb_read(table) == without_ids.ordered()
    told = [action["add"] for action in actions(table) if "add" in action]
    places = {add["deletionVector"]["pathOrInlineDv"] for add in told}
    assert len(places) <= 3 and all(json.loads(add["stats"])["tightBounds"] is False for add in told)


@pytest.mark.extended
def test_delta_spark_deletes_and_optimizes_on_top(delta_spark: DeltaSpark, table: Path) -> None:
    deleted(table, "n = 4")
    before = delta_spark.read(table)
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE id % 10 = 7", f"OPTIMIZE {named(table)}")
    assert delta_spark.read(table).rows == tuple(row for row in before.rows if row[0] % 10 != 7)


def test_a_commit_reads_as_a_delete(delta_spark: DeltaSpark, source: Path, table: Path, tmp_path: Path) -> None:
    deleted(table, "k = 2 OR n = 4")
    info, *rest = (next(iter(action.values())) for action in actions(table))
    assert (info["operation"], info["operationParameters"]) == ("DELETE", {"predicate": '["k = 2 OR n = 4"]'})
    assert all(body["dataChange"] for body in rest if "path" in body)
    removes = [action["remove"] for action in actions(table) if "remove" in action]
    assert {remove["partitionValues"]["k"] for remove in removes} == {"0", "1", "2"}
    assert any("deletionVector" in remove for remove in removes)
    judge = Path(shutil.copytree(source, tmp_path / "judge"))
    delta_spark.sql(f"DELETE FROM {named(judge)} WHERE k = 2 OR n = 4")
    ours, told = (delta_spark.sql(f"DESCRIBE HISTORY {named(each)} LIMIT 1").dicts()[0] for each in (table, judge))
    assert ours["operation"] == told["operation"] == "DELETE"
    metrics = {name: value for name, value in dict(told["operationMetrics"]).items() if not name.endswith("TimeMs")}
    assert dict(ours["operationMetrics"]) == metrics and int(metrics["numDeletionVectorsUpdated"]) > 0


KEYS: Sequence[tuple[str, str, dict[str, list[Any]]]] = (
    ("parquet", "", {"n": [4, None, 4, 77]}),
    ("csv", "k,n\n2,\n0,4\n2,\n1,77\n", {"k": [2, 0, 2, 1], "n": [None, 4, None, 77]}),
    (
        "jsonl",
        '{"t": "row 12", "id": 12}\n{"t": "row 12", "id": 13}\n{"t": null, "id": 14}',
        {"t": ["row 12", "row 12", None], "id": [12, 13, 14]},
    ),
    ("parquet", "", {"r": [0.125, 2.5, 2.5], "k": [1, 2, 0]}),
    ("csv", 't\n"row 5"\nrow 599\n""\n', {"t": ["row 5", "row 599", ""]}),
)


@pytest.mark.extended
@pytest.mark.parametrize(("ending", "text", "values"), some_extended(KEYS, keep=1))
def test_the_rows_that_delta_sparks_merge_leaves_are_left(
    delta_spark: DeltaSpark,
    source: Path,
    source_rows: int,
    table: Path,
    tmp_path: Path,
    ending: str,
    text: str,
    values: dict[str, Any],
) -> None:
    handle, file, twin = opened(table), tmp_path / f"keys.{ending}", tmp_path / "twin.parquet"
    columns = handle.row_changes.columns(handle.snapshot())
    keys = pa.table({name: pa.array(held, columns.field(name).type) for name, held in values.items()})
    pq.write_table(keys, twin)
    if text:
        file.write_text(text)
    else:
        pq.write_table(keys, file)
    judge = Path(shutil.copytree(source, tmp_path / "judge"))
    same = " AND ".join(f"t.{name} <=> k.{name}" for name in values)
    merge = f"MERGE INTO {named(judge)} t USING parquet.`{twin}` k ON {same} WHEN MATCHED THEN DELETE"
    delta_spark.sql(merge)

    deleted(table, key_condition(file, columns))

    left = delta_spark.read(table).rows
    assert left == delta_spark.read(judge).rows and len(left) < source_rows


def test_statistics_and_partitions_leave_files_out(table: Path) -> None:
    def files(condition: str) -> int:
        return sum(len(unit.input_files) for unit in planned(table, condition).units)

    assert [files(each) for each in ("n = 4", "k = 2", "id > 400", "id > 400 AND k = 0", "id <=> 12", "id = 9000")] == [
        6,
        2,
        3,
        1,
        3,
        0,
    ]
    among = (
        "(id IN (12L, 9000L))",
        "id IN (12, 599)",
        "((k, id) IN ((2, 599L), (7, 12L)))",
        "id IN (9000L) OR k IN (9)",
        "(n IS NULL AND k IN (1))",
        "id IN (1000) OR k = 0 AND id < 300",
        "NOT id IN (12L)",
    )
    assert [files(each) for each in among] == [3, 4, 2, 0, 2, 2, 6]


def test_a_row_too_many_or_too_few_is_never_published(table: Path) -> None:
    handle, found = opened(table), planned(table, "n = 4")
    rewrites = execute(handle, found, RUN, mapper=inline)
    candidate = handle.commits.stage(handle.snapshot(), rewrites, RUN)
    for other in ("n = 4 AND id <> 4", "n = 4 OR id = 2", None):
        asked = replace(found, rows=other)
        for level in VerifyLevel:
            checked = verify(handle, asked, rewrites, candidate, level=level, mapper=inline)
            assert isinstance(checked, Mismatch), other


def test_tables_that_may_not_lose_rows_this_way_are_refused(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    cases: Sequence[tuple[dict[str, str], str]] = (
        ({"delta.enableDeletionVectors": "false"}, "delta.enableDeletionVectors"),
        ({**VECTORS, "delta.appendOnly": "true"}, "delta.appendOnly"),
        ({**VECTORS, "delta.enableChangeDataFeed": "true"}, "delta.enableChangeDataFeed"),
    )
    for number, (properties, message) in enumerate(cases):
        table = tmp_path / str(number)
        delta_spark.write(table, Generated(3, ("id",)), Writing(properties=properties))
        with pytest.raises(RefusedTable, match=message):
            planned(table, "id = 1")


def test_nothing_is_deleted_without_a_condition(table: Path) -> None:
    with pytest.raises(RefusedTable, match="operation delete does not exist"):
        planned(table, None)
    with pytest.raises(UsageError, match="condition on rows"):
        planned(table, "nobody = 1")


def command(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    with pytest.raises(SystemExit) as ended:
        main(["delete", *arguments, "--json"])
    return int(str(ended.value.code)), json.loads(capsys.readouterr().out)


def test_the_command_deletes_proves_and_checks(
    spark: SparkSession, delta_spark: DeltaSpark, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = delta_spark.read(table).rows
    where = ("--reports", str(tmp_path / "reports"), "--rows-where")
    status, document = command(f"delta:{table}", *where, "n >= 8 OR k = 2", capsys=capsys)
    assert (status, document["operation"], document["outcome"]) == (0, "delete", "verified"), document
    assert document["expectations"]["status"] == "passed", document["expectations"]
    kept = tuple(row for row in before if not (row[1] == 2 or (row[2] or 0) >= 8))
    assert delta_spark.read(table).rows == kept
    version = latest_version(table)
    status, document = command(f"delta:{table}", *where, "n >= 8", capsys=capsys)
    assert (status, document["outcome"], document["reason"]) == (0, "unchanged", "the condition selects no row")
    assert latest_version(table) == version
    commit = table / "_delta_log" / f"{version:020d}.json"
    commit.write_text(commit.read_text().replace("n >= 8 OR k = 2", "n >= 8"))
    report = check(CheckRequest(Address("delta", str(table), "t")), spark=spark)
    assert report.status is CheckStatus.FAILED
    assert {difference.difference.extra_count for difference in report.differences} == {0}


@pytest.mark.extended
def test_a_dry_run_counts_the_rows_that_the_command_then_hides(
    delta_spark: DeltaSpark, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, version = delta_spark.read(table).rows, latest_version(table)
    asked = (f"delta:{table}", "--reports", str(tmp_path / "reports"), "--rows-where", "n >= 8 OR k = 2")
    files = sorted(table.rglob("*"))
    status, document = command(*asked, "--dry-run", capsys=capsys)
    matching = sum(1 for row in before if row[1] == 2 or (row[2] or 0) >= 8)
    assert (status, document["outcome"], document["matching_rows"]) == (0, "skipped", matching)
    assert sorted(table.rglob("*")) == files and not (tmp_path / "reports").exists()
    with pytest.raises(SystemExit):
        main(["delete", *asked, "--no-check"])
    said = capsys.readouterr().out
    assert f"t: {matching:,} rows hidden in deletion vectors" in said
    undo = f"RESTORE TABLE delta.`{table}` TO VERSION AS OF {version}"
    assert f"t: to undo this commit and every later one: {undo}" in said
    delta_spark.sql(undo)
    assert delta_spark.read(table).rows == before


@pytest.mark.extended
def test_the_command_deletes_by_keys_proves_and_checks(
    delta_spark: DeltaSpark, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = delta_spark.read(table).rows
    file = tmp_path / "keys.csv"
    file.write_text("n,k,t\n,0,row 15\n4,,row 4\n4,1,row 4\n,2,row 5\n")
    asked = (f"delta:{table}", "--reports", str(tmp_path / "reports"), "--keys", str(file))
    status, document = command(*asked, capsys=capsys)
    assert (status, document["outcome"], document["expectations"]["status"]) == (0, "verified", "passed"), document
    gone = {(None, 0, "row 15"), (4, 1, "row 4"), (None, 2, "row 5")}
    left = delta_spark.read(table).rows
    assert left == tuple(row for row in before if (row[2], row[1], row[4]) not in gone)
    assert len(left) == len(before) - len(gone)
    version = latest_version(table)
    status, document = command(*asked, capsys=capsys)
    assert (status, document["outcome"]) == (0, "unchanged") and latest_version(table) == version
    assert document["reason"] == "the condition selects no row"


def test_what_does_not_report_the_rows_is_a_matter_of_usage(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "keys.csv"
    file.write_text("nobody\n1\n")
    keys = ("--keys", str(file))
    for arguments, told in (((), "found neither"), ((*keys, "--rows-where", "n = 1"), "found both"), (keys, "nobody")):
        with pytest.raises(SystemExit) as ended:
            main(["delete", f"delta:{table}", "--reports", str(tmp_path / "reports"), *arguments])
        assert ended.value.code == 2
        assert told in capsys.readouterr().err
