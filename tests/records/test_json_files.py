"""One file of the reports folder that is no document: it is named, and everything else is told all the same."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.records.test_documents import BARE, NIGHT, document
from tests.support.commands import said

from nightkeep.errors import CorruptMetadata, EvidenceError
from nightkeep.model import Outcome
from nightkeep.nights.run_pages import RunPage, write_run
from nightkeep.nights.settled import Settled
from nightkeep.pages import Links, Overview, plan_text, render_index, render_run, summary_text
from nightkeep.policy import load
from nightkeep.records import RunDocument, Unreadable, held, hold, load_document, read_history, release, store


def truncated(path: Path) -> None:
    path.write_text(path.read_text()[:100])


def foreign(path: Path) -> None:
    path.write_text('{"name": "somebody else\'s"}')


def another_version(path: Path) -> None:
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "outcome": "delightful"}))


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_link_to_nothing(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere.json")


def a_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def a_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def nested(path: Path) -> None:
    path.write_text("[" * 200_000)


def nested_beside(path: Path) -> None:
    deep: object = 1
    for _ in range(400):
        deep = [deep]
    path.write_text(json.dumps({**json.loads(path.read_text()), "more": deep}))


def no_number(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "metrics": {"seconds": {"plan": float("nan")}}}))


def a_large_number(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "metrics": {"files_before": 10**400}}))


def before_time(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "started_at": "0001-01-01T00:00:00+14:00"}))


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)))


def empty(path: Path) -> None:
    path.write_bytes(b"")


Damage = Callable[[Path], None]
DAMAGES: list[Damage] = [
    truncated,
    foreign,
    another_version,
    a_folder,
    a_pipe,
    a_link_to_nothing,
    a_loop,
    a_device,
    nested,
    nested_beside,
    no_number,
    a_large_number,
    before_time,
    binary,
    empty,
]
each_damage = pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)


@each_damage
def test_a_damaged_document_is_one_line_and_the_rest_is_reported(
    tmp_path: Path, damage: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    good = store(replace(document("a"), started_at=NIGHT), tmp_path)
    bad = Path(store(document("b"), tmp_path))
    damage(bad)
    found = read_history(tmp_path)
    assert found.documents == (load_document(good),)
    assert [each.path for each in found.unreadable] == [str(bad)]
    assert read_history(tmp_path, "a").unreadable == ()
    for verb in (["history"], ["history", "--json"], ["report"]):
        told = said(capsys, *verb, "--reports", str(tmp_path))
        assert (told.status, told.err.count("\n")) == (0, 1)
        assert told.err.startswith(f"nightkeep: {bad}") and len(told.err) < 1000
    assert str(bad) in (tmp_path / "pages" / "index.html").read_text()
    assert [each["table"] for each in said(capsys, "history", "--json", "--reports", str(tmp_path)).json] == ["a"]


@each_damage
def test_a_damaged_hold_holds_until_it_is_released(
    tmp_path: Path, damage: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tables.yaml").write_text(
        f"version: 1\ntables: [{{name: t, table: 'paimon:{tmp_path}/t'}}, {{name: u, table: 'paimon:{tmp_path}/u'}}]"
    )
    hold(tmp_path, "t", document("t"))
    placed = hold(tmp_path, "u", document("u"))
    damage(tmp_path / "holds" / "t.json")
    if damage not in (before_time, no_number, a_large_number, another_version, nested_beside):
        with pytest.raises(CorruptMetadata):
            held(tmp_path, "t")
    where = ["--policy", str(tmp_path / "tables.yaml"), "--reports", str(tmp_path)]
    told = said(capsys, "release", "t", *where)
    assert told.status == 0 and told.out.startswith("t: hold ")
    assert held(tmp_path, "t") is None
    assert said(capsys, "release", "t", *where).out == "t: no hold\n"
    assert held(tmp_path, "u") == placed


def test_a_hold_that_is_a_folder_with_something_in_it_is_left_to_people(tmp_path: Path) -> None:
    (tmp_path / "holds" / "t.json" / "x").mkdir(parents=True)
    with pytest.raises(CorruptMetadata):
        held(tmp_path, "t")
    with pytest.raises(EvidenceError, match=r"t\.json: expected a hold that can be removed"):
        release(tmp_path, "t")


def test_a_released_hold_that_nobody_can_read_reports_it(tmp_path: Path) -> None:
    hold(tmp_path, "t", document("t"))
    (tmp_path / "holds" / "t.json").write_text("{")
    assert isinstance(release(tmp_path, "t"), Unreadable)


@each_damage
def test_the_page_of_a_run_is_written_whatever_a_document_is(tmp_path: Path, damage: Damage) -> None:
    (tmp_path / "tables.yaml").write_text(f"version: 1\ntables: [{{name: b, table: 'paimon:{tmp_path}/b'}}]")
    bad = Path(store(document("b"), tmp_path))
    damage(bad)
    told = Settled("b", Outcome.FAILED, "no job reported on this table", (str(bad),))
    page = write_run(str(tmp_path), RunPage("night", "night", NIGHT), [told], policy=load(tmp_path / "tables.yaml"))
    assert "no job reported on this table" in Path(page).read_text()
    assert str(bad) in (tmp_path / "pages" / "index.html").read_text()


def test_whatever_can_be_read_can_be_shown_and_written_again(tmp_path: Path) -> None:
    """Values of a document exchanged for others: it is refused by name, or every reader has it."""
    whole = document().to_json() | {"more": {"orphans": [{"path": "a", "bytes": 1}], "mode": "delete"}}
    chance, refused = random.Random(11), 0
    path = tmp_path / "d.json"
    for _ in range(300):
        path.write_text(json.dumps(mutated(chance, whole), allow_nan=True))
        try:
            found = load_document(path)
        except CorruptMetadata:
            refused += 1
            continue
        shown(found)
    assert 0 < refused < 300


VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    10**30,
    2**62,
    1.5,
    1e308,
    float("inf"),
    "",
    "x" * 300,
    "\ud800",
    "9999-12-31T23:59:59-14:00",
    "2026-01-01T00:00:00+00:00",
    "verified",
    "sweep",
    "check",
    [],
    {},
    [1],
    {"a": 1},
    [[[]]],
    {"bytes": -5},
    "dry-run",
]


def mutated(chance: random.Random, value: Any) -> Any:
    if chance.random() < 0.03:
        return chance.choice(VALUES)
    if isinstance(value, dict):
        return {key: mutated(chance, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [mutated(chance, each) for each in value]
    return value


def shown(found: RunDocument) -> None:
    now = datetime(2026, 11, 22, tzinfo=UTC)
    render_run([found, BARE], title="t", generated_at=now)
    render_index(Overview([found, BARE]), title="t", generated_at=now, links=Links())
    summary_text([found, BARE])
    plan_text(found)
    assert RunDocument.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert Outcome.worst([found.outcome]) is found.outcome
