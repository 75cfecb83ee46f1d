"""Quarantines whose folder somebody else may write to: forged lists, and links in the place of folders."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.retention.toy_table import NOW, Toy, age, run_of

from nightkeep.errors import CorruptMetadata, RefusedTable, UsageError
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import TableFolder
from nightkeep.retention.orphans.quarantine import close, purge, restore
from nightkeep.retention.orphans.quarantine_manifest import parts
from nightkeep.storage import LocalStorage

OLD = ("data/day=1/old.dat", "data/old.dat")


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """A table with two files in quarantine, beside another's folder."""
    toy = Toy.at(tmp_path / "toy")
    toy.write("data/a.dat", *OLD)
    toy.commit(1, "data/a.dat")
    assert toy.swept(SweepMode.QUARANTINE).outcome is Outcome.VERIFIED
    other = Toy.at(tmp_path / "other")
    other.write("data/theirs.dat")
    return toy


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def plan_of(toy: Toy) -> Path:
    (path,) = toy.folder.glob("_nightkeep/quarantine/*/plan-00000.jsonl")
    return path


def forge(toy: Toy, change: Callable[[list[dict[str, Any]]], object]) -> None:
    lines = [json.loads(line) for line in plan_of(toy).read_text().splitlines()]
    change(lines)
    plan_of(toy).write_text("".join(json.dumps(line) + "\n" for line in lines))


def put(line: int, key: str, value: object) -> Callable[[list[dict[str, Any]]], object]:
    return lambda lines: lines[line].update({key: value})


