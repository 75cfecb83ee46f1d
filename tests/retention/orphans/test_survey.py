"""What a sweep calls an orphan, and when it refuses to call anything one. A dry run, so nothing is written."""

import json
import os
from pathlib import Path

import pytest
from tests.retention.toy_table import KINDS, NOW, Toy, ToyWithHistory, age

from nightkeep.errors import CorruptMetadata, EvidenceError, MissingFile, UsageError
from nightkeep.model import Operation, Outcome, run_token
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import FileKind, TableFolder
from nightkeep.retention.orphans.lease import wall_ms
from nightkeep.retention.orphans.sets import FileTotals

HOUR_MS = 60 * 60 * 1000


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """Two snapshots over three files."""
    toy = Toy.at(tmp_path / "toy")
    toy.write("data/a.dat", "data/b.dat", "data/day=1/c.dat")
    toy.commit(1, "data/a.dat", "data/b.dat")
    toy.commit(2, "data/b.dat", "data/day=1/c.dat")
    return toy


def test_a_table_without_leftovers_is_unchanged(toy: Toy) -> None:
    before = toy.files()
    told, orphans = toy.looked()
    assert (told.outcome, orphans) == (Outcome.UNCHANGED, [])
    assert told.counted is not None
    assert told.counted.live.files == told.counted.listed.files == 7
    assert (told.counted.missing, told.counted.resized) == (0, 0)
    assert toy.files() == before and not (toy.folder / "_nightkeep").exists()


def test_leftovers_of_every_kind_and_age_are_reported_exactly(toy: Toy) -> None:
    toy.write("data/old.dat", "data/day=9/old.dat", "meta/l-lost.json")
    toy.write("data/young.dat", days=6.99)
    toy.write("data/tomorrow.dat", days=-1)
    toy.write("notes.txt", "data/a.dat.crc", "meta/hint")
    told, orphans = toy.looked()
    assert orphans == ["data/day=9/old.dat", "data/old.dat", "meta/l-lost.json"]
    assert told.outcome is Outcome.SKIPPED and told.reason.startswith("dry run: 3 orphans")
    assert told.cutoff_ms == NOW - 7 * DAY_MS
    counted = told.counted
    assert counted is not None
    assert {kind: tally.files for kind, tally in counted.by_kind.items()} == {"data": 2, "list": 1}
    assert (counted.young.files, counted.unknown.files, counted.live.files) == (2, 3, 7)
    assert counted.orphans == sum(counted.by_kind.values(), FileTotals())
    assert counted.listed.files == len(toy.files())


def test_a_file_is_young_until_it_is_older_than_asked_for(toy: Toy) -> None:
    toy.write("data/at.dat", days=7)
    toy.write("data/beyond.dat", days=7.001)
    assert toy.looked()[1] == ["data/beyond.dat"]


@pytest.mark.parametrize("hours", [1, 23.99])
def test_an_age_below_the_floor_is_asked_for_twice(toy: Toy, hours: float) -> None:
    older_than_ms = int(hours * HOUR_MS)
    with pytest.raises(UsageError, match=f"older than {hours:g} h asked for, expected at least 24 h"):
        toy.swept(older_than_ms=older_than_ms)
    toy.write("data/yesterday.dat", days=0.999)
    found = toy.looked(older_than_ms=older_than_ms, below_floor=True)[1]
    assert found == (["data/yesterday.dat"] if hours < 23.9 else [])


ODD = [
    "data/with space.dat",
    "data/a%20b.dat",
    "data/100%.dat",
    "data/caf\u00e9.dat",
    "data/cafe\u0301.dat",
    "data/\U0001f427.dat",
    "data/new\nline.dat",
    "data/back\\slash.dat",
    "data/k=a%2Fb/x.dat",
    "data/'quoted\".dat",
    "data/:colon?#.dat",
]


@pytest.mark.parametrize("live", ODD, ids=ascii)
def test_odd_names_are_distinguished(tmp_path: Path, live: str) -> None:
    toy = Toy.at(tmp_path / "toy")
    toy.write(*ODD)
    toy.commit(1, live)
    assert toy.looked()[1] == sorted(set(ODD) - {live})


