"""Sweeps of Delta tables from their logs: what the log removed goes without a listing, and nothing else does."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.formats.delta.breaking import breaking
from tests.formats.delta.hand_log import add, remove
from tests.formats.delta.runs import opened
from tests.formats.delta.sweeping import plant, run_of, swept, touch
from tests.formats.delta.swept_log import CHANGES, MARKS, VECTORS, SweptLog, at, change, gone, grown, linked, name
from tests.retention.toy_table import Toy
from tests.support.faulty_store import Fuse, fail

from nightkeep.errors import CorruptMetadata, EvidenceError, NightkeepError, UsageError
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import DAY_MS, FoundBy, SweepMode
from nightkeep.protocol.table_files import LogPoint, OpenRoot, Retention
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sweep_request import SweepOrder
from nightkeep.retention.orphans.sweep_table import sweep_table
from nightkeep.storage import ListedFile, LocalStorage

OLD = {name("a"), name("b"), name("c"), VECTORS, CHANGES}


@pytest.fixture
def log(tmp_path: Path) -> SweptLog:
    return grown(tmp_path / "table")


@pytest.fixture
def no_listing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The folders that are listed or walked."""
    looked_at: list[str] = []
    listed, walked = LocalStorage.list, LocalStorage.walk

    def list_(storage: LocalStorage, folder: str) -> Sequence[ListedFile]:
        looked_at.append(folder)
        return listed(storage, folder)

    def walk(storage: LocalStorage, folder: str) -> Iterator[Sequence[ListedFile]]:
        looked_at.append(folder)
        return walked(storage, folder)

    monkeypatch.setattr(LocalStorage, "list", list_)
    monkeypatch.setattr(LocalStorage, "walk", walk)
    yield looked_at


@pytest.mark.parametrize("mode", [SweepMode.DELETE, SweepMode.QUARANTINE])
def test_removed_files_go_with_vectors_and_change_files(mode: SweepMode, log: SweptLog) -> None:
    result, lost = log.sweep(mode)
    assert result.outcome is Outcome.VERIFIED
    assert lost >= OLD and {name("d"), name("e"), name("k")} <= log.names
    assert result.acted.files == len(OLD)
    assert result.through is not None and result.through.version == 2


def test_a_dry_run_lists_the_same_files_and_reaches_no_point(log: SweptLog) -> None:
    result, found = swept(log.folder, found_by=FoundBy.LOG)
    assert (result.outcome, found, result.through) == (Outcome.SKIPPED, OLD, None)
    assert log.sweep()[1] == OLD


def test_only_the_log_and_signs_of_other_tables_are_listed(log: SweptLog, no_listing: list[str]) -> None:
    log.sweep()
    # Nothing has such a folder: no file of the table is in an answer.
    signs = {"_delta_log", "metadata", "schema", "snapshot", ".hoodie"}
    listed = {folder for folder in no_listing if not folder.startswith("_nightkeep")}
    assert listed and {folder.rpartition("/")[2] for folder in listed} <= signs


def test_what_no_log_names_is_found_by_a_listing(log: SweptLog) -> None:
    log.sweep()
    assert swept(log.folder)[1] == {name("k")}


def test_nothing_is_found_again(log: SweptLog) -> None:
    log.sweep()
    result, lost = log.sweep()
    assert (result.outcome, lost) == (Outcome.UNCHANGED, set())
    assert result.through is not None and result.through.version == 2


def test_the_next_sweep_goes_on_from_the_point(tmp_path: Path) -> None:
    log = SweptLog(tmp_path / "table")
    log.made(0, *(add(name(letter)) for letter in "abc"), days=30)
    log.made(1, gone("a", 20), days=20)
    log.made(2, gone("b", 15), days=15)
    first, lost = log.sweep(older_than_ms=18 * DAY_MS)
    assert lost == {name("a")} and first.through is not None
    # What came back since is not looked for: the log names it before the point.
    plant(log.folder, name("a"))
    second, lost = log.sweep(since=first.through)
    assert lost == {name("b")} and second.through is not None
    assert (first.through.version, second.through.version) == (1, 2)


def test_a_point_is_not_passed_by_what_was_removed_too_recently(log: SweptLog) -> None:
    log.made(4, gone("e", 8), add(name("f")), days=8)
    result, lost = log.sweep()
    # Version 3 is of yesterday, so version 4 is left for later, whatever its clock.
    assert result.through is not None and result.through.version == 2
    assert name("e") in log.names and lost == OLD


