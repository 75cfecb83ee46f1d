"""Which files of a partition are packed, in which bins, and why: plans as text, the rule against its own outcome."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.delta.lake import request
from tests.formats.delta.layouts import KEY, a_file, a_snapshot

from nightkeep.clustering.clustered_files import FileLayout
from nightkeep.clustering.packing import next_fit
from nightkeep.clustering.rewrite_tasks import PackTask
from nightkeep.clustering.sizing import Sizes, live_bytes
from nightkeep.errors import RefusedTable
from nightkeep.formats.delta.metadata.data_file import DeltaDataFile
from nightkeep.formats.delta.metadata.snapshot import DeltaSnapshot
from nightkeep.formats.delta.rewrite.optimize import LAYOUT, DeltaInputs, layout_tags
from nightkeep.formats.delta.rewrite.sizing import sizes_of
from nightkeep.model import Clustering, Curve, Intent, Plan, PlannedUnit, Request
from nightkeep.protocol import Work

TARGET = 1000


def tags_of(run: str) -> Mapping[str, str]:
    """The tags of files that a run packed to this target."""
    return layout_tags(FileLayout(TARGET), run * 16, KEY)


def work_of(snapshot: DeltaSnapshot, asked: Request) -> Work | None:
    return LAYOUT.pack_files(snapshot, snapshot.units[0], asked)


def bins_of(work: Work | None) -> list[list[str]]:
    tasks = [task for task in (work.tasks if work else ()) if isinstance(task, PackTask)]
    return [[file.name for file in task.inputs.files] for task in tasks]


def printed(snapshot: DeltaSnapshot, asked: Request) -> str:
    work = work_of(snapshot, asked)
    if work is None:
        return "nothing"
    assert [name for some in bins_of(work) for name in some] == list(work.input_files)
    unit = PlannedUnit(KEY, work.reason, work.input_files, work.input_bytes, work.estimate, work.tasks)
    bins = " | ".join(" ".join(some) for some in bins_of(work))
    return (
        f"{bins}\n{Plan(snapshot.table, asked.operation, snapshot.identity, (unit,))}".split("\n", 2)[0]
        + "\n"
        + str(unit)
    )


SMALL = [a_file("a", 300), a_file("b", 200), a_file("c", 400), a_file("d", 450), a_file("e", 900)]


@pytest.mark.parametrize(
    ("files", "asked", "expected"),
    [
        (
            SMALL,
            {},
            "b a c\n"
            "day=2026-11-01: 3 files below 500 bytes; 1 bin of up to 1,000 bytes; 3 files, 900 bytes in; "
            "about 600 bytes out in 1 file; 2 files fewer",
        ),
        (
            [a_file("a", 900, deleted=10), a_file("b", 600, deleted=5)],
            {},
            "a\n"
            "day=2026-11-01: 1 file with more than 5% of rows deleted; 1 bin of up to 1,000 bytes; 1 file, 900 bytes "
            "in; about 850 bytes out in 1 file; 10 deleted rows and 1 deletion vector purged",
        ),
        (
            [a_file("a", 900, rows=100, deleted=100), a_file("b", 600)],
            {},
            "a\n"
            "day=2026-11-01: 1 file without rows, only removed; 1 file, 900 bytes in; about 0 bytes out in 0 files; "
            "1 file fewer, 100 deleted rows and 1 deletion vector purged",
        ),
        (
            [a_file("a", 4400, deleted=25), a_file("gone", 10, rows=3, deleted=3)],
            {},
            "a gone\n"
            "day=2026-11-01: 1 file with more than 5% of rows deleted; 1 file without rows, only removed; 1 bin of up "
            "to 1,000 bytes; 2 files, 4,410 bytes in; about 5,000 bytes out in 5 files; 3 files more, each near the "
            "target, 28 deleted rows and 2 deletion vectors purged",
        ),
        (
            SMALL,
            {"full": True},
            "b a c\n"
            "day=2026-11-01: 3 files below 500 bytes; 1 bin of up to 1,000 bytes; 3 files, 900 bytes in; "
            "about 600 bytes out in 1 file; 2 files fewer",
        ),
        (
            [a_file("a", 900, deleted=1), a_file("b", 2600)],
            {"full": True},
            "a | b\n"
            "day=2026-11-01: 2 files more as all were asked for; 2 bins of up to 1,000 bytes; 2 files, 3,500 bytes in; "
            "about 3,886 bytes out in 3 files; 1 file more, each near the target, 1 deleted rows and 1 deletion "
            "vector purged",
        ),
        ([a_file("a", 100)], {}, "nothing"),
        ([a_file("a", 900), a_file("b", 1200)], {"full": True}, "nothing"),
        ([a_file("a", 900, deleted=5)], {}, "nothing"),
        ([a_file("a", 700), a_file("b", 700)], {"min_bytes": 800}, "nothing"),
        (SMALL, {"clustering": Clustering(("id",), Curve.Z)}, "nothing"),
        ([], {"full": True}, "nothing"),
    ],
)
def test_plans_read_as_they_did(files: list[DeltaDataFile], asked: dict[str, Any], expected: str) -> None:
    assert printed(a_snapshot(*files), request(target_bytes=TARGET, **asked)) == expected


def test_a_lone_file_whose_deleted_share_nobody_knows_is_purged() -> None:
    assert bins_of(work_of(a_snapshot(a_file("a", 900, rows=None, deleted=1)), request(target_bytes=TARGET))) == [["a"]]


@pytest.mark.parametrize(
    ("said", "bytes_"), [("256mb", 256 << 20), ("1G", 1 << 30), ("104857600", 104857600), (" 64 KiB", 64 << 10)]
)
def test_the_target_is_the_requests_then_the_tables_then_ours(said: str, bytes_: int) -> None:
    assert sizes_of(a_snapshot(**{"delta.targetFileSize": said}), request()).target == bytes_
    assert sizes_of(a_snapshot(**{"delta.targetFileSize": said}), request(target_bytes=5)).target == 5
    assert sizes_of(a_snapshot(), request()) == Sizes(256 << 20, 128 << 20, 0.05, columns=1)


@pytest.mark.parametrize("said", ["auto", "0", "-1", "1.5gb", ""])
def test_a_target_that_is_no_size_is_refused(said: str) -> None:
    with pytest.raises(
        RefusedTable, match=f"delta.targetFileSize is '{said}', which is no size; set it to one such as"
    ):
        work_of(a_snapshot(**{"delta.targetFileSize": said}), request())


def test_what_one_run_packed_stays_until_the_target_changes() -> None:
    """Many tiny files shrink when they are merged, beyond what anybody could have known."""
    ours = [a_file(name, 100, **tags_of("a")) for name in "abc"]
    theirs = a_file("d", 100, **tags_of("b"))
    before, since = a_file("e", 100), a_file("f", 100, modified=1)
    assert work_of(a_snapshot(*ours), request(target_bytes=TARGET)) is None
    assert bins_of(work_of(a_snapshot(*ours), request(target_bytes=2 * TARGET))) == [["a", "b", "c"]]
    assert bins_of(work_of(a_snapshot(*ours, theirs), request(target_bytes=TARGET))) == [["a", "b", "c", "d"]]
    assert work_of(a_snapshot(*ours, before), request(target_bytes=TARGET)) is None
    assert bins_of(work_of(a_snapshot(*ours, since), request(target_bytes=TARGET))) == [["a", "b", "c", "f"]]
    assert bins_of(work_of(a_snapshot(*ours), request(target_bytes=TARGET, full=True))) == [["a", "b", "c"]]


def twin(sizes: list[int], target: int) -> list[list[int]]:
    bins: list[list[int]] = [[]]
    for size in sorted(sizes):
        if sum(bins[-1]) + size > target and bins[-1]:
            bins.append([])
        bins[-1].append(size)
    return [some for some in bins if some]


sizes = st.lists(st.integers(0, 3 * TARGET), max_size=30)


@given(sizes)
def test_bins_are_those_of_the_twin_and_no_two_fit_one(found: list[int]) -> None:
    bins = next_fit([a_file(f"f{number:02}", size) for number, size in enumerate(found)], TARGET)
    assert [[file.bytes for file in some] for some in bins] == twin(found, TARGET)
    totals = sorted(sum(map(live_bytes, some)) for some in bins)
    assert all(left + right > TARGET for left, right in pairwise(totals))


files_of = st.lists(
    st.builds(
        lambda size, rows, share: a_file("", size, rows=rows, deleted=int(rows * share)),
        st.integers(1, 3 * TARGET),
        st.integers(1, 200),
        st.floats(0, 1),
    ),
    max_size=25,
)


@given(files_of, st.booleans(), st.one_of(st.none(), st.integers(0, 2 * TARGET)), st.floats(0, 1), st.floats(0.1, 1.3))
def test_a_second_run_finds_nothing(
    files: list[DeltaDataFile], full: bool, small: int | None, ratio: float, shrinks: float
) -> None:
    """Whatever files shrink or grow to when they are packed."""
    named = [
        DeltaDataFile(f"f{n:02}", f"f{n:02}", f.bytes, f.rows, f.vector, None, {}, {}) for n, f in enumerate(files)
    ]
    asked = request(target_bytes=TARGET, full=full, min_bytes=small, max_deleted_ratio=ratio)
    again = request(target_bytes=TARGET, min_bytes=small, max_deleted_ratio=ratio)
    work = work_of(a_snapshot(*named), asked)
    after = outcome(named, work, shrinks)
    assert live(after) == live(named)
    if work is not None:
        assert not {file.name for file in after} & set(work.input_files)
        assert all(file.vector is None for file in after if file.name.startswith("new"))
    assert work_of(a_snapshot(*after), again) is None


def outcome(files: list[DeltaDataFile], work: Work | None, shrinks: float) -> list[DeltaDataFile]:
    """The partition after the work's tasks, each having written equal files."""
    after = [file for file in files if work is None or file.name not in work.input_files]
    for number, task in enumerate(work.tasks if work else ()):
        assert isinstance(task, PackTask) and isinstance(task.inputs, DeltaInputs) and task.inputs.intent == Intent()
        rows, size = live(task.inputs.files), sum(map(live_bytes, task.inputs.files))
        held = [rows * (n + 1) // task.into - rows * n // task.into for n in range(task.into)]
        after += [
            a_file(f"new-{number}-{n}", int(size * shrinks / task.into), rows=each, **tags_of("a"))
            for n, each in enumerate(held)
            if each
        ]
    return after


def live(files: Any) -> int:
    return sum(file.rows - file.deleted_rows for file in files)
