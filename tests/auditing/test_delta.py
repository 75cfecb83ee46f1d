"""Compactions of Delta tables by a foreign writer, honest and damaged in one way each: the verdict of an audit."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64
from tests.formats.delta.hand_made import SCHEMA, HandMade, removal, rows_of

import nightkeep
from nightkeep.model import Outcome
from nightkeep.records import RunDocument

DAY, OTHER = "2026-11-01", "2026-11-02"
Action = dict[str, Any]


@dataclass
class Lake:
    """A table of two days with deleted rows, and the audits of it, whose reports are beside it."""

    made: HandMade
    reports: Path

    def audit(self, **options: Any) -> RunDocument:
        """The first one reads all commits: their times are fixed, and may be long ago."""
        if not (self.reports / "~audits").exists():
            options = {"since": "3650d", **options}
        return nightkeep.audit(f"delta:{self.made.folder}", reports=self.reports, **options)

    def live(self, day: str = DAY) -> list[Action]:
        """The add actions of a day, oldest first."""
        return [add for add in self.made.live().values() if add["partitionValues"] == {"day": day}]

    def rows(self, add: Action) -> pa.Table:
        """The rows of a file that its vector leaves."""
        table = pq.read_table(self.made.folder / unquote(add["path"]), partitioning=None)
        gone = self.made.deleted(add)
        return table.take(pa.array([place for place in range(len(table)) if place not in gone], pa.int64()))

    def compact(self, change: Callable[[pa.Table], pa.Table] = lambda rows: rows, *, day: str = DAY) -> int:
        """All files of a day as one, the rows changed on the way; the version."""
        held = self.live(day)
        rows = change(pa.concat_tables([self.rows(add) for add in held]))
        return self.replace(held, self.made.written(day, rows))

    def replace(self, gone: Sequence[Action], actions: Sequence[Action]) -> int:
        """A commit that states that it keeps rows."""
        removes = [{"remove": {**removal(add), "dataChange": False}} for add in gone]
        added = [{kind: {**body, "dataChange": False} for kind, body in action.items()} for action in actions]
        self.made.commit("OPTIMIZE", *removes, *added)
        return self.made.version

    @property
    def log(self) -> Path:
        return self.made.folder / "_delta_log"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = HandMade(tmp_path / "clicks")
    for number in range(3):
        made.append(DAY, range(number * 10, number * 10 + 10))
    made.append(OTHER, range(100, 110))
    made.delete(DAY, [3, 14])
    return Lake(made, tmp_path / "reports")


def commits(document: RunDocument) -> dict[int, dict[str, Any]]:
    section: Any = document.extra["audit"]
    return {each["version"]: each for each in section["commits"]}


def test_an_honest_compaction_is_proven_and_then_nothing_is_new(lake: Lake) -> None:
    version = lake.compact()
    document = lake.audit()
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert commits(document)[version]["verdict"] == "proven"
    assert document.committed_version is None and document.units[0].rows == 28
    again = lake.audit()
    assert (again.outcome, again.reason) == (Outcome.UNCHANGED, "no commit since the last audit")


def test_commits_that_change_rows_prove_nothing_and_are_not_green(lake: Lake) -> None:
    document = lake.audit()
    assert document.outcome is Outcome.SKIPPED, document.reason
    assert {each["verdict"] for each in commits(document).values()} == {"consistent"}


def _without(rows: pa.Table) -> pa.Table:
    return rows.slice(1)


def _doubled(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, rows.slice(0, 2)])


def _set(name: str, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(rows: pa.Table) -> pa.Table:
        place = rows.schema.get_field_index(name)
        values = rows.column(name).to_pylist()
        return rows.set_column(place, SCHEMA.field(name), pa.array([value, *values[1:]], SCHEMA.field(name).type))

    return change


def _swapped(rows: pa.Table) -> pa.Table:
    """Two rows with each other's price: each column as a multiset is what it was."""
    place, prices = rows.schema.get_field_index("price"), rows.column("price").to_pylist()
    return rows.set_column(place, "price", pa.array([prices[1], prices[0], *prices[2:]], pa.float64()))