def test_an_old_commit_with_a_late_removal_stays(log: SweptLog, tmp_path: Path) -> None:
    late = SweptLog(tmp_path / "late")
    late.made(0, add(name("a")), add(name("b")), days=30)
    late.made(1, gone("a", 2), days=20)
    result, lost = late.sweep()
    assert (lost, result.outcome) == (set(), Outcome.UNCHANGED)
    assert result.through is not None and result.through.version == 0


@pytest.mark.parametrize(("kept", "lost"), [(0, set()), (1, {name("a"), name("b"), VECTORS, CHANGES}), (2, OLD)])
def test_versions_that_wait_for_a_check_keep_their_files(kept: int, lost: set[str], log: SweptLog) -> None:
    result, found = log.sweep(keep=frozenset({kept, 3}))
    assert found == lost
    assert result.through is not None and result.through.version == kept


def test_a_longer_age_keeps_more(log: SweptLog) -> None:
    result, lost = log.sweep(older_than_ms=15 * DAY_MS)
    assert lost == OLD - {name("c")}
    assert result.through is not None and result.through.version == 1


def test_a_longer_retention_of_the_table_keeps_more(tmp_path: Path) -> None:
    log = SweptLog(tmp_path / "table", configuration={"delta.deletedFileRetentionDuration": "interval 15 days"})
    log.made(0, add(name("a")), add(name("b")), add(name("c")), days=30)
    log.made(1, gone("a", 20), days=20)
    log.made(2, gone("b", 10), days=10)
    assert log.sweep()[1] == {name("a")}


@pytest.mark.parametrize("later", [False, True], ids=["in one commit", "by a later commit"])
def test_a_file_that_was_added_again_stays(later: bool, log: SweptLog) -> None:
    log.made(4, add(name("a")), add(name("b")) if later else add(name("c")), days=0.5)
    _, lost = log.sweep()
    assert lost == OLD - {name("a"), name("b") if later else name("c")}


def test_a_vector_replaced_in_place_goes_without_its_file(tmp_path: Path) -> None:
    log = SweptLog(tmp_path / "table")
    log.made(0, add(name("a"), deletionVector=MARKS), days=30)
    log.made(1, gone("a", 20, deletionVector=MARKS), add(name("a")), days=20)
    assert log.sweep()[1] == {VECTORS}


def test_a_vector_file_that_another_file_shares_stays(tmp_path: Path) -> None:
    log = SweptLog(tmp_path / "table")
    log.made(0, add(name("a"), deletionVector=MARKS), add(name("b"), deletionVector=MARKS), days=30)
    log.made(1, gone("a", 20, deletionVector=MARKS), days=20)
    assert log.sweep()[1] == {name("a")}


def test_a_file_removed_twice_stays_while_the_later_removal_is_recent(log: SweptLog) -> None:
    log.made(4, add(name("a")), days=3)
    log.made(5, gone("a", 2), days=2)
    assert log.sweep()[1] == OLD - {name("a")}


def test_a_file_with_a_recent_time_stays_and_holds_the_point_back(log: SweptLog) -> None:
    """It was copied back, as from a backup."""
    touch(log.folder / name("b"), at(1))
    result, lost = log.sweep()
    assert lost == OLD - {name("b")}
    assert (result.outcome, result.through) == (Outcome.VERIFIED, None)


# ---- a hostile author of the log ----


