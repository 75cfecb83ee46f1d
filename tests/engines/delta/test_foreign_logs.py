"""Logs and tables as other writers leave them: read as delta-spark reads them, cared for where that can be done."""

import json
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.formats.delta.hand_log import HandLog, remove
from tests.formats.delta.hand_log import add as added
from tests.formats.delta.log_edits import rewrite_log
from tests.formats.delta.runs import files, opened, optimize
from tests.formats.delta.sweeping import aged, part, plant, run_of, swept
from tests.support.extended import some_extended

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.delta.metadata.features import FEATURES
from nightkeep.formats.delta.metadata.head import head
from nightkeep.formats.delta.metadata.locations import storage_name
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Retention
from nightkeep.retention.expire_versions import ExpireOrder, expire_versions
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.storage import LocalStorage

GOLDEN = Path(__file__).parents[2] / "golden" / "delta"


def adds(table: Path, version: int) -> list[dict[str, Any]]:
    lines = (table / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [action["add"] for action in map(json.loads, lines) if "add" in action]


def leaves_of(file: Path) -> list[str]:
    schema = pq.ParquetFile(file).schema
    return [schema.column(place).path for place in range(len(schema))]


VOID = {
    "first": "id BIGINT, v VOID, note STRING",
    "alone": "v VOID, id BIGINT",
    "within": "id BIGINT, place STRUCT<a: INT, v: VOID>, note STRING",
}


@pytest.mark.parametrize("columns", some_extended(VOID.values(), keep=1), ids=VOID.keys())
def test_rows_of_a_void_column_are_counted_as_nulls_as_delta_spark_counts_them(
    delta_spark: DeltaSpark, tmp_path: Path, columns: str
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    delta_spark.sql(
        f"CREATE TABLE {named(ours)} ({columns}) USING delta",
        f"INSERT INTO {named(ours)} (id) VALUES (1)",
        f"INSERT INTO {named(ours)} (id) VALUES (2), (3)",
    )
    shutil.copytree(ours, theirs)
    truth = delta_spark.read(ours)

    document = optimize(ours)
    delta_spark.sql(f"OPTIMIZE {named(theirs)}")

    assert document.outcome is Outcome.VERIFIED, document.reason
    (our_file,), (their_file,) = adds(ours, 3), adds(theirs, 3)
    assert our_file["stats"] == their_file["stats"]
    assert leaves_of(ours / our_file["path"]) == leaves_of(theirs / their_file["path"])
    assert delta_spark.read(ours) == truth


# Forward compatibility


def test_kinds_beside_a_known_action_are_passed_over_as_delta_spark_does(
    delta_spark: DeltaSpark, tmp_path: Path
) -> None:
    """delta-spark's own fixture of unknown fields and actions has them in one line."""
    table = tmp_path / "t"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT) USING delta",
        f"INSERT INTO {named(table)} VALUES (1)",
        f"INSERT INTO {named(table)} VALUES (2)",
    )
    rewrite_log(table, lambda action: action.update({"new kind": {"a": 1}, "another": [2]}))
    delta_spark.forget()

    document = optimize(table)

    assert document.outcome is Outcome.VERIFIED, document.reason
    assert delta_spark.read(table).column("id") == (1, 2)


def test_two_known_actions_in_one_line_are_no_log(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "t")
    log.commit(0, *log.head)
    log.commit(1, {**added("a"), "txn": {"appId": "a", "version": 1}})
    with pytest.raises(CorruptMetadata, match="one action"):
        log.load()


def test_an_unknown_table_feature_stays_refused(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "t", features=("deletionVectors", "somethingNew"))
    log.commit(0, *log.head)
    document = optimize(log.folder)
    assert document.outcome is Outcome.REFUSED
    assert "table feature somethingNew is unknown" in (document.reason or "")
    log.commit(1, log.protocol | {"protocol": {**log.protocol["protocol"], "readerFeatures": ["somethingNew"]}})
    with pytest.raises(RefusedTable, match="table feature somethingNew is unknown"):
        log.load()


@pytest.mark.parametrize("checkpointed", some_extended([False, True], keep=1))
def test_a_superseded_metadata_needs_no_schema(delta_spark: DeltaSpark, tmp_path: Path, checkpointed: bool) -> None:
    """Logs of Delta Live Tables begin so; only the metadata in force is read."""
    table = tmp_path / "t"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT) USING delta",
        f"INSERT INTO {named(table)} VALUES (1)",
        f"ALTER TABLE {named(table)} SET TBLPROPERTIES ('a' = 'b')",
        f"INSERT INTO {named(table)} VALUES (2)",
    )
    rewrite_log(table, lambda action: action.get("metaData", {}).pop("schemaString", None), f"{0:020d}.json")
    delta_spark.forget()
    if checkpointed:
        delta_spark.checkpoint(table)

    document = optimize(table)

    assert document.outcome is Outcome.VERIFIED, document.reason
    assert delta_spark.read(table).column("id") == (1, 2)


def test_the_metadata_in_force_needs_a_schema(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "t")
    bare = {"metaData": {name: value for name, value in log.metadata["metaData"].items() if name != "schemaString"}}
    log.commit(0, *log.head)
    log.commit(1, bare)
    with pytest.raises(CorruptMetadata, match=r"metaData.*schemaString"):
        log.load()
    with pytest.raises(CorruptMetadata, match=r"metaData.*schemaString"):
        head(LocalStorage(str(log.folder)), table="hand")


