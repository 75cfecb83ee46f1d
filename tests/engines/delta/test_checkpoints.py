"""Tables of every feature with a checkpoint of ours and no older log -> engines read, write and checkpoint on top."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.drivers.delta_spark import DeltaSpark, named
from tests.drivers.json_lines import EngineError
from tests.drivers.lake_rows import Rows
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.checkpointed import alone, checkpointed, head_of
from tests.formats.delta.runs import opened

from nightkeep.errors import RefusedTable

GOLDEN = Path(__file__).parents[2] / "golden" / "delta"
TABLES = sorted(path.parent.name for path in GOLDEN.glob("*/rows.json"))
STRUCT = "delta.checkpoint.writeStatsAsStruct"
JSON = "delta.checkpoint.writeStatsAsJson"
Sets = dict[str, set[str]]


def actions(table: Path) -> Sets:
    """The actions of a table's newest checkpoint by kind, sidecars included, as texts: without absent fields."""
    found: Sets = {}
    checkpoints = sorted((table / "_delta_log").glob("*.checkpoint*"))
    files = [path for path in checkpoints if path.name[:20] == checkpoints[-1].name[:20]]
    for file in files:
        for row in _rows(file):
            ((kind, body),) = ((kind, body) for kind, body in row.items() if body is not None)
            if kind == "sidecar":
                files.append(table / "_delta_log/_sidecars" / body["path"])
            elif kind != "checkpointMetadata":
                found.setdefault(kind, set()).add(json.dumps(_plain(kind, body), sort_keys=True, default=repr))
    return found


def _rows(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".json":
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    stored = pq.ParquetFile(file)
    columns = [stored.schema.column(number).path for number in range(len(stored.schema))]
    # Python has no value for some dates among the statistics.
    return stored.read([path for path in columns if "_parsed." not in path]).to_pylist(maps_as_pydicts="strict")


def _plain(kind: str, body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    # delta-spark leaves dataChange as the commits had it.
    left = {name: value for name, value in body.items() if name != "dataChange" and not name.endswith("_parsed")}
    return {name: _plain(kind, value) for name, value in left.items() if value not in (None, {}, [])}


def readers(delta_spark: DeltaSpark, lakes: Lakes) -> Mapping[str, Callable[[Path], Rows]]:
    return {"delta-spark": delta_spark.read, "delta-rs": lakes.delta_rs_read, "DuckDB": lakes.duckdb_read}


def seen(engines: Mapping[str, Callable[[Path], Rows]], table: Path) -> dict[str, Rows]:
    """What each engine reads; nothing of those that cannot read such a table."""
    found = {}
    for name, read in engines.items():
        try:
            found[name] = read(table)
        except EngineError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_engines_read_the_same_from_the_checkpoint_alone(
    name: str, delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for table in (ours, theirs):
        shutil.copytree(GOLDEN / name / "table", table)
        alone(table, keep_commits=True)
    engines = readers(delta_spark, lakes)
    delta_spark.forget()
    before = seen(engines, ours)
    assert "delta-spark" in before
    try:
        written = checkpointed(ours)
    except RefusedTable as refusal:
        pytest.skip(str(refusal))
    assert written is not None
    delta_spark.checkpoint(theirs)
    expected = actions(theirs)
    assert actions(ours) == expected
    alone(ours)
    delta_spark.forget()
    assert seen(engines, ours) == before
    assert head_of(ours).version == written.version


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["classic", "v2"])
@pytest.mark.parametrize(("as_json", "as_struct"), [("true", "false"), ("true", "true"), ("false", "true")])
def test_engines_write_and_clean_on_top(
    policy: str, as_json: str, as_struct: str, delta_spark: DeltaSpark, lakes: Lakes, tmp_path: Path
) -> None:
    table = tmp_path / "events"
    properties = f"'delta.checkpointPolicy' = '{policy}', '{JSON}' = '{as_json}', '{STRUCT}' = '{as_struct}'"
    delta_spark.sql(
        f"CREATE TABLE {named(table)} (id BIGINT, at TIMESTAMP, day DATE, price DECIMAL(20,4), f FLOAT, t STRING) "
        f"USING delta PARTITIONED BY (day) TBLPROPERTIES ({properties}, 'delta.enableDeletionVectors' = 'true', "
        "'delta.checkpointInterval' = '1000')",
        *(
            f"INSERT INTO {named(table)} SELECT id, timestamp_micros(id * 1000003), "
            f"date'2026-11-01' + cast(id % 2 AS int), id / 7, id / 3, concat('t', id) FROM range({start}, {start + 20})"
            for start in range(0, 100, 20)
        ),
        f"DELETE FROM {named(table)} WHERE id % 9 = 4",
    )
    engines = readers(delta_spark, lakes)
    before = seen(engines, table)
    assert before.keys() == engines.keys()
    theirs = Path(shutil.copytree(table, tmp_path / "theirs"))
    delta_spark.checkpoint(theirs)
    written = checkpointed(table, sidecar_actions=3)
    assert actions(table) == actions(theirs) and actions(table)["remove"]
    assert written is not None and (written.sidecars > 1) == (policy == "v2")
    alone(table)
    delta_spark.forget()
    assert seen(engines, table) == before
    conditions = ["id = 77", "price < 1.5", "f > 30", "t = 't42'", "at < timestamp'1970-01-01T00:00:11Z'"]
    assert [len(rows.rows) for rows in delta_spark.find(table, conditions)] == [1, 10, 8, 1, 10]
    delta_spark.sql(f"UPDATE {named(table)} SET t = 'new' WHERE id < 3", f"OPTIMIZE {named(table)}")
    after = delta_spark.read(table)
    delta_spark.checkpoint(table)
    alone(table)
    delta_spark.forget()
    assert delta_spark.read(table) == after
    assert opened(table).snapshot().version == written.version + 2


@pytest.mark.slow
def test_delta_rs_goes_on_from_our_checkpoint(lakes: Lakes, tmp_path: Path) -> None:
    table = tmp_path / "events"
    for start in range(12):
        lakes.delta_rs_append(table, pa.table({"id": [start], "p": ["a"]}), partition_by=["p"])
    before = lakes.delta_rs_read(table)
    assert checkpointed(table) is not None
    alone(table)
    assert lakes.delta_rs_read(table) == before
    lakes.delta_rs_append(table, pa.table({"id": [77], "p": ["b"]}))
    lakes.delta_rs_checkpoint(table)
    ours = checkpointed(table)
    assert ours is None
    assert sorted(lakes.delta_rs_read(table).column("id")) == sorted([*before.column("id"), 77])
