"""Fixed buckets of a table without keys: their rows stay in the order of writing, and each has one vector file."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, JavaFile
from tests.formats.paimon.appended import FIXED, SMALL, VECTORS, Appended
from tests.formats.paimon.contents import opened
from tests.formats.paimon.made_bucket import MadeBucket, Row

import nightkeep
from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.rewrite.append.append_files import AppendFile
from nightkeep.formats.paimon.rewrite.append.optimize import layout
from nightkeep.formats.paimon.rewrite.append.ordered_bins import ordered_bins
from nightkeep.model import Outcome

TEXT = (("text", "STRING"),)
ALONE = {**FIXED, "bucket": "1"}


def created(
    java: PaimonJava, folder: Path, options: dict[str, str], commits: Sequence[int], *, partitioned: bool = False
) -> Appended:
    table = Appended.create(java, folder, options, columns=TEXT, partitioned=partitioned)
    for rows in commits:
        table.append(rows)
    return table


@pytest.mark.parametrize(
    ("starts", "chosen", "bins"),
    [
        ("abcd", "abcd", ["abc", "d"]),
        ("abcd", "abd", ["ab", "d"]),
        ("aabb", "abcd", ["abcd"]),
        ("abbb", "ab", ["abcd"]),
        ("aabc", "bd", ["b", "d"]),
        ("aaab", "bd", ["bcd"]),
        ("aaab", "cd", ["cd"]),
        ("abcd", "", []),
    ],
)
def test_bins_are_of_neighbours_and_end_where_another_number_begins(starts: str, chosen: str, bins: list[str]) -> None:
    """Four files a to d of one size, each beginning with the number that `starts` tells, in bins of up to three."""
    files = _files([ord(start) for start in starts])
    names = {file.name: letter for file, letter in zip(files, "abcd", strict=True)}
    wanted = [file for file in files if names[file.name] in chosen]
    found = ordered_bins(files, wanted, 3 * files[0].bytes)
    assert ["".join(names[file.name] for file in some) for some in found] == bins


def _files(starts: Sequence[int]) -> list[AppendFile]:
    made = MadeBucket()
    for _ in starts:
        made.add(0, [Row(1)])
    size = made.bucket().files[0].bytes
    pairs = zip(made.bucket().files, starts, strict=True)
    return [AppendFile(replace(file, min_sequence=start, bytes=size), None) for file, start in pairs]


def test_new_files_state_what_those_of_java_state(paimon_java: PaimonJava, tmp_path: Path) -> None:
    ours = created(paimon_java, tmp_path / "ours", {**FIXED, **VECTORS, "compaction.min.file-num": "4"}, [30] * 4)
    ours.delete(0.3, files=0.7)
    java = replace(ours, folder=Path(shutil.copytree(ours.folder, tmp_path / "java")))
    paimon_java.compact(java.folder)
    assert ours.optimize().outcome is Outcome.VERIFIED
    assert [_said(file) for file in ours.files()] == [_said(file) for file in java.files()]
    assert len(ours.files()) == 2 and ours.ordered() == java.ordered()
    order = ours.ordered()
    ours.append(20)
    later = ours.ordered()
    assert {place: later[place][: len(rows)] for place, rows in order.items()} == order


def _said(file: JavaFile) -> tuple[object, ...]:
    return (
        file.bucket,
        file.total_buckets,
        file.level,
        file.rows,
        file.delete_rows,
        file.source,
        file.min_sequence,
        file.max_sequence,
        file.value_stats,
    )


def test_files_of_java_that_begin_with_one_number_stay_in_their_order(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """One of several files that a compaction of Java's wrote is worn: those behind it have to move with it."""
    options = {**ALONE, **VECTORS, "target-file-size": "8 kb"}
    table = created(paimon_java, tmp_path / "t", options, [2500, 1200, 900])
    paimon_java.compact(table.folder, Compaction(full=True, single_pick=True))
    first, second, worn, *behind = opened(table.folder).snapshot().units[0].files
    assert len(behind) > 1 and {file.min_sequence for file in behind} == {worn.min_sequence}
    paimon_java.delete_positions(table.folder, {worn.name: range(0, worn.rows, 2)})
    before = table.ordered()
    assert table.optimize(min_file_size="1B").outcome is Outcome.VERIFIED
    assert table.ordered() == before
    found = opened(table.folder).snapshot().units[0].files
    assert found[:2] == (first, second) and all("nk-" in file.name for file in found[2:])
    assert len({file.min_sequence for file in found}) == len(found)
    table.append(50)
    assert table.ordered()["", 0][:-50] == before["", 0]
    assert table.optimize(full=True, target_size="1GB").outcome is Outcome.VERIFIED
    assert table.ordered()["", 0][:-50] == before["", 0] and len(table.files()) == 1


