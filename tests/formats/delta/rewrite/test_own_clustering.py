"""Tables with clustering columns: laid out as their domain says today, and files of other providers left alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.formats.delta.clustered_lake import SCHEMA, adds, cluster_by, clustered, provided, rows_of
from tests.formats.delta.lake import Lake, request
from tests.formats.delta.log_edits import rewrite_log
from tests.formats.delta.runs import optimize

import nightkeep
from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.delta.commit.commit import conflicts
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.rewrite.optimize import CLUSTERED, PACKED, file_bounds
from nightkeep.kernels.skipping import queries_of, skipped_share
from nightkeep.model import Clustering, Curve, Outcome, Rewrite, TaskCost

BY_ID = Clustering(("id",), Curve.HILBERT)


def filled(folder: Path, columns: Any = (["id"], ["deep", "y"]), **properties: str) -> Lake:
    lake = clustered(folder / "t", columns, **properties)
    lake.append(rows_of(range(8_000)), files=8)
    return lake


def target(lake: Lake, files: int = 16) -> int:
    return sum(file.bytes for file in lake.files) // files


def skipping(lake: Lake, *path: str) -> float:
    bounds = file_bounds(lake.snapshot, lake.files, [path])[path]
    return skipped_share(bounds, queries_of(bounds))


@pytest.mark.parametrize("wide", [{}, {"wide_bytes": 0}])
def test_a_table_is_clustered_by_its_own_columns_and_then_left(tmp_path: Path, wide: dict[str, int]) -> None:
    lake = filled(tmp_path)
    before, was = lake.rows(), (skipping(lake, "id"), skipping(lake, "deep", "y"))
    asked = request(target_bytes=target(lake), **wide)
    done = lake.run(asked)
    assert "hilbert by id, deep.y: 8 files not clustered so" in done.units[0].reason
    assert lake.rows() == before
    assert max(was) < 0.1 and skipping(lake, "id") > 0.5 and skipping(lake, "deep", "y") > 0.5
    assert len(lake.files) > 8
    assert all(set(file.tags) == {CLUSTERED} for file in lake.files)
    assert {add["clusteringProvider"] for add in adds(lake).values()} == {"nightkeep"}
    assert not lake.plan(asked).units
    assert lake.plan(replace(asked, full=True)).units


def test_files_of_another_provider_stay_as_they_are(tmp_path: Path) -> None:
    """Also small ones, also where all were asked for; the plan states how many."""
    lake = filled(tmp_path)
    small = provided(lake, rows_of(range(8_000, 8_100)), "liquid", files=5)
    provided(lake, rows_of(range(8_100, 8_200)), "other")
    kept = {path: add for path, add in adds(lake).items() if "clusteringProvider" in add}
    lake.mark({small[0]: range(15), small[1]: range(20)})
    before, marked = lake.rows(), {path: adds(lake)[path] for path in kept}
    for full in (False, True):
        done = lake.run(request(target_bytes=target(lake), full=full))
        assert len(done.units[0].input_files) > 0
        size = sum(add["size"] for add in kept.values())
        assert done.notes == (f"6 files of {size:,} bytes clustered by liquid, other stay as they are",)
        assert {path: add for path, add in adds(lake).items() if path in kept} == marked
        assert lake.rows() == before
    assert lake.plan(request(target_bytes=target(lake))).notes == done.notes


def test_only_files_of_others_are_no_work(tmp_path: Path) -> None:
    lake = clustered(tmp_path / "t")
    provided(lake, rows_of(range(100)), "liquid", files=4)
    for full in (False, True):
        found = lake.plan(request(full=full))
        assert not found.units and "4 files of" in found.notes[0]


@pytest.mark.parametrize(
    ("properties", "indexed"),
    [({"dataSkippingNumIndexedCols": "1"}, {"id", "deep"}), ({"dataSkippingStatsColumns": "text"}, {"text", "deep"})],
)
def test_new_files_have_statistics_of_clustering_columns(
    tmp_path: Path, properties: dict[str, str], indexed: set[str]
) -> None:
    lake = clustered(tmp_path / "t", (), **properties)
    lake.append(rows_of(range(1_000)), files=2)
    cluster_by(lake, [["deep", "y"]])
    assert all("deep" not in json.loads(add["stats"])["nullCount"] for add in adds(lake).values())
    before = lake.rows()
    lake.run(request(target_bytes=target(lake, 4)))
    assert lake.rows() == before
    for add in adds(lake).values():
        stats = json.loads(add["stats"])
        assert set(stats["nullCount"]) == indexed and set(stats["nullCount"]["deep"]) == {"y"}
        assert set(stats["minValues"]["deep"]) == set(stats["maxValues"]["deep"]) == {"y"}


def test_the_domain_of_today_decides(tmp_path: Path) -> None:
    """Changed columns cluster anew what carries our name or none; CLUSTER BY NONE packs."""
    lake = filled(tmp_path, (["id"],))
    asked = request(target_bytes=target(lake))
    lake.run(asked)
    before = lake.rows()
    cluster_by(lake, [["deep", "x"]])
    files = len(lake.files)
    done = lake.run(asked)
    assert f"hilbert by deep.x: {files} files not clustered so" in done.units[0].reason
    assert lake.rows() == before and skipping(lake, "deep", "x") > 0.7 and skipping(lake, "id") < 0.3
    cluster_by(lake, [])
    done = lake.run(request(target_bytes=10 * target(lake)))
    assert "files below" in done.units[0].reason and lake.rows() == before
    assert all(set(file.tags) == {PACKED} for file in lake.files)
    assert not any("clusteringProvider" in add for add in adds(lake).values())


def test_a_renamed_column_is_the_same_one(tmp_path: Path) -> None:
    lake = clustered(tmp_path / "t", [["id"], ["deep", "y"]])

    def mapped(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"]["readerFeatures"].append("columnMapping")
            action["protocol"]["writerFeatures"].append("columnMapping")
        if "metaData" in action:
            action["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"
            schema = json.loads(action["metaData"]["schemaString"])
            fields = [*schema["fields"], *schema["fields"][3]["type"]["fields"]]
            for number, field in enumerate(fields, 1):
                physical = f"col-{field['name']}"
                field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
            action["metaData"]["schemaString"] = json.dumps(schema)

    rewrite_log(lake.folder, mapped)
    cluster_by(lake, [["col-id"], ["col-deep", "col-y"]])
    lake.append(rows_of(range(4_000)), files=4)
    asked = request(target_bytes=target(lake))
    done = lake.run(asked)
    assert "hilbert by id, deep.y" in done.units[0].reason

    def renamed(action: dict[str, Any]) -> None:
        if "metaData" in action:
            text = action["metaData"]["schemaString"].replace('"name": "id"', '"name": "number"')
            action["metaData"]["schemaString"] = text

    rewrite_log(lake.folder, renamed)
    assert not lake.plan(asked).units
    full = lake.plan(replace(asked, full=True))
    assert "hilbert by number, deep.y: 0 files not clustered so and 1 of 1 cubes" in full.units[0].reason


def test_an_append_is_clustered_alone(tmp_path: Path) -> None:
    lake = filled(tmp_path, (["id"],))
    asked = request(target_bytes=target(lake, 20))
    lake.run(asked)
    cube = adds(lake).keys()
    lake.append(rows_of(range(8_000, 8_200)))
    (new,) = adds(lake).keys() - cube
    before = lake.rows()
    done = lake.run(asked)
    assert done.units[0].input_files == (new,) and cube < adds(lake).keys()
    assert lake.rows() == before and not lake.plan(asked).units


def test_what_our_tag_alone_names_is_clustered_again(tmp_path: Path) -> None:
    """Files that a policy clustered, before the table was, do not carry our name as provider."""
    lake = clustered(tmp_path / "t", [])
    lake.append(rows_of(range(2_000)), files=4)
    lake.run(request(target_bytes=target(lake, 4), clustering=BY_ID))
    cluster_by(lake, [["id"]])
    asked, files = request(target_bytes=target(lake, 4)), len(lake.files)
    assert f"{files} files not clustered so" in lake.run(asked).units[0].reason
    assert not lake.plan(asked).units


REFUSED: dict[str, tuple[Any, str]] = {
    "missing": ([["gone"]], "its column gone is no column"),
    "a struct": ([["deep"]], "its column deep is no column of the table, nor a field of one that is no struct"),
    "no order": ([["flag"]], "its column flag is of type bool, whose statistics have no bounds"),
    "twice": ([["id"], ["id"]], "its columns name one twice"),
    "two of a name": ([["deep.x"]], "its column deep.x has the name of a field within another column"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_columns_that_rows_cannot_be_clustered_by_are_refused_by_name(tmp_path: Path, case: str) -> None:
    columns, reason = REFUSED[case]
    schema = SCHEMA.append(pa.field("flag", pa.bool_())).append(pa.field("deep.x", pa.int64()))
    lake = clustered(tmp_path / "t", columns, schema)
    with pytest.raises(RefusedTable, match=f"table feature clustering: {reason}"):
        lake.plan(request())
    assert optimize(lake.folder).outcome is Outcome.REFUSED


def test_clustering_and_partition_columns_are_refused(tmp_path: Path) -> None:
    lake = clustered(tmp_path / "t")

    def parted(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"]["partitionColumns"] = ["text"]

    rewrite_log(lake.folder, parted)
    with pytest.raises(RefusedTable, match=r"clustering columns .* and partition columns"):
        lake.plan(request())


def test_a_domain_that_cannot_be_understood_is_reported(tmp_path: Path) -> None:
    lake = clustered(tmp_path / "t", [7])
    with pytest.raises(CorruptMetadata, match=r"domain delta\.clustering: expected a column as a list of names"):
        lake.plan(request())


@pytest.mark.parametrize("asked", [Clustering(("price",), Curve.Z), Clustering(("id",), Curve.Z)])
def test_another_layout_is_refused_with_the_reason(tmp_path: Path, asked: Clustering) -> None:
    lake = filled(tmp_path, (["id"],))
    with pytest.raises(RefusedTable, match=r"feature clustering\); optimize clusters it by id: leave out --zorder"):
        lake.plan(request(clustering=asked))
    assert lake.plan(request(clustering=BY_ID)).units


def test_clustering_columns_that_change_meanwhile_are_a_conflict(tmp_path: Path) -> None:
    lake = filled(tmp_path, (["id"],))
    planned = lake.snapshot
    edit = DeltaEdit(tuple(planned.units[0].files), ())
    rewrites = [Rewrite(planned.units[0].key, edit, (), 0, 0, (), TaskCost(0.0, 0.0, 0, ""))]
    assert not conflicts(planned, lake.snapshot, rewrites)
    cluster_by(lake, [["price"]])
    ((_, reason),) = conflicts(planned, lake.snapshot, rewrites)
    assert "the table's clustering columns changed between versions" in reason


def test_the_policys_clustering_gives_way_and_the_plan_states_it(tmp_path: Path) -> None:
    lake = filled(tmp_path, (["id"],))
    found = optimize(lake.folder, clustering={"zorder": ["price"]})
    assert found.outcome is Outcome.VERIFIED, found.reason
    assert found.plan is not None and found.plan.clustering == BY_ID
    assert found.plan.notes[-1] == (
        "the table's own clustering columns are used, hilbert by id, in place of the policy's, z-order by price"
    )


def test_advice_speaks_of_the_tables_own_columns(tmp_path: Path) -> None:
    lake = filled(tmp_path, (["deep", "y"],))
    queries, address = tmp_path / "queries.sql", f"delta:{lake.folder}"
    size = f"{target(lake)}B"
    queries.write_text("deep.y BETWEEN 100 AND 110\n")
    found = nightkeep.advise(address, queries=queries, target_size=size)
    assert found.own == ("deep.y",) and found.clustering == Clustering(("deep.y",), Curve.HILBERT)
    assert found.reason.endswith("if clustered by deep.y, its clustering columns")
    queries.write_text("id BETWEEN 100 AND 110\n")
    found = nightkeep.advise(address, queries=queries, target_size=size)
    assert found.clustering == BY_ID and "ALTER TABLE ... CLUSTER BY changes them" in found.reason
    lake.run(request(target_bytes=target(lake)))
    queries.write_text("deep.y BETWEEN 100 AND 110\n")
    assert nightkeep.advise(address, queries=queries, target_size=size).clustering is None
