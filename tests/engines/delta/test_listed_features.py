"""Features that a protocol lists and nothing uses, as deltalake lists them: every operation, and both engines after."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.log_edits import rewrite_log
from tests.formats.delta.runs import opened, optimize
from tests.formats.delta.runs import shown as read
from tests.formats.delta.sweeping import aged, part, plant, swept

import nightkeep
from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.metadata.features import supported
from nightkeep.model import Operation, Outcome
from nightkeep.model.sweep_rules import SweepMode

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def table(lakes: Lakes, tmp_path: Path) -> Path:
    """Two partitions of three files, by deltalake with vectors switched on."""
    folder = tmp_path / "t"
    for start in (0, 10, 20):
        ids = range(start, start + 10)
        rows = pa.table(
            {"id": pa.array(ids, pa.int64()), "p": [f"p{i % 2}" for i in ids], "t": [f"row {i}" for i in ids]}
        )
        lakes.delta_rs_append(folder, rows, partition_by=["p"], properties=VECTORS)
    return folder


def protocol(table: Path) -> dict[str, Any]:
    lines = (table / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    return next(action["protocol"] for action in map(json.loads, lines) if "protocol" in action)


def change_first(table: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes the actions of the first commit."""
    rewrite_log(table, change, f"{0:020d}.json")


def test_a_table_of_deltalake_with_vectors_is_maintained(
    delta_spark: DeltaSpark, lakes: Lakes, table: Path, tmp_path: Path
) -> None:
    assert "variantType" in supported(protocol(table))
    before = delta_spark.read(table)
    assert read(table).rows == before.rows

    told = nightkeep.delete(
        f"delta:{table}", rows_where="id IN (1, 5, 9, 13, 17, 21, 25, 29)", no_check=True, reports=str(tmp_path / "r")
    )
    assert told.outcome == Outcome.VERIFIED, told.reason
    left = delta_spark.read(table)
    assert len(left.rows) == 22 and left.rows == lakes.duckdb_read(table).rows == read(table).rows

    for operation, settings in ((Operation.PERSIST_DELETES, {"max_deleted_ratio": 0.0}), (Operation.OPTIMIZE, {})):
        done = optimize(table, operation=operation, **settings)
        assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), done.reason
        for engine in (delta_spark.read, lakes.delta_rs_read, lakes.duckdb_read):
            assert engine(table).rows == left.rows, operation
    assert read(table, where="id = 2 AND p = 'p0'").rows == delta_spark.read(table, where="id = 2").rows

    aged(table)
    orphans = plant(table, part())
    gone, found = swept(table, SweepMode.QUARANTINE)
    # Files that the rewrites removed are past the table's retention too.
    live = {file.name for unit in opened(table).snapshot().units for file in unit.files}
    assert gone.outcome is Outcome.VERIFIED and orphans <= found and not found & live, gone.reason
    assert delta_spark.read(table).rows == left.rows


LISTED = (
    ("variantType-preview", "reader"),
    ("variantShredding-preview", "reader"),
    ("typeWidening-preview", "reader"),
    ("timestampNtz", "reader"),
    ("variantShredding", "reader"),
    ("collations-preview", "writer"),
    ("icebergCompatV1", "writer"),
    ("icebergCompatV2", "writer"),
    ("icebergCompatV3", "writer"),
    ("coordinatedCommits-preview", "writer"),
    ("redirectReaderWriter-preview", "reader"),
    ("redirectWriterOnly-preview", "writer"),
    ("identityColumns", "writer"),
    ("clustering", "writer"),
    ("columnMapping", "reader"),
    ("generatedColumns", "writer"),
    ("checkConstraints", "writer"),
)


@pytest.mark.few(4)
@pytest.mark.parametrize(("feature", "kind"), LISTED)
def test_features_that_nothing_uses_refuse_nothing(
    delta_spark: DeltaSpark, table: Path, feature: str, kind: str
) -> None:
    before = delta_spark.read(table).rows

    def listed(action: dict[str, Any]) -> None:
        for name in ("readerFeatures", "writerFeatures")[0 if kind == "reader" else 1 :]:
            if "protocol" in action:
                action["protocol"][name] = sorted(
                    {*action["protocol"][name], feature, "domainMetadata"}
                    - ({"domainMetadata"} if name == "readerFeatures" else set())
                )

    change_first(table, listed)
    delta_spark.forget()
    told = optimize(table)
    assert told.outcome is Outcome.VERIFIED, told.reason
    assert read(table).rows == before
    try:
        assert delta_spark.read(table).rows == before
    except EngineError as failure:
        assert "DELTA_UNSUPPORTED_FEATURES" in str(failure) or "METADATA_MISMATCH" in str(failure)