def _replaced(rows: pa.Table) -> pa.Table:
    """As many rows, one of them another one."""
    return pa.concat_tables([rows.slice(1), rows_of([999])])


@dataclass(frozen=True)
class Rows:
    """What a damage does to the rows of a compaction, and the counts that an audit finds."""

    change: Callable[[pa.Table], pa.Table]
    missing: int
    extra: int
    doubled: int = 0


ROWS = {
    "a row is lost": Rows(_without, 1, 0),
    "rows are doubled": Rows(_doubled, 0, 2, 2),
    "a value is another one": Rows(_set("price", 7.5), 1, 1),
    "a value is null": Rows(_set("note", None), 1, 1),
    "a text has one more space": Rows(_set("note", "n0 "), 1, 1),
    "two rows swap values": Rows(_swapped, 2, 2),
    "a row is another one at an equal count": Rows(_replaced, 1, 1),
    "a key is another one": Rows(_set("id", 1 << 62), 1, 1),
    "zero is negative": Rows(_set("price", -0.0), 1, 1),
    "no row is left": Rows(lambda rows: rows.slice(0, 0), 28, 0),
}


@pytest.mark.parametrize("damage", ROWS)
def test_a_compaction_that_changes_rows_is_found(lake: Lake, damage: str) -> None:
    wrong = ROWS[damage]
    good = lake.compact(day=OTHER)
    bad = lake.compact(wrong.change)
    document = lake.audit()
    found = commits(document)
    assert document.outcome is Outcome.MISMATCH
    assert (found[bad]["verdict"], found[good]["verdict"]) == ("differs", "proven")
    assert (found[bad]["missing"], found[bad]["extra"]) == (wrong.missing, wrong.extra)
    assert found[bad]["doubled"] == wrong.doubled
    assert f"version {bad}, OPTIMIZE" in str(document.reason)


def _moved_day(lake: Lake) -> None:
    held = lake.live()
    rows = pa.concat_tables([lake.rows(add) for add in held])
    lake.replace(held, [*lake.made.written(DAY, rows.slice(1)), *lake.made.written(OTHER, rows.slice(0, 1))])


def _forgotten_file(lake: Lake) -> None:
    lake.replace(lake.live()[:1], [])


def _dropped_vector(lake: Lake) -> None:
    held = next(add for add in lake.live() if add.get("deletionVector"))
    plain = {name: value for name, value in held.items() if name != "deletionVector"}
    lake.replace([held], [{"add": plain}])


def _with_vector(lake: Lake, change: Callable[[BitMap64], BitMap64]) -> None:
    held = next(add for add in lake.live() if add.get("deletionVector"))
    vector = lake.made.vectors({held["path"]: change(lake.made.deleted(held))})[held["path"]]
    lake.replace([held], [{"add": {**held, "deletionVector": vector}}])


def _stale(lake: Lake) -> None:
    """A compaction that began before another one, and takes the same files again."""
    held = lake.live()
    rows = pa.concat_tables([lake.rows(add) for add in held])
    lake.compact()
    lake.replace(held, lake.made.written(DAY, rows))


def _undeleted(lake: Lake) -> None:
    """A compaction that began before a delete: the rows are back."""
    held = lake.live()
    rows = pa.concat_tables([lake.rows(add) for add in held])
    lake.made.delete(DAY, [20, 21, 22])
    lake.replace(lake.live(), lake.made.written(DAY, rows))


KEPT: dict[str, tuple[Callable[[Lake], None], tuple[int, int, int]]] = {
    "a row moves to another partition": (_moved_day, (1, 1, 0)),
    "a file is forgotten": (_forgotten_file, (10, 0, 0)),
    "a vector is lost": (_dropped_vector, (0, 1, 0)),
    "a vector hides one row more": (lambda lake: _with_vector(lake, lambda gone: gone | BitMap64([9])), (1, 0, 0)),
    "a vector hides another row": (lambda lake: _with_vector(lake, lambda gone: BitMap64([9])), (1, 1, 0)),
    "a stale compaction takes files again": (_stale, (0, 28, 28)),
    "deleted rows are back": (_undeleted, (0, 3, 0)),
}