FORGED = {
    "above the table": put(1, "path", "../other/data/new.dat"),
    "above the table, later": put(1, "path", "data/../../other/new.dat"),
    "absolute": put(1, "path", "/tmp/new.dat"),
    "the table itself": put(1, "path", ""),
    "spelled otherwise": put(1, "path", "data//old.dat"),
    "a NUL": put(1, "path", "data/o\0ld.dat"),
    "in a quarantine": put(1, "path", "_nightkeep/quarantine/x/00000/00000.file"),
    "in a quarantine of a folder below": put(1, "path", "data/_nightkeep/x.dat"),
    "twice": put(1, "path", "data/old.dat"),
    "no text": put(1, "path", ["data/old.dat"]),
    "from a live file": put(1, "to", "data/a.dat"),
    "from another table": put(1, "to", "../other/data/theirs.dat"),
    "from another name of the part": put(1, "to", "_nightkeep/quarantine/x/00000/00001.file"),
    "no number": put(1, "bytes", "12"),
    "no list": lambda lines: lines.insert(1, [1]),  # type: ignore[arg-type]
    "an owner that is a path": put(0, "owner", {"host": "x", "pid": "../../etc", "started": "1"}),
    "an owner with more": put(0, "owner", {"host": "x", "pid": 1, "started": "1", "secret": 1}),
    "no owner": lambda lines: lines[0].pop("owner"),
    "a time that is none": put(0, "planned_ms", float("nan")),
    "another format": put(0, "quarantine", "secret text"),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_list_moves_nothing(what: str, toy: Toy, tmp_path: Path) -> None:
    forge(toy, FORGED[what])
    before = everything(tmp_path)
    if what == "an owner with more":
        assert restore(toy.table_files(), "run-1", now_ms=NOW).files == 2
        return
    with pytest.raises(CorruptMetadata, match=r"plan-00000\.jsonl") as refusal:
        restore(toy.table_files(), "run-1", now_ms=NOW)
    assert "secret" not in str(refusal.value)
    after = everything(tmp_path)
    assert {name: data for name, data in after.items() if "restoring" not in name} == before


@pytest.mark.parametrize("what", ["above the table", "absolute", "from a live file"])
def test_a_forged_list_of_what_was_cut_short_settles_nothing(what: str, toy: Toy, tmp_path: Path) -> None:
    forge(toy, FORGED[what])
    forge(toy, put(0, "planned_ms", 0))
    (plan_of(toy).parent / "done-00000.json").unlink()
    before = everything(tmp_path)
    with pytest.raises(CorruptMetadata, match=r"plan-00000\.jsonl"):
        close(toy.table_files(), run_of("run-2"))
    assert everything(tmp_path) == before


def test_a_list_that_nests_without_end_is_damaged(toy: Toy) -> None:
    plan_of(toy).write_text("[" * 200_000)
    with pytest.raises(CorruptMetadata, match="one JSON object a line"):
        restore(toy.table_files(), "run-1", now_ms=NOW)


def test_nothing_is_overwritten_by_what_a_list_states(toy: Toy) -> None:
    forge(toy, put(1, "path", "data/a.dat"))
    live = (toy.folder / "data/a.dat").read_bytes()
    told = restore(toy.table_files(), "run-1", now_ms=NOW)
    assert (told.outcome, told.files, len(told.conflicts)) == (Outcome.FAILED, 1, 1)
    assert (toy.folder / "data/a.dat").read_bytes() == live


def test_files_come_back_into_the_tables_own_places_only(tmp_path: Path) -> None:
    """A store of many tables, as Iceberg's is."""
    toy = Toy(LocalStorage(str(tmp_path), bounds=("db/t",)), places=(TableFolder("db/t", ()),))
    folder = tmp_path / "db/t/_nightkeep/quarantine/run-1-ec1a5e64-0123456789abcdef"
    home = replace(
        toy.table_files(), home="db/t", places=(TableFolder("db/t/data", toy.table_files().places[0].kinds),)
    )
    (folder / "00000").mkdir(parents=True)
    (folder / "00000/00000.file").write_bytes(b"x")
    owner = {"host": "x", "pid": 1, "started": "1"}
    head = {"quarantine": 1, "run_id": "run-1", "owner": owner, "planned_ms": 0}
    to = f"{folder.relative_to(tmp_path)}/00000/00000.file"
    for path in ("db/u/data/x.dat", "etc/cron.d/x", "db/t2/x"):
        line = {"path": path, "to": to, "bytes": 1, "modified_ms": 1, "kind": "data"}
        (folder / "plan-00000.jsonl").write_text(f"{json.dumps(head)}\n{json.dumps(line)}\n")
        assert [part.number for part in parts(toy.storage, str(folder.relative_to(tmp_path)))] == [0]
        with pytest.raises(CorruptMetadata, match="in the table's own folders"):
            restore(home, "run-1", now_ms=NOW, vouched=[str(folder.relative_to(tmp_path))])
    assert {path.name for path in tmp_path.iterdir()} == {"db"}


@pytest.mark.parametrize("what", ["_nightkeep", "_nightkeep/quarantine", "run", "run/00000"])
def test_a_purge_follows_no_link(what: str, toy: Toy, tmp_path: Path) -> None:
    run = plan_of(toy).parent
    place = {"run": run, "run/00000": run / "00000"}.get(what, toy.folder / what)
    victim = tmp_path / "victim"
    shutil.move(place, victim)
    for path in (tmp_path / "other").rglob("*.dat"):
        target = victim / "precious" / path.name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
        age(target, 400)
    place.symlink_to(victim)
    before = everything(victim)
    try:
        purged = purge(toy.table_files(), now_ms=NOW + 400 * DAY_MS, older_than_ms=DAY_MS)
        assert purged.files == 0 and what == "run"
    except RefusedTable as refusal:
        assert "a symbolic link" in str(refusal) and what != "run"
    assert everything(victim) == before


@pytest.mark.parametrize("what", ["_nightkeep", "_nightkeep/quarantine", "run", "run/00000", "data", "data/day=1"])
def test_a_restore_follows_no_link(what: str, toy: Toy, tmp_path: Path) -> None:
    run = plan_of(toy).parent
    place = {"run": run, "run/00000": run / "00000"}.get(what, toy.folder / what)
    victim = tmp_path / "victim"
    if place.exists():
        shutil.move(place, victim)
    else:
        victim.mkdir()
    place.symlink_to(victim)
    before = everything(victim)
    try:
        told = restore(toy.table_files(), "run-1", now_ms=NOW)
        assert told.outcome is Outcome.FAILED and "symbolic link" in told.conflicts[0][1]
    except (RefusedTable, UsageError) as refusal:
        assert "symbolic link" in str(refusal) or "nothing of run" in str(refusal)
    assert everything(victim) == before


def test_a_sweep_quarantines_nothing_through_a_link(toy: Toy, tmp_path: Path) -> None:
    shutil.rmtree(toy.folder / "_nightkeep")
    (tmp_path / "victim").mkdir()
    (toy.folder / "_nightkeep").symlink_to(tmp_path / "victim")
    toy.write("data/more.dat")
    before = everything(toy.folder)
    with pytest.raises(RefusedTable, match="a symbolic link"):
        toy.swept(SweepMode.QUARANTINE, "run-2")
    assert everything(tmp_path / "victim") == {} and everything(toy.folder) == before
