"""Tables that delta-spark made with CLUSTER BY: we cluster them, every engine reads them, and delta-spark goes on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap64
from pyspark.sql import SparkSession
from tests.drivers.delta_spark import DeltaSpark, Generated, Writing, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.laid_anew import a_run
from tests.formats.delta.lake import request
from tests.formats.delta.runs import opened, optimize, shown
from tests.support.table_storage import storage_of

import nightkeep
from nightkeep.checking.check import check
from nightkeep.formats.delta.gate.file_audit import file_faults
from nightkeep.model import Address, Conflicted, Outcome, Verified, VerifyLevel
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus
from nightkeep.stages.execute import execute
from nightkeep.stages.plan import plan
from nightkeep.stages.publish import publish
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

COLUMNS = "id BIGINT, day DATE, place STRUCT<lat: INT, name: STRING>, text STRING"
SELECT = (
    "(id * 7919) % 10007 AS id",
    "DATE'2026-01-01' + CAST(id % 300 AS INT) AS day",
    "named_struct('lat', CAST((id * 31) % 997 AS INT), 'name', concat('n', id % 50)) AS place",
    "IF(id % 11 = 0, NULL, concat('text ', id)) AS text",
)
FILES = {"target_size": "6KB", "min_file_size": "1KB"}


def rows(count: int, start: int = 0) -> Generated:
    return Generated(count, tuple(text.replace("id ", f"(id + {start}) ", 1) for text in SELECT) if start else SELECT)


def create(spark: DeltaSpark, table: Path, columns: str, **properties: str) -> None:
    stated = ", ".join(
        f"'delta.{name}' = '{value}'" for name, value in {"enableDeletionVectors": "true", **properties}.items()
    )
    spark.sql(f"CREATE TABLE {named(table)} ({COLUMNS}) USING delta CLUSTER BY ({columns}) TBLPROPERTIES ({stated})")


def providers(table: Path) -> Mapping[str, str | None]:
    """Who clustered each live file, by its path."""
    files = [file for unit in opened(table).snapshot().units for file in unit.files]
    return {file.path: file.raw.get("clusteringProvider") for file in files}  # type: ignore[misc]


def of(table: Path, provider: str | None) -> set[str]:
    return {path for path, name in providers(table).items() if name == provider}


@pytest.mark.slow
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_both_cluster_a_table_and_leave_each_others_files(
    delta_spark: DeltaSpark, lakes: Lakes, spark: SparkSession, tmp_path: Path, mapping: str
) -> None:
    table = tmp_path / "t"
    mapped: dict[str, Any] = {"columnMapping.mode": mapping} if mapping != "none" else {}
    create(delta_spark, table, "id, place.lat", **mapped)
    delta_spark.write(table, rows(2_000), Writing(files=2))
    delta_spark.sql(f"OPTIMIZE {named(table)}")
    theirs = of(table, "liquid")
    assert theirs == providers(table).keys()
    delta_spark.write(table, rows(4_000, 2_000), Writing(files=6))
    delta_spark.sql(f"DELETE FROM {named(table)} WHERE id % 101 = 3")
    before = delta_spark.read(table)

    done = optimize(table, **FILES)
    assert done.outcome is Outcome.VERIFIED, done.reason
    assert done.plan is not None and "clustered by liquid stay as they are" in done.plan.notes[0]
    assert of(table, "liquid") == theirs and of(table, None) == set()
    ours = of(table, "nightkeep")
    assert len(ours) > 4
    assert delta_spark.read(table) == before == shown(table)
    if mapping == "none":
        assert lakes.delta_rs_read(table) == before == lakes.duckdb_read(table)
    found = check(CheckRequest(Address("delta", str(table), "t"), version=done.committed_version), spark=spark)
    assert found.status is CheckStatus.PASSED, found
    for where in ("id BETWEEN 500 AND 600", "place.lat < 20", "id = 77 AND place.lat > 900"):
        opens = set(delta_spark.files(table, where=where))
        assert len(opens & ours) < len(ours), where
        assert delta_spark.read(table, where=where) == shown(table, where=where)

    # delta-spark goes on: it clusters what is new, and leaves what carries our name.
    delta_spark.write(table, rows(500, 6_000), Writing(files=2))
    delta_spark.sql(f"OPTIMIZE {named(table)}")
    assert of(table, "nightkeep") == ours and of(table, None) == set()
    after, theirs = delta_spark.read(table), of(table, "liquid")
    assert len(after.rows) == len(before.rows) + 500
    again = optimize(table, full=True, **FILES)
    assert again.outcome is Outcome.VERIFIED, again.reason
    assert of(table, "liquid") == theirs and not ours & of(table, "nightkeep")
    assert delta_spark.read(table) == after == shown(table)

    # FULL takes the files of every provider.
    delta_spark.sql(f"OPTIMIZE {named(table)} FULL")
    assert of(table, "liquid") == providers(table).keys() and shown(table) == after
    left = optimize(table, full=True, **FILES)
    assert left.outcome is Outcome.UNCHANGED and "stay as they are" in (left.reason or "")
    delta_spark.sql(f"UPDATE {named(table)} SET text = 'new' WHERE id < 100", f"VACUUM {named(table)} LITE")
    assert shown(table) == delta_spark.read(table)


@pytest.mark.slow
def test_nights_of_one_file_rewrite_that_file(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "t"
    create(delta_spark, table, "id")
    delta_spark.write(table, rows(9_000), Writing(files=4))
    assert optimize(table, **FILES).outcome is Outcome.VERIFIED
    cube = of(table, "nightkeep")
    for night in (1, 2):
        delta_spark.write(table, rows(100, 9_000 + 100 * night))
        (new,) = of(table, None)
        before = delta_spark.read(table)
        done = optimize(table, **FILES)
        assert done.outcome is Outcome.VERIFIED and done.plan is not None, done.reason
        files = done.plan.units[0].input_files
        assert new in files and len(files) == night and not cube & set(files)
        assert cube < of(table, "nightkeep") and delta_spark.read(table) == before == shown(table)
    assert optimize(table, **FILES).outcome is Outcome.UNCHANGED


@pytest.mark.slow
def test_tags_of_cubes_do_not_make_files_of_ours_theirs(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    """Whose a file is, its provider states alone. Clients may ignore tags (AddFile.Tags), and ours have none."""
    table = tmp_path / "t"
    create(delta_spark, table, "id")
    delta_spark.write(table, rows(9_000), Writing(files=4))
    assert optimize(table, **FILES).outcome is Outcome.VERIFIED
    ours = of(table, "nightkeep")
    tags = {"ZCUBE_ID": "6f1b", "ZCUBE_ZORDER_BY": '["id"]', "ZCUBE_ZORDER_CURVE": "hilbert"}
    files = [file for unit in opened(table).snapshot().units for file in unit.files]
    adds = [{"add": {**file.raw, "tags": tags, "dataChange": False}} for file in files]
    log = sorted((table / "_delta_log").glob("[0-9]*.json"))
    info = {"commitInfo": {"timestamp": 1_900_000_000_000, "operation": "WRITE", "operationParameters": {}}}
    text = "".join(f"{json.dumps(action)}\n" for action in (info, *adds))
    (table / f"_delta_log/{len(log):020d}.json").write_text(text)
    delta_spark.write(table, rows(2_000, 9_000), Writing(files=2))
    before = delta_spark.read(table)
    delta_spark.sql(f"OPTIMIZE {named(table)}")
    assert of(table, "nightkeep") == ours and of(table, None) == set()
    done = optimize(table, full=True, **FILES)
    assert done.outcome is Outcome.VERIFIED, done.reason
    new = [
        file for unit in opened(table).snapshot().units for file in unit.files if file.path in of(table, "nightkeep")
    ]
    assert new and not any(file.raw.get("tags", {}).keys() & tags.keys() for file in new)
    assert delta_spark.read(table) == before == shown(table)


@pytest.mark.slow
def test_bounds_that_the_gate_asks_for_are_those_that_spark_states(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    """Of clustering columns of every type, also where a value has none."""
    table = tmp_path / "t"
    kinds = {
        "a": ("STRING", "concat(repeat('x', 40), id)"),
        "b": ("DATE", "DATE'2026-01-01' + CAST(id % 300 AS INT)"),
        "c": ("TIMESTAMP", "timestamp_micros(id * 1234567)"),
        "d": ("TIMESTAMP_NTZ", "CAST(timestamp_micros(id * 1234567) AS TIMESTAMP_NTZ)"),
    }
    more = {
        "a": ("DOUBLE", "IF(id % 5 = 0, double('NaN'), id / 4)"),
        "b": ("FLOAT", "IF(id % 7 = 0, float('Infinity'), float(id))"),
        "c": ("DECIMAL(20, 3)", "CAST(id AS DECIMAL(20, 3))"),
        "d": ("STRING", "IF(id % 3 = 0, NULL, '')"),
    }
    for number, columns in enumerate((kinds, more)):
        place = table / str(number)
        listed = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
        delta_spark.sql(f"CREATE TABLE {named(place)} ({listed}) USING delta CLUSTER BY ({', '.join(columns)})")
        delta_spark.write(place, Generated(500, tuple(f"{text} AS {name}" for name, (_, text) in columns.items())))
        snapshot = opened(place).snapshot()
        (unit,) = snapshot.units
        assert unit.files and unit.schema.clustering
        for file in unit.files:
            found = list(file_faults(storage_of(opened(place)), unit, file, live=BitMap64(), show=lambda batch: None))
            assert not [fault for fault in found if "of the clustering column" in fault], found


@pytest.mark.slow
def test_columns_that_changed_follow_the_domain(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "t"
    create(delta_spark, table, "id")
    delta_spark.write(table, rows(4_000), Writing(files=4))
    assert optimize(table, **FILES).outcome is Outcome.VERIFIED
    before = delta_spark.read(table)
    delta_spark.sql(f"ALTER TABLE {named(table)} CLUSTER BY (place.lat, day)")
    done = optimize(table, **FILES)
    assert done.outcome is Outcome.VERIFIED and done.plan is not None, done.reason
    assert str(done.plan.clustering) == "hilbert by place.lat, day"
    assert of(table, None) == set() and delta_spark.read(table) == before == shown(table)
    where = "place.lat < 20"
    assert len(delta_spark.files(table, where=where)) < len(providers(table))
    assert delta_spark.read(table, where=where) == shown(table, where=where)
    delta_spark.sql(f"ALTER TABLE {named(table)} CLUSTER BY NONE")
    packed = optimize(table, target_size="1MB")
    assert packed.outcome is Outcome.VERIFIED and packed.plan is not None, packed.reason
    assert packed.plan.clustering is None and len(providers(table)) == len(of(table, None)) == 1
    assert delta_spark.read(table) == before == shown(table)
    delta_spark.sql(f"ALTER TABLE {named(table)} CLUSTER BY (day)", f"OPTIMIZE {named(table)}")
    assert delta_spark.read(table) == before


@pytest.mark.slow
def test_a_z_order_is_refused_as_the_engine_refuses_it(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "t"
    create(delta_spark, table, "id")
    delta_spark.write(table, rows(100), Writing(files=2))
    with pytest.raises(EngineError) as caught:
        delta_spark.sql(f"OPTIMIZE {named(table)} ZORDER BY (day)")
    assert "CLUSTERING_WITH_ZORDER_BY" in caught.value.condition
    stated = nightkeep.sql(f"OPTIMIZE {named(table)} ZORDER BY (day)", no_check=True, reports=str(tmp_path / "r"))
    (planned,) = nightkeep.plan(f"delta:{table}", operation="optimize", hilbert="day", reports=str(tmp_path / "r"))
    for document in (stated, planned):
        assert document.outcome is Outcome.REFUSED
        assert "(table feature clustering); optimize clusters it by id" in (document.reason or "")
    assert of(table, None) == providers(table).keys()
    done = nightkeep.sql(f"OPTIMIZE {named(table)}", no_check=True, reports=str(tmp_path / "r"))
    assert done.outcome is Outcome.VERIFIED and of(table, None) == set()


@pytest.mark.slow
def test_columns_that_change_during_a_run_are_a_conflict(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    """delta-spark changes the domain alone, and not the metadata."""
    folder = tmp_path / "t"
    create(delta_spark, folder, "id")
    delta_spark.write(folder, rows(100), Writing(files=2))
    table, run = opened(folder), a_run()
    planned = plan(table, table.snapshot(), request())
    rewrites = execute(table, planned, run, mapper=inline)
    delta_spark.sql(f"ALTER TABLE {named(folder)} CLUSTER BY (day)")
    assert table.snapshot().raw_metadata == table.snapshot(planned.version).raw_metadata
    candidate = table.commits.stage(table.snapshot(planned.version), rewrites, run)
    checked = verify(table, planned, rewrites, candidate, level=VerifyLevel.FULL, mapper=inline)
    assert isinstance(checked, Verified), checked
    found = publish(table, checked, run)
    assert isinstance(found, Conflicted) and "clustering columns changed" in str(found)
    assert of(folder, None) == providers(folder).keys()