@pytest.mark.parametrize("damage", KEPT)
def test_files_and_vectors_that_change_rows_are_found(lake: Lake, damage: str) -> None:
    harm, counts = KEPT[damage]
    harm(lake)
    document = lake.audit()
    wrong = commits(document)[lake.made.version]
    assert (document.outcome, wrong["verdict"]) == (Outcome.MISMATCH, "differs"), document.reason
    assert (wrong["missing"], wrong["extra"], wrong["doubled"]) == counts


def _edit(lake: Lake, change: Callable[[list[Action]], list[Action]]) -> None:
    """Change the actions of an honest compaction's commit."""
    path = lake.log / f"{lake.compact():020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(f"{json.dumps(action)}\n" for action in change(actions)))


def _twice(kind: str) -> Callable[[Lake], None]:
    return lambda lake: _edit(lake, lambda actions: [*actions, *(each for each in actions if kind in each)])


def _stated(rows: int) -> Callable[[Lake], None]:
    def change(actions: list[Action]) -> list[Action]:
        for each in actions:
            if "add" in each:
                each["add"]["stats"] = json.dumps(json.loads(each["add"]["stats"]) | {"numRecords": rows})
        return actions

    return lambda lake: _edit(lake, change)


def _hides_too_much(lake: Lake) -> None:
    def change(actions: list[Action]) -> list[Action]:
        for each in actions:
            if "add" in each:
                path = each["add"]["path"]
                vector = lake.made.vectors({path: BitMap64(range(40))})[path]
                each["add"]["deletionVector"] = vector
        return actions

    _edit(lake, change)


def _file_gone(lake: Lake) -> None:
    lake.compact()
    (lake.made.folder / unquote(lake.live()[0]["path"])).unlink()


def _file_cut(lake: Lake) -> None:
    lake.compact()
    path = lake.made.folder / unquote(lake.live()[0]["path"])
    path.write_bytes(path.read_bytes()[:-20])


UNSOUND: dict[str, tuple[Callable[[Lake], None], str]] = {
    "a file is added twice": (_twice("add"), "2 times"),
    "a file is removed twice": (_twice("remove"), "2 times"),
    "the log states another number of rows": (_stated(27), "27 rows"),
    "a vector hides more rows than there are": (_hides_too_much, "hides 40 rows, and the file has 28"),
    "a file is gone": (_file_gone, "part-00000"),
    "a file is cut": (_file_cut, "part-00000"),
}


@pytest.mark.parametrize("damage", UNSOUND)
def test_metadata_that_contradicts_is_unsound(lake: Lake, damage: str) -> None:
    harm, words = UNSOUND[damage]
    harm(lake)
    document = lake.audit()
    wrong = commits(document)[lake.made.version]
    assert document.outcome is Outcome.MISMATCH, document.reason
    assert wrong["verdict"] in ("unsound", "differs") and words in str(wrong["why"]), wrong


def test_a_lost_update_is_named_with_what_it_held(lake: Lake) -> None:
    lake.compact()
    lake.audit()
    lake.made.append(DAY, range(50, 57))
    lake.compact()
    assert lake.audit().outcome is Outcome.VERIFIED
    # A writer with a stale listing writes over the newest two versions.
    gone = lake.made.version
    for version in (gone - 1, gone):
        (lake.log / f"{version:020d}.json").unlink()
    lake.made.append(OTHER, range(200, 203))
    document = lake.audit()
    assert document.outcome is Outcome.MISMATCH
    section: Any = document.extra["audit"]
    assert [each["version"] for each in section["vanished"]] == [gone - 1, gone]
    assert f"version {gone - 1}, WRITE" in str(document.reason) and "7 more rows" in str(document.reason)
    assert lake.audit().outcome is Outcome.UNCHANGED