# Paths


SPELLINGS = {
    "path": "{root}/{name}",
    "URI of one slash": "file:{root}/{name}",
    "URI of three": "file://{root}/{name}",
    "URI of this host": "file://localhost{root}/{name}",
}


@pytest.mark.parametrize("spelling", some_extended(SPELLINGS.values(), keep=1), ids=SPELLINGS.keys())
def test_an_absolute_path_below_the_tables_own_root_is_its_own(
    delta_spark: DeltaSpark, tmp_path: Path, spelling: str
) -> None:
    table = tmp_path / "a b%20c"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)",
        f"INSERT INTO {named(table)} VALUES (1, 'x y')",
        f"INSERT INTO {named(table)} VALUES (2, 'x y')",
    )

    def respell(action: dict[str, Any]) -> None:
        if add := action.get("add"):
            add["path"] = spelling.format(root=quote(str(table)), name=add["path"])

    rewrite_log(table, respell)
    delta_spark.forget()
    truth = delta_spark.read(table) if "localhost" not in spelling else None

    document = optimize(table)

    assert document.outcome is Outcome.VERIFIED, document.reason
    snapshot = opened(table).snapshot()
    assert len([file for unit in snapshot.units for file in unit.files]) == 1
    assert truth is None or delta_spark.read(table) == truth


@pytest.mark.parametrize(
    "path",
    [
        "/elsewhere/f.parquet",
        "file:/elsewhere/f.parquet",
        "file://host{root}/f.parquet",
        "s3://bucket{root}/f.parquet",
        "{root}-other/f.parquet",
        "file://{root}x/f.parquet",
    ],
)
def test_an_absolute_path_elsewhere_is_a_shallow_clones(tmp_path: Path, path: str) -> None:
    log = HandLog(tmp_path / "t")
    log.commit(0, *log.head)
    log.commit(1, added(path.format(root=log.folder)))
    with pytest.raises(RefusedTable, match="outside the table's folder"):
        log.load()


@pytest.mark.parametrize("path", ["{root}/../t/f.parquet", "{root}//f.parquet", "{root}/./f", "file:{root}/%2e%2e/f"])
def test_an_absolute_path_takes_no_steps(tmp_path: Path, path: str) -> None:
    log = HandLog(tmp_path / "t")
    log.commit(0, *log.head)
    log.commit(1, added(path.format(root=log.folder)))
    with pytest.raises((CorruptMetadata, RefusedTable)):
        log.load()


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_an_absolute_path_below_its_bucket_is_stripped(scheme: str) -> None:
    assert (
        storage_name(f"{scheme}://bucket/shop.db/a%20t/p=1/f.parquet", root="s3://bucket/shop.db/a t")
        == "p=1/f.parquet"
    )
    for other in (f"{scheme}://other/shop.db/a%20t/f", f"{scheme}://bucket/shop.db/a%20tx/f", "/shop.db/a t/f"):
        with pytest.raises(RefusedTable):
            storage_name(other, root="s3://bucket/shop.db/a t")


def test_one_file_under_two_spellings_is_not_read_twice(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "t")
    log.commit(0, *log.head)
    log.commit(1, added("f.parquet"), added(f"{log.folder}/f.parquet"))
    with pytest.raises(CorruptMetadata, match="one spelling"):
        log.load()


@pytest.mark.parametrize("live, gone", [("{root}/f", "file:{root}/f"), ("file://{root}/f", "f"), ("f", "{root}/f")])
def test_a_remove_under_another_spelling_is_a_doubt(tmp_path: Path, live: str, gone: str) -> None:
    """Whether the file lives is a matter of the reader: delta-spark compares `/x` as `file:/x`, and else the text."""
    log = HandLog(tmp_path / "t")
    log.commit(0, *log.head)
    log.commit(1, added(live.format(root=log.folder)))
    log.commit(2, remove(gone.format(root=log.folder)))
    with pytest.raises(CorruptMetadata, match=r"one spelling of its path.*a remove of"):
        log.load()


# Operations that read no values


def test_a_sweep_and_an_expiry_need_no_value_of_a_variant(tmp_path: Path) -> None:
    """Of the table that delta-spark wrote: what nobody names goes, and every other file stays as it is."""
    table = Path(shutil.copytree(GOLDEN / "variant" / "table", tmp_path / "t"))
    aged(table)
    before = files(table)
    orphans = plant(table, part(), part())
    now_ms = int(time.time() * 1000)

    order = ExpireOrder(SweepMode.DRY_RUN, ExpireRequest(now_ms), Retention(now_ms, 0))
    would = expire_versions(
        opened(table).retention, order, run_of("expire-1"), sets=MemorySets, before=lambda expiry: None
    )
    told, found = swept(table, SweepMode.QUARANTINE)

    assert would.outcome in (Outcome.SKIPPED, Outcome.UNCHANGED), would.reason
    assert (told.outcome, found) == (Outcome.VERIFIED, orphans), told.reason
    assert before.items() <= files(table).items()
    assert not any((table / name).exists() for name in orphans)


def test_the_features_of_values_are_no_others() -> None:
    assert {name for name, known in FEATURES.items() if known.is_of_values} == {
        "geospatial",
        "geospatial-dev",
        "collations",
        "collations-preview",
    }