OUTSIDE = [
    "../other/part-00000-x.c000.snappy.parquet",
    "p=a/../../other/part-00000-x.c000.snappy.parquet",
    "%2e%2e/other/part-00000-x.c000.snappy.parquet",
    "p=a/%2E%2E/%2E%2E/other/part-00000-x.c000.snappy.parquet",
    "p=a//part-00000-x.c000.snappy.parquet",
    "./part-00000-x.c000.snappy.parquet",
    "p=a/part-00000-x%00.c000.snappy.parquet",
    "p=a/part-00000-x.c000.snappy.parquet?versionId=1",
    "p=a/part-00000-x.c000.snappy.parquet#1",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_names_no_file_of_the_table_ends_the_sweep(path: str, log: SweptLog) -> None:
    other = plant(log.folder.parent, "other/part-00000-x.c000.snappy.parquet")
    log.commit(1, {"commitInfo": {"timestamp": at(20)}}, remove(path, deletionTimestamp=at(20)), gone("b", 20))
    touch(log.log / f"{1:020d}.json", at(20))
    before = log.names
    with pytest.raises(CorruptMetadata, match="path"):
        log.sweep()
    assert log.names == before and all((log.folder.parent / each).exists() for each in other)


def test_an_absolute_path_is_a_candidate_below_the_table_alone(log: SweptLog) -> None:
    plant(log.folder.parent, "other/" + name("b", ""), "other/p=a/" + name("k", ""))
    own, elsewhere = log.folder / name("b"), log.folder.parent / "other"
    log.made(
        1,
        remove(f"file:{own}", deletionTimestamp=at(20)),
        remove(f"file://{elsewhere}/{name('b', '')}", deletionTimestamp=at(20)),
        # The end of the path is the name of a file of this table.
        remove(f"{elsewhere}/{name('k')}", deletionTimestamp=at(20)),
        days=20,
    )
    log.made(4, remove(name("b"), deletionTimestamp=at(20)), days=9)
    _, lost = log.sweep()
    assert name("b") in lost and name("k") in log.names
    assert (elsewhere / name("b", "")).exists() and (elsewhere / "p=a" / name("k", "")).exists()


def test_a_percent_escape_is_decoded_once(log: SweptLog) -> None:
    plant(log.folder, "p=a/part-00000-%41.c000.snappy.parquet", "p=a/part-00000-A.c000.snappy.parquet")
    log.made(1, remove("p=a/part-00000-%2541.c000.snappy.parquet", deletionTimestamp=at(20)), days=20)
    assert log.sweep()[1] == {"p=a/part-00000-%41.c000.snappy.parquet", name("c")}


SIGNS = [
    "_delta_log/00000000000000000000.json",
    "metadata/v1.metadata.json",
    "schema/schema-0",
    ".hoodie/hoodie.properties",
]


@pytest.mark.parametrize("sign", SIGNS)
def test_files_of_a_table_in_a_folder_of_this_one_stay(sign: str, log: SweptLog) -> None:
    plant(log.folder, f"p=a/{sign}")
    result, lost = log.sweep()
    assert lost == {VECTORS, CHANGES}
    assert result.outcome is Outcome.VERIFIED


@pytest.mark.parametrize(
    "path",
    [
        "_delta_log/00000000000000000000.json",
        "_delta_log/_last_checkpoint",
        "_nightkeep/quarantine/notes.parquet",
        "_nightkeep/part-00000-x.c000.snappy.parquet",
        "backup/part-00000-x.c000.snappy.parquet",
        "notes.txt",
        "p=a/_hidden.parquet",
        "q=1/part-00000-x.c000.snappy.parquet",
    ],
)
def test_names_that_no_writer_gives_stay(path: str, log: SweptLog) -> None:
    log.leave(path, days=30)
    log.made(1, remove(path, deletionTimestamp=at(20)), days=20)
    log.sweep()
    assert (log.folder / path).exists()


def test_a_folder_behind_a_link_is_not_reached(log: SweptLog) -> None:
    other = plant(log.folder.parent, "other/" + name("x", ""))
    linked(log.folder / "p=b", log.folder.parent / "other")
    log.made(1, remove(name("x", "p=b/"), deletionTimestamp=at(20)), gone("b", 20), days=20)
    result, _ = log.sweep()
    assert result.outcome is Outcome.FAILED and result.through is None
    assert all((log.folder.parent / each).exists() for each in other)


# ---- logs that do not go on from a point ----


def point(log: SweptLog) -> LogPoint:
    found = log.sweep()[0].through
    assert found is not None
    return found


def test_a_whole_log_has_no_gap(log: SweptLog) -> None:
    assert log.gap() is None and log.gap(point(log)) is None


def test_a_log_without_its_first_commits_has_a_gap_unless_a_point_is_known(log: SweptLog) -> None:
    reached = point(log)
    log.single(2, [*log.head, add(name("d")), add(name("e"))])
    for version in (0, 1):
        (log.log / f"{version:020d}.json").unlink()
    assert "no longer has its first commits" in str(log.gap())
    assert log.gap(reached) is None
    (log.log / f"{2:020d}.json").unlink()
    assert log.gap(reached) == "commit 2, up to which the sweep on record went, is gone or another one by now"


def test_a_missing_commit_is_a_gap(log: SweptLog) -> None:
    reached = point(log)
    for version in (4, 5):
        log.made(version, add(name(f"f{version}")), days=0.1)
    log.single(4, [*log.head, add(name("e")), add(name("f4"))])
    (log.log / f"{4:020d}.json").unlink()
    expected = "commits after version {} are missing from the log"
    assert (log.gap(reached), log.gap()) == (expected.format(2), expected.format(0))


def test_another_commit_in_the_place_of_the_points_is_a_gap(log: SweptLog) -> None:
    reached = point(log)
    log.made(2, gone("c", 10), change(), days=10)
    assert "is gone or another one" in str(log.gap(reached))


def test_another_table_in_the_same_place_is_a_gap(log: SweptLog, tmp_path: Path) -> None:
    reached = point(log)
    head = (log.log / f"{0:020d}.json").read_text()
    (log.log / f"{0:020d}.json").write_text(head.replace("00000000-0000", "11111111-0000"))
    assert log.gap(reached) == "the sweep on record was of another table in this place"


def test_a_table_without_a_log_of_removals_is_refused(tmp_path: Path) -> None:
    toy = Toy.at(tmp_path / "toy")
    toy.write("data/a.dat")
    toy.commit(1, "data/a.dat")
    with pytest.raises(UsageError, match="expected a table of Delta Lake"):
        toy.swept(SweepMode.DELETE, "run-1", found_by=FoundBy.LOG)


# ---- a writer next door, and breaks in the middle ----


@pytest.mark.parametrize("mode", [SweepMode.DELETE, SweepMode.QUARANTINE])
def test_a_file_that_a_writer_adds_again_meanwhile_stays(mode: SweepMode, log: SweptLog) -> None:
    """As RESTORE does: after the sweep has read the table, and before the first file goes."""
    before = log.names

    def restored() -> None:
        log.made(4, add(name("a")), add(name("b"), deletionVector=MARKS), days=0)

    order = SweepOrder(mode, found_by=FoundBy.LOG, max_share=1.0)
    with closing(MemorySets()) as sets:
        result = sweep_table(opened(log.folder).retention, order, run_of(), sets=sets, before=restored)
    assert result.outcome is Outcome.VERIFIED
    assert before - log.names == {name("c"), CHANGES}
    assert result.left.files == 0 and result.acted.files == 2


@pytest.mark.parametrize("mode", [SweepMode.DELETE, SweepMode.QUARANTINE])
def test_every_write_fails_once(mode: SweepMode, tmp_path: Path) -> None:
    """A sweep that failed reaches no point, and the next one removes what is left."""
    clean = Fuse()
    with breaking(clean):
        grown(tmp_path / "clean").sweep(mode)
    assert len(clean.passed) > len(OLD)
    for turn in range(1, len(clean.passed) + 1):
        log, fuse = grown(tmp_path / f"{mode}-{turn}"), Fuse(turn, fail)
        stays = log.names - OLD
        with breaking(fuse):
            try:
                result, _ = log.sweep(mode)
            except (OSError, NightkeepError):
                result = None
        assert log.names >= stays
        assert result is None or result.through is None or not OLD & log.names
        again, _ = log.sweep(mode)
        assert again.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED) and again.through is not None
        assert log.names == stays