WRITERS = ("ofALaterRelease", "inCommitTimestamp-preview", "collations")


@pytest.mark.few(1)
@pytest.mark.parametrize("feature", WRITERS)
def test_what_only_writers_must_know_is_read(
    delta_spark: DeltaSpark, table: Path, tmp_path: Path, feature: str
) -> None:
    """Read, checked in a dry run of a sweep, and never changed."""

    def used(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"]["writerFeatures"].append(feature)
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            if feature == "collations":
                schema["fields"][2]["metadata"] = {"__COLLATIONS": {"t": "spark.UTF8_LCASE"}}
            action["metaData"]["schemaString"] = json.dumps(schema)

    change_first(table, used)
    rows = delta_spark.read(table).rows
    assert read(table).rows == rows and len(rows) == 30
    assert read(table, where="id < 5").rows == delta_spark.read(table, where="id < 5").rows
    if feature == "collations":
        assert len(delta_spark.read(table, where="t = 'ROW 5'").rows) == 1
        with pytest.raises(RefusedTable, match="a condition on column t is not handled: it has a collation"):
            read(table, where="t = 'ROW 5'")
    status = nightkeep.status(f"delta:{table}", reports=str(tmp_path / "r"))
    assert status[0].metrics and f"table feature {feature}" in status[0].why
    aged(table)
    orphans = plant(table, part())
    listed, found = swept(table, SweepMode.DRY_RUN)
    assert found == orphans, listed.reason
    for mode in (SweepMode.QUARANTINE, SweepMode.DELETE):
        copy = Path(shutil.copytree(table, tmp_path / mode / "t"))
        if feature == "collations":
            # It concerns values only, which a sweep does not read.
            gone, found = swept(copy, mode)
            assert (gone.outcome, found) == (Outcome.VERIFIED, orphans), gone.reason
            assert delta_spark.read(copy).rows == rows
            continue
        with pytest.raises(RefusedTable, match=f"table feature {feature}"):
            swept(copy, mode)
    told = optimize(table)
    assert told.outcome is Outcome.REFUSED and feature in (told.reason or "")


def test_a_table_in_step_with_iceberg_is_read(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "i"
    properties = "'delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name'"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT, t STRING) USING delta TBLPROPERTIES ({properties})",
        f"INSERT INTO {named(table)} VALUES (1, 'a'), (2, 'b')",
    )
    assert read(table).rows == delta_spark.read(table).rows
    assert optimize(table).outcome is Outcome.REFUSED


def test_a_newer_writer_version_is_read(delta_spark: DeltaSpark, table: Path) -> None:
    change_first(table, lambda action: action.get("protocol", {}).update(minWriterVersion=8) or None)
    try:
        rows = delta_spark.read(table).rows
    except EngineError as failure:
        pytest.fail(f"delta-spark does not read it: {failure}")
    assert read(table).rows == rows
    assert optimize(table).outcome is Outcome.REFUSED


def test_a_table_that_was_clustered_is_packed(delta_spark: DeltaSpark, tmp_path: Path) -> None:
    table = tmp_path / "c"
    delta_spark.sql(f"CREATE TABLE {named(table)} (id BIGINT, t STRING) USING delta CLUSTER BY (id)")
    for number in (1, 2, 3):
        delta_spark.sql(f"INSERT INTO {named(table)} VALUES ({number}, 'a'), ({number + 10}, 'b')")
    delta_spark.sql(f"ALTER TABLE {named(table)} CLUSTER BY NONE")
    before = delta_spark.read(table).rows
    assert optimize(table).outcome is Outcome.VERIFIED
    assert delta_spark.read(table).rows == before
    delta_spark.sql(f"OPTIMIZE {named(table)}", f"INSERT INTO {named(table)} VALUES (9, 'z')")