def test_large_files_are_written_as_several_that_count_on(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = created(paimon_java, tmp_path / "t", ALONE, [1500, 1500])
    before, half = table.ordered(), min(file.size for file in table.files()) // 2
    assert table.optimize(full=True, target_size=f"{half}B").outcome is Outcome.VERIFIED
    found = opened(table.folder).snapshot().units[0].files
    assert [file.min_sequence for file in found] == [0, 750, 1500, 2250]
    assert table.ordered() == before


def test_a_bucket_has_one_vector_file_whoever_deletes(paimon_java: PaimonJava, tmp_path: Path) -> None:
    options = {**FIXED, **VECTORS, "deletion-vector.index-file.target-size": "1 b"}
    table = created(paimon_java, tmp_path / "t", options, [40, 40], partitioned=True)
    assert table.delete_where("shard = 5").outcome is Outcome.VERIFIED
    table.delete(0.1)
    assert table.delete_where("shard = 0").outcome is Outcome.VERIFIED
    places = [(str(entry.partition), entry.bucket) for entry in paimon_java.vectors(table.folder)]
    assert len(places) == len(set(places)) > 2
    assert not [row for row in table.rows() if row[2] in (0, 5)]
    before = table.ordered()
    assert table.update_where("shard = 3", ["text = 'set'"]).outcome is Outcome.VERIFIED
    after = table.ordered()
    for place, rows in before.items():
        behind = [(*row[:3], "set") for row in rows if row[2] == 3]
        assert after[place] == [row for row in rows if row[2] != 3] + behind
    assert table.optimize(full=True).outcome is Outcome.VERIFIED
    assert (table.vectors(), table.ordered()) == ({}, after)


def test_our_reader_keeps_the_order(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = created(paimon_java, tmp_path / "t", {**ALONE, **VECTORS, **SMALL}, [50, 50, 50])
    table.delete(0.2)
    for _ in range(2):
        found = pa.Table.from_batches(nightkeep.read(f"paimon:{table.folder}", columns=["id"]))
        assert found.column("id").to_pylist() == [row[0] for row in table.ordered()["", 0]]
        table.optimize()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clustering": {"zorder": ["id", "text"]}}, "clustering of bucket = 2 is not handled"),
        ({"clustering": {"hilbert": ["id"]}}, "bucket-append-ordered = false"),
    ],
)
def test_clustering_is_refused_where_order_is_kept(
    paimon_java: PaimonJava, tmp_path: Path, settings: dict[str, object], message: str
) -> None:
    table = created(paimon_java, tmp_path / "t", FIXED, [10])
    document = table.optimize(**settings)
    assert document.outcome is Outcome.REFUSED and message in str(document.reason)
    with pytest.raises(RefusedTable, match="read in the order of writing"):
        layout(opened(table.folder).snapshot())


def test_buckets_without_order_are_clustered(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = created(paimon_java, tmp_path / "t", {**FIXED, **SMALL, "bucket-append-ordered": "false"}, [60] * 3)
    before = table.rows()
    assert table.optimize(clustering={"zorder": ["id", "text"]}).outcome is Outcome.VERIFIED
    assert table.rows() == before and len(table.files()) == 2


def test_the_bucket_key_is_not_updated(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = created(paimon_java, tmp_path / "t", {**FIXED, **VECTORS}, [10])
    document = table.update_where("id = 3", ["shard = 1"])
    assert document.outcome is Outcome.REFUSED and "bucket key shard" in str(document.reason)