def test_a_base_that_expired_is_not_provable_and_later_commits_are(lake: Lake) -> None:
    first = lake.compact()
    lake.made.checkpoint()
    lake.made.append(DAY, range(60, 65))
    second = lake.compact()
    for version in range(first):
        (lake.log / f"{version:020d}.json").unlink()
    document = lake.audit()
    found = commits(document)
    assert (found[first]["verdict"], found[second]["verdict"]) == ("not provable", "proven"), document.reason
    assert document.outcome is Outcome.VERIFIED
    assert f"version {first} not provable" in str(document.reason)
    assert f"the log begins with version {first}" in str(document.reason)


def test_files_of_retained_versions_are_looked_for(lake: Lake) -> None:
    lake.compact()
    document = lake.audit(files=True)
    assert document.outcome is Outcome.VERIFIED and "0 missing" in str(document.reason), document.reason
    (lake.made.folder / unquote(lake.live(OTHER)[0]["path"])).unlink()
    document = lake.audit(files=True)
    assert document.outcome is Outcome.MISMATCH and "1 missing" in str(document.reason)


def test_a_file_of_another_size_is_found(lake: Lake) -> None:
    path = lake.made.folder / unquote(lake.live(OTHER)[0]["path"])
    path.write_bytes(path.read_bytes() + b"PAR1")
    document = lake.audit(files=True)
    assert document.outcome is Outcome.MISMATCH and "1 of another size" in str(document.reason)


def test_a_budget_leaves_commits_for_the_next_audit(lake: Lake) -> None:
    versions = []
    for number in range(4):
        lake.made.append(DAY, range(300 + 10 * number, 305 + 10 * number))
        versions.append(lake.compact())
    first = lake.audit(byte_budget="1KB")
    assert first.outcome is Outcome.VERIFIED and "left for the next audit" in str(first.reason), first.reason
    seen = {version for version, each in commits(first).items() if each["verdict"] == "proven"}
    for _ in range(8):
        document = lake.audit(byte_budget="1KB")
        if document.outcome is Outcome.UNCHANGED:
            break
        seen |= {version for version, each in commits(document).items() if each["verdict"] == "proven"}
    assert seen == set(versions)


def test_an_audit_changes_nothing_of_the_table(lake: Lake) -> None:
    lake.compact(_without)
    before = {path: path.stat().st_mtime_ns for path in lake.made.folder.rglob("*")}
    lake.audit(files=True)
    assert {path: path.stat().st_mtime_ns for path in lake.made.folder.rglob("*")} == before


@pytest.mark.parametrize("seed", range(6))
def test_honest_histories_raise_no_alarm(tmp_path: Path, seed: int) -> None:
    """Appends, deletes, compactions of some files, and rewrites of vectors, audited in steps and at once."""
    chance = random.Random(seed)
    lake = Lake(HandMade(tmp_path / "t"), tmp_path / "reports")
    lake.made.append(DAY, range(10))
    keeping = set[int]()
    for step in range(40):
        day = chance.choice((DAY, OTHER))
        match chance.randrange(5):
            case 0 | 1:
                lake.made.append(day, range(1000 * step, 1000 * step + chance.randrange(1, 9)))
            case 2:
                ids = [row for add in lake.live(day) for row in lake.rows(add).column("id").to_pylist()]
                if ids:
                    lake.made.delete(day, chance.sample(ids, min(3, len(ids))))
            case _:
                held = lake.live(day)
                chosen = chance.sample(held, chance.randint(1, len(held))) if held else []
                if chosen:
                    rows = pa.concat_tables([lake.rows(add) for add in chosen])
                    keeping.add(lake.replace(chosen, lake.made.written(day, rows)))
        if chance.random() < 0.2:
            document = lake.audit()
            assert document.outcome is not Outcome.MISMATCH, document.reason
    whole = nightkeep.audit(f"delta:{lake.made.folder}", since=0, reports=tmp_path / "whole")
    assert whole.outcome is Outcome.VERIFIED, whole.reason
    assert {version for version, each in commits(whole).items() if each["verdict"] == "proven"} == keeping