def test_a_commit_that_goes_while_it_is_read_ends_the_sweep(log: SweptLog) -> None:
    table = opened(log.folder).retention

    def cleaned_up(retention: Retention) -> tuple[OpenRoot, ...]:
        """Another one's log cleanup, after the commits were looked at."""
        log.single(3, [*log.head, add(name("e"))])
        for version in (0, 1, 2):
            (log.log / f"{version:020d}.json").unlink(missing_ok=True)
        return table.roots(retention)

    before, order = log.names, SweepOrder(SweepMode.QUARANTINE, found_by=FoundBy.LOG, max_share=1.0)
    with closing(MemorySets()) as sets, pytest.raises(EvidenceError):
        sweep_table(replace(table, roots=cleaned_up), order, run_of(), sets=sets)
    assert log.names == before


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_damaged_commit_ends_the_sweep_or_removes_less(cut: int, log: SweptLog) -> None:
    """Cut off at the end of a line it is a valid commit, and names fewer files."""
    path = log.log / f"{1:020d}.json"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) - cut]) + ("" if cut % 2 else '{"remove": {"path'))
    touch(path, at(20))
    before = log.names
    try:
        _, lost = log.sweep()
    except EvidenceError:
        lost = before - log.names
        assert not lost
    assert lost <= OLD
