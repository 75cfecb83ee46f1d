"""Which files are clustered again: by their tags, by size, by what they skip; and what a plan says of it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.delta.lake import request
from tests.formats.delta.layouts import KEY, a_file, a_snapshot

from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.clustering.cubes import UnitCubes, merging
from nightkeep.clustering.rewrite_tasks import ClusterTask, PackTask
from nightkeep.clustering.sizing import Sizes
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.rewrite.optimize import CLUSTERED, LAYOUT, cube_of, layout_tags
from nightkeep.model import Clustering, Curve, PlannedUnit, UnitKey

BY_ID = Clustering(("id",), Curve.Z)
SIZES = Sizes(1000, 500, 0.05)


def tag(cube: str, clustering: Clustering = BY_ID) -> dict[str, str]:
    return dict(layout_tags(FileLayout(0, clustering), cube * 16, UnitKey("")))


def layout_of(files: list[DeltaDataFile]) -> UnitCubes[DeltaDataFile]:
    return UnitCubes.of(files, SIZES, lambda file: cube_of(file, BY_ID))


def with_bounds(file: DeltaDataFile, low: int, high: int) -> DeltaDataFile:
    told = {"numRecords": file.rows, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
    return replace(file, stats=json.dumps(told))


def cube(name: str, files: int, size: int = 1000) -> list[DeltaDataFile]:
    """Files whose ids follow each other."""
    return [with_bounds(a_file(f"{name}{n:03}", size, **tag(name)), n * 10, n * 10 + 9) for n in range(files)]


def loose(files: int, size: int = 1000) -> list[DeltaDataFile]:
    return [with_bounds(a_file(f"new{n:03}", size), 0, 1000) for n in range(files)]


def planned(files: list[DeltaDataFile], **asked: Any) -> PlannedUnit | None:
    snapshot = a_snapshot(*files)
    wanted = request(**{"target_bytes": 1000, "clustering": BY_ID, **asked})
    work = LAYOUT.cluster_files(snapshot, snapshot.units[0], wanted)
    if work is None:
        return None
    return PlannedUnit(KEY, work.reason, work.input_files, work.input_bytes, work.estimate, work.tasks)


@pytest.mark.parametrize(
    ("files", "asked", "expected"),
    [
        (
            loose(3),
            {},
            "day=2026-11-01: z-order by id: 3 files not clustered so; files that may hold a value, before: id 3.0; in "
            "one task, as 3,000 live bytes are at most 8,589,934,592; 3 files, 3,000 bytes in; about 3,000 bytes out "
            "in 3 files; filters on id skip files, 3 files become 3",
        ),
        (
            [*cube("a", 100), *loose(5)],
            {},
            "day=2026-11-01: z-order by id: 5 files not clustered so and 0 of 1 cubes; files that may hold a value, "
            "before: id 6.0; in one task, as 5,000 live bytes are at most 8,589,934,592; 5 files, 5,000 bytes in; "
            "about 5,000 bytes out in 5 files; filters on id skip files, 5 files become 5",
        ),
        (
            [*cube("a", 100), *cube("b", 7), *loose(5)],
            {"wide_bytes": 1},
            "day=2026-11-01: z-order by id: 5 files not clustered so and 1 of 2 cubes; files that may hold a value, "
            "before: id 6.1; through Spark's exchange, as 12,000 live bytes are more than 1; 12 files, 12,000 bytes "
            "in; about 12,000 bytes out in 12 files; filters on id skip files, 12 files become 12",
        ),
        (
            cube("a", 2),
            {"full": True},
            "day=2026-11-01: z-order by id: 0 files not clustered so and 1 of 1 cubes; all were asked for; files that "
            "may hold a value, before: id 1.0; in one task, as 2,000 live bytes are at most 8,589,934,592; 2 files, "
            "2,000 bytes in; about 2,000 bytes out in 2 files; filters on id skip files, 2 files become 2",
        ),
        (
            [*cube("a", 2), a_file("gone", 9, rows=1, deleted=1)],
            {},
            "day=2026-11-01: 1 file without rows, only removed; 1 file, 9 bytes in; about 0 bytes out in 0 files; "
            "files without rows go",
        ),
        (cube("a", 3), {}, "None"),
        (cube("a", 1, size=10), {}, "None"),
        (loose(3), {"clustering": None}, "None"),
        ([], {"full": True}, "None"),
    ],
)
def test_plans_read_as_they_did(files: list[DeltaDataFile], asked: dict[str, Any], expected: str) -> None:
    assert str(planned(files, **asked)) == expected


def test_files_without_rows_are_no_work_for_a_curve() -> None:
    found = planned([*cube("a", 2), a_file("gone", 9, rows=1, deleted=1)])
    assert found is not None and isinstance(found.tasks[0], PackTask)
    found = planned([*loose(2), a_file("gone", 9, rows=1, deleted=1)])
    assert found is not None and isinstance(found.tasks[0], ClusterTask)
    assert found.input_files == ("gone", "new000", "new001")


@pytest.mark.parametrize(("cubes", "merged"), [(3, 0), (8, 8)])
def test_cubes_that_overlap_are_merged_once_queries_read_several_times_as_much(cubes: int, merged: int) -> None:
    """Each has 32 files, and is too large to be merged by its size alone."""
    files = [file for name in "abcdefgh"[:cubes] for file in cube(name, 32)]
    found = planned([*files, *loose(1)])
    assert found is not None and len(found.input_files) == 32 * merged + 1
    assert f"1 file not clustered so and {merged} of {cubes} cubes" in found.reason
    assert ("apart, queries would read" in found.reason) == (merged > 0)


def test_cubes_of_other_values_stay_however_many_they_are() -> None:
    """As those of nights do, if one column is a time and the curve has no other."""
    files = [
        with_bounds(a_file(f"{name}{n:03}", 1000, **tag(name)), (place * 32 + n) * 10, (place * 32 + n) * 10 + 9)
        for place, name in enumerate("abcdefghijklmnop")
        for n in range(32)
    ]
    found = planned([*files, *loose(1)])
    assert found is not None and found.input_files == ("new000",)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", '{"columns": ["id"]}', '{"columns": ["id"], "curve": "z-order", "cube": 1}']
)
def test_a_tag_that_is_not_ours_means_nothing(text: str) -> None:
    assert cube_of(a_file("a", 1, **{CLUSTERED: text}), BY_ID) is None


def test_a_cube_is_of_its_columns_and_its_curve() -> None:
    two, other = Clustering(("a", "b"), Curve.Z), Clustering(("b", "a"), Curve.Z)
    hilbert = replace(two, curve=Curve.HILBERT)
    file = a_file("a", 1, **tag("c", two))
    assert cube_of(file, two) == cube_of(file, replace(two, noise=True, range_ids=7)) is not None
    assert cube_of(file, other) is None and cube_of(file, hilbert) is None
    assert cube_of(a_file("a", 1, **tag("c")), replace(BY_ID, curve=Curve.HILBERT)) is not None


def test_a_file_of_which_much_was_deleted_leaves_its_cube() -> None:
    worn, fresh = a_file("a", 100, deleted=6, **tag("c")), a_file("b", 100, deleted=5, **tag("c"))
    found = layout_of([worn, fresh])
    assert (found.cubes, found.loose, found.gone) == (((fresh,),), (worn,), ())


@given(st.lists(st.integers(1, 60_000), min_size=1, max_size=8), st.integers(1, 60_000))
def test_small_cubes_are_merged_from_the_smallest_while_they_are_not_much_larger(cubes: list[int], new: int) -> None:
    files = [a_file(f"f{n}", size, **tag("abcdefgh"[n])) for n, size in enumerate(cubes)]
    layout = layout_of([*files, a_file("new", new)])
    total, taken = new, 0
    for size in sorted(cubes):
        if size > 2 * total or size >= 32 * SIZES.target:
            break
        total, taken = total + size, taken + 1
    assert merging(layout, SIZES.target) == taken
    assert [cube[0].bytes for cube in layout.cubes] == sorted(cubes)