def test_names_that_are_no_text_are_nobodys(toy: Toy) -> None:
    for name in (b"data/\xff\xfe.dat", b"data/\xe9/x.dat", b"data/day=1/\x80.dat"):
        path = os.path.join(os.fsencode(toy.folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as sink:
            sink.write(b"12345")
        os.utime(path, (1, 1))
    toy.write("data/old.dat")
    told, orphans = toy.looked(SweepMode.DELETE)
    assert orphans == ["data/old.dat"]
    assert told.counted is not None and told.counted.unknown == FileTotals(3, 15)
    assert sorted(os.listdir(os.fsencode(toy.folder / "data")))[-1] == b"\xff\xfe.dat"


def test_links_are_neither_followed_nor_anything_else_than_a_file(toy: Toy, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.dat").write_text("not ours")
    age(outside / "x.dat", 30)
    (toy.folder / "data/linked").symlink_to(outside)
    assert toy.looked()[1] == []


def test_another_table_inside_is_left_alone_with_all_below_it(toy: Toy) -> None:
    for inner in (Toy.at(toy.folder / "data/inner"), Toy.at(toy.folder / "data/deep/er/one")):
        inner.write("data/x.dat", "data/leftover.dat")
        inner.commit(7, "data/x.dat")
    toy.write("data/inner-not.dat", "data/deep/er/two.dat", "data/in/ner.dat")
    told, orphans = toy.looked()
    assert orphans == ["data/deep/er/two.dat", "data/in/ner.dat", "data/inner-not.dat"]
    assert told.counted is not None and told.counted.listed.files == 10


def test_a_live_file_in_another_tables_folder_is_not_missing(toy: Toy) -> None:
    inner = Toy.at(toy.folder / "data/inner")
    inner.write("data/shared.dat")
    inner.commit(7, "data/shared.dat")
    toy.commit(3, "data/inner/data/shared.dat")
    assert toy.swept().outcome is Outcome.UNCHANGED


def test_a_file_belongs_to_the_most_specific_place(tmp_path: Path) -> None:
    places = (TableFolder("", KINDS), TableFolder("data/moved", ()), TableFolder("data/moved/here", KINDS))
    toy = Toy.at(tmp_path / "toy", places=places)
    toy.write(
        "data/a.dat", "data/moved/b.dat", "data/moved/here/data/c.dat", "data/moved/here/d.dat", "data/movedon.dat"
    )
    toy.commit(1, "data/a.dat")
    assert toy.looked()[1] == ["data/moved/here/data/c.dat", "data/movedon.dat"]


def test_only_the_places_are_looked_at(tmp_path: Path) -> None:
    toy = Toy.at(
        tmp_path / "toy", places=(TableFolder("meta", ()), TableFolder("mine", (FileKind("data", r"[^/]+\.dat"),)))
    )
    toy.write("mine/x.dat", "mine/y.dat", "other/z.dat", "mineral/q.dat")
    toy.commit(1, "mine/x.dat")
    assert toy.looked()[1] == ["mine/y.dat"]


def test_by_bare_name_a_namesake_of_a_live_file_stays(tmp_path: Path) -> None:
    toy = Toy.at(tmp_path / "toy", by_bare_name=True)
    toy.write("data/a.dat", "data/elsewhere/a.dat", "data/elsewhere/b.dat")
    toy.commit(1, "data/a.dat")
    assert toy.looked()[1] == ["data/elsewhere/b.dat"]
    toy.by_bare_name = False
    assert toy.looked()[1] == ["data/elsewhere/a.dat", "data/elsewhere/b.dat"]


def test_what_one_run_left_is_reported_by_name(toy: Toy) -> None:
    ours = f"data/part-nk-{run_token('nightly', Operation.OPTIMIZE)}-1.dat"
    other = f"data/part-nk-{run_token('nightly', Operation.UPGRADE)}-1.dat"
    toy.write(ours, other, "data/foreign.dat", f"data/part-nk-{run_token('another', Operation.OPTIMIZE)}.dat")
    assert toy.looked(of_run="nightly")[1] == sorted([ours, other])
    assert len(toy.looked()[1]) == 4


def test_a_source_that_several_roots_name_is_read_once(toy: Toy) -> None:
    (toy.folder / "meta/s-3.json").write_text(json.dumps({"lists": ["meta/l-1.json", "meta/l-2.json"]}))
    toy.swept()
    assert sorted(map(str, toy.opened)) == ["meta/l-1.json", "meta/l-2.json"]


def test_files_committed_between_listing_and_looking_are_live(toy: Toy) -> None:
    """A writer that took longer than the age asked for: its files are old when they are committed."""
    toy.write("data/slow.dat", "data/slower.dat", "data/lost.dat")

    def commit(look: int) -> None:
        if look == 2:
            toy.commit(3, "data/slow.dat")
        if look == 3:
            toy.commit(4, "data/slower.dat")

    toy.before_roots = commit
    assert toy.looked()[1] == ["data/lost.dat"]
    assert toy.looks == 4


def test_files_written_and_committed_after_the_listing_are_not_missing(toy: Toy) -> None:
    def commit(look: int) -> None:
        if look == 2:
            toy.write("data/new.dat", days=0)
            toy.commit(3, "data/new.dat", days=0)

    toy.before_roots = commit
    assert toy.swept().outcome is Outcome.UNCHANGED


def test_a_table_that_never_rests_is_not_swept(toy: Toy) -> None:
    toy.before_roots = lambda look: toy.commit(100 + look)
    with pytest.raises(EvidenceError, match="expected none that are new in one look"):
        toy.swept()


def test_a_snapshot_that_vanishes_after_it_was_read_ends_the_sweep(toy: Toy) -> None:
    toy.before_roots = lambda look: toy.forget(1) if look == 2 else None
    with pytest.raises(EvidenceError, match=r"meta/s-1\.json: expected there until all is read, found gone"):
        toy.swept(SweepMode.DELETE)


def test_snapshots_that_expire_while_they_are_read_end_the_sweep(toy: Toy) -> None:
    """Paimon #7710: with every listed snapshot gone, nothing was live and everything old was deleted."""
    before = toy.files()

    def expire(look: int) -> None:
        if look == 1:
            toy.before_reach = lambda root: [toy.forget(n) for n in (1, 2)].clear()

    toy.before_roots = expire
    with pytest.raises(MissingFile):
        toy.swept(SweepMode.DELETE)
    assert before.keys() - toy.files().keys() == {"meta/s-1.json", "meta/s-2.json"}


def test_a_table_without_a_snapshot_is_not_swept(toy: Toy) -> None:
    toy.forget(1)
    toy.forget(2)
    with pytest.raises(CorruptMetadata, match="expected a snapshot, version or tag"):
        toy.swept(SweepMode.DELETE)
    assert (toy.folder / "data/a.dat").exists()


@pytest.mark.parametrize("name", ["meta/s-1.json", "meta/l-2.json"])
def test_metadata_that_cannot_be_read_ends_the_sweep(toy: Toy, name: str) -> None:
    toy.write("data/old.dat")
    (toy.folder / name).write_text("{")
    with pytest.raises(CorruptMetadata, match=name):
        toy.swept(SweepMode.DELETE)
    (toy.folder / "meta/l-2.json").unlink()
    with pytest.raises(EvidenceError):
        toy.swept(SweepMode.DELETE)
    assert (toy.folder / "data/old.dat").exists()


def test_names_that_do_not_fit_the_listing_end_the_sweep(toy: Toy) -> None:
    """Amoro #1959: live files deleted, as metadata spells their names in another way than the folder."""
    toy.write("data/a b.dat", "data/old.dat")
    toy.commit(3, "data/a b.dat")
    path = toy.folder / "meta/l-3.json"
    path.write_text(path.read_text().replace("a b", "a%20b"))
    with pytest.raises(EvidenceError, match=r"1 missing, 0 of another size: data/a%20b\.dat is not there"):
        toy.swept(SweepMode.DELETE)
    assert (toy.folder / "data/a b.dat").exists() and (toy.folder / "data/old.dat").exists()


@pytest.mark.parametrize("mode", [SweepMode.DRY_RUN, SweepMode.QUARANTINE, SweepMode.DELETE])
def test_a_folder_by_two_names_keeps_its_files(tmp_path: Path, mode: SweepMode) -> None:
    """Metadata names one of them, a listing the other."""
    toy = Toy.at(tmp_path / "toy", places=(TableFolder("mine", KINDS), TableFolder("meta", ())))
    toy.write("mine/data/x.dat", "mine/data/y.dat", "mine/data/z.dat")
    (toy.folder / "link").symlink_to(toy.folder / "mine")
    toy.commit(1, "link/data/x.dat", "mine/data/z.dat")
    before = toy.files()
    with pytest.raises(EvidenceError, match=r"1 .*two names: mine/data/x\.dat and link/data/x\.dat, of \d+ bytes"):
        toy.swept(mode)
    assert toy.files() == before
    # Of another size it is another file.
    (toy.folder / "mine/data/x.dat").unlink()
    toy.write("real/x.dat", "mine/data/x.dat")
    toy.commit(1, "real/x.dat", "mine/data/z.dat")
    (toy.folder / "mine/data/x.dat").write_text("longer than what is named so elsewhere")
    age(toy.folder / "mine/data/x.dat", 30)
    assert toy.looked()[1] == ["mine/data/x.dat", "mine/data/y.dat"]


def test_a_file_that_is_committed_by_another_name_meanwhile_stays(tmp_path: Path) -> None:
    toy = Toy.at(tmp_path / "toy", places=(TableFolder("mine", KINDS), TableFolder("meta", ())))
    toy.write("mine/data/x.dat", "mine/data/z.dat")
    (toy.folder / "link").symlink_to(toy.folder / "mine")
    toy.commit(1, "mine/data/z.dat")
    toy.before_roots = lambda look: toy.commit(2, "link/data/x.dat", days=0) if look == 3 else None
    found = toy.swept(SweepMode.DELETE)
    assert (found.outcome, found.acted.files) == (Outcome.FAILED, 0)
    assert "mine/data/x.dat and link/data/x.dat" in found.failed[0][1]
    assert "mine/data/x.dat" in toy.files()


def test_a_live_file_outside_of_every_place_must_be_where_its_name_states(tmp_path: Path) -> None:
    """One that was imported is; one whose name is spelled in another way, such as with a bucket in front, is not."""
    toy = Toy.at(
        tmp_path / "toy", places=(TableFolder("meta", ()), TableFolder("mine", (FileKind("data", r"[^/]+\.dat"),)))
    )
    toy.write("imported/x.dat", "mine/y.dat")
    toy.commit(1, "imported/x.dat")
    assert toy.looked()[1] == ["mine/y.dat"]
    toy.write("mine/z.dat")
    toy.commit(2, "mine/z.dat")
    path = toy.folder / "meta/l-2.json"
    path.write_text(path.read_text().replace("mine/z", "bucket/mine/z"))
    with pytest.raises(EvidenceError, match=r"1 missing, 0 of another size: bucket/mine/z\.dat is not there"):
        toy.swept(SweepMode.DELETE)
    assert (toy.folder / "mine/z.dat").exists()


def test_a_live_file_of_another_size_ends_the_sweep(toy: Toy) -> None:
    toy.write("data/old.dat")
    (toy.folder / "data/b.dat").write_text("cut")
    with pytest.raises(EvidenceError, match=r"1 of another size: data/b\.dat has 3 bytes, metadata states 21"):
        toy.swept(SweepMode.DELETE)
    assert (toy.folder / "data/old.dat").exists()


def test_more_than_a_share_of_many_files_is_not_removed(toy: Toy) -> None:
    toy.write(*(f"data/old-{n}.dat" for n in range(101)))
    told = toy.swept(SweepMode.DELETE)
    assert told.outcome is Outcome.REFUSED and "101 of 108 files would go" in told.reason
    assert "acting would be refused: 101 of 108 files" in toy.swept().reason
    assert toy.swept().outcome is Outcome.SKIPPED
    assert toy.swept(SweepMode.DELETE, max_share=0.96).acted.files == 101


def test_a_reason_to_stop_leaves_no_trace_in_the_tables_history(tmp_path: Path) -> None:
    def unreadable() -> None:
        raise CorruptMetadata("data/23.dat", "a footer", "none")

    table = ToyWithHistory.at(tmp_path / "told")
    table.write("data/live.dat", "data/old.dat")
    table.commit(1, "data/live.dat")
    before = table.files()
    with pytest.raises(CorruptMetadata):
        table.swept(SweepMode.DELETE, before=unreadable)
    assert (table.files(), table.told) == (before, [])


def test_few_files_may_go_whatever_their_share(toy: Toy) -> None:
    toy.write(*(f"data/old-{n}.dat" for n in range(100)))
    assert toy.swept(SweepMode.DELETE).acted.files == 100


@pytest.mark.parametrize("hours", [-1.1, 1.1])
def test_a_store_whose_clock_is_far_from_ours_is_not_swept(toy: Toy, hours: float) -> None:
    toy.write("data/old.dat")
    told = toy.swept(SweepMode.DELETE, clock=lambda: wall_ms() - int(hours * HOUR_MS))
    assert told.outcome is Outcome.REFUSED and told.counted is None
    side = "ahead of" if hours > 0 else "behind"
    assert f"h {side} ours: ages cannot be determined" in told.reason
    assert (toy.folder / "data/old.dat").exists()


@pytest.mark.parametrize(("minutes", "goes"), [(-30, False), (30, True), (0, True)])
def test_a_store_whose_clock_is_behind_makes_files_look_old(toy: Toy, minutes: int, goes: bool) -> None:
    toy.write("data/old.dat", days=7 + 20 / (24 * 60))
    told = toy.swept(SweepMode.DELETE, clock=lambda: wall_ms() - minutes * 60_000)
    assert (toy.folder / "data/old.dat").exists() != goes
    assert NOW - 7 * DAY_MS - told.cutoff_ms == pytest.approx(30 * 60_000 if minutes < 0 else 0, abs=10_000)
    assert os.listdir(toy.folder / "_nightkeep") == []
