"""The stored state of each earlier release -> what this Nightkeep reads of it, and how it goes on from there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.upgrade import shown
from tests.upgrade.stored_state import ICEBERG, copied, expected, releases, unpacked, variables

import nightkeep
from nightkeep.api.call_context import find_context
from nightkeep.commands.job import run_job
from nightkeep.discovery import kept_found
from nightkeep.errors import CorruptMetadata, UsageError
from nightkeep.formats import open_table
from nightkeep.model import Outcome
from nightkeep.nights.run_tables import places_of
from nightkeep.records import CheckStatus, Hold, found_path, night_path, pages_in

PLACES = {
    "shop.orders": "warehouse/paimon/shop.db/orders",
    "lake.clicks": "warehouse/delta/shop.db/clicks",
    "stream.orders": f"{ICEBERG}/shop/orders",
}
"""Tables with a quarantine."""


@dataclass(frozen=True)
class State:
    """The state of a release in a folder, and what that release showed of it."""

    folder: Path
    expected: Any

    @property
    def reports(self) -> Path:
        return self.folder / "reports"

    def documents(self, table: str, run_id: str) -> list[dict[str, Any]]:
        return [each for each in self.expected["history"] if (each["table"], each["run_id"]) == (table, run_id)]

    def document(self, table: str, run_id: str) -> dict[str, Any]:
        (found,) = self.documents(table, run_id)
        return found

    @property
    def night(self) -> str:
        """The run id prefix of its night."""
        (found,) = {each["run_id"].partition(":")[0] for each in self.expected["history"] if ":" in each["run_id"]}
        return str(found)


@pytest.fixture(scope="module", params=releases())
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> State:
    """A state that tests only read."""
    folder = unpacked(request.param, tmp_path_factory.mktemp("release") / "state")
    return State(folder, expected(folder))


@pytest.fixture
def read(release: State, monkeypatch: pytest.MonkeyPatch) -> State:
    for name, value in variables(release.folder).items():
        monkeypatch.setenv(name, value)
    return release


@pytest.fixture
def state(release: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """A copy that a test changes."""
    folder = copied(release.folder, tmp_path / "state")
    for name, value in variables(folder).items():
        monkeypatch.setenv(name, value)
    return State(folder, expected(folder))


def version(table: str) -> int:
    """The number of the newest version."""
    return open_table(find_context(None, None).chosen(table).address).snapshot().version


def has(found: Any, stored: Any) -> bool:
    """Whether `found` has everything that was stored: keys and entries of objects are only added."""
    if isinstance(stored, dict):
        return isinstance(found, dict) and all(key in found and has(found[key], stored[key]) for key in stored)
    if isinstance(stored, list):
        same = isinstance(found, list) and len(found) == len(stored)
        return same and all(has(*pair) for pair in zip(found, stored, strict=True))
    return bool(found == stored)


# ---- what is read ----


def test_there_is_a_state() -> None:
    assert releases()


@pytest.mark.slow
def test_commands_show_what_they_showed(read: State) -> None:
    now = shown.shown()
    for what in ("history", "status", "rows", "holds", "measured", "looks"):
        assert read.expected[what], what
        for name in read.expected[what] if isinstance(read.expected[what], dict) else ():
            assert has(now[what][name], read.expected[what][name]), (what, name)
        assert has(now[what], read.expected[what]), what
    named = {each["name"]: each for each in now["tables"]}
    for each in read.expected["tables"]:
        assert has(named[each["name"]], each)


def test_explain_shows_the_same_settings_and_lines(read: State) -> None:
    for name, stored in read.expected["explain"].items():
        now = nightkeep.explain(name).to_json()
        assert has(by_name(now), by_name(stored)), name


def by_name(value: Any) -> Any:
    """Lists of settings and operations as objects, which may grow."""
    if isinstance(value, dict):
        return {key: by_name(each) for key, each in value.items()}
    for key in ("name", "setting"):
        if isinstance(value, list) and all(isinstance(each, dict) and key in each for each in value):
            return {each[key]: by_name(each) for each in value}
    return value


def test_pages_are_written_of_every_run(read: State, tmp_path: Path) -> None:
    pages = nightkeep.report(out=str(tmp_path / "out"))
    assert not pages.unreadable
    assert pages_in(tmp_path / "out") >= pages_in(read.reports)
    index = (tmp_path / "out/pages/index.html").read_text(encoding="utf-8")
    assert all(each["table"] in index for each in read.expected["history"])


def test_the_files_of_a_night_name_its_tables(read: State) -> None:
    places = places_of(night_path(read.reports, read.night))
    assert places and all(each.taken and each.place for each in places.values())
    found = {each.name for each in kept_found(found_path(str(read.reports), read.night)).tables}
    assert found == read.expected["status"].keys()


# ---- what goes on without Spark ----


def test_a_hold_stands_until_it_is_released(state: State) -> None:
    table = "lake.watched_held"
    stored = state.document(table, "broken")
    (skipped,) = nightkeep.run(table, run_id="later").documents
    assert skipped.outcome is Outcome.SKIPPED and "on hold" in str(skipped.reason)
    released = nightkeep.release(table).hold
    assert isinstance(released, Hold)
    assert (released.run_id, released.reason, released.go_back) == ("broken", stored["reason"], stored["go_back"])
    (planned,) = nightkeep.plan(table).documents
    assert planned.plan.units and not any("hold" in note for note in planned.plan.notes)


@pytest.mark.parametrize("table", PLACES)
def test_what_is_quarantined_comes_back_byte_for_byte(state: State, table: str) -> None:
    home, files = state.folder / PLACES[table], state.expected["quarantined"][table]
    assert files and not any((home / name).exists() for name in files)
    restored = nightkeep.restore(table, "tidy")
    assert restored.outcome is Outcome.VERIFIED, restored.reason
    assert digests(home, files) == files
    assert not list(home.rglob("*.file"))


def digests(home: Path, names: Iterable[str]) -> dict[str, str]:
    return {name: hashlib.sha256((home / name).read_bytes()).hexdigest() for name in names}


def test_an_expiry_keeps_the_base_of_a_version_that_waits_for_its_check(state: State) -> None:
    assert of_pending(state) == []


def of_pending(state: State) -> list[object]:
    """What an expiry would take of the base of a version that waits for its check since now."""
    table = "lake.pending"
    stored = state.document(table, "before-check")
    (path,) = state.reports.glob(f"{table}/before-check-*.json")
    text = path.read_text(encoding="utf-8")
    # A check is waited for during a week.
    path.write_text(text.replace(stored["finished_at"], datetime.now(UTC).isoformat()), encoding="utf-8")
    listed = nightkeep.expire(table, dry_run=True)
    assert listed.outcome in (Outcome.SKIPPED, Outcome.UNCHANGED), listed.reason
    expired = listed.to_json()["expired"]
    assert isinstance(expired, list)
    return expired


@pytest.mark.parametrize(("table", "run_id"), [("lake.clicks", "manual"), ("lake.clicks", "erasure")])
def test_a_finished_run_is_recognised(state: State, table: str, run_id: str) -> None:
    stored, before = state.document(table, run_id), version(table)
    if run_id == "erasure":
        again = nightkeep.delete(table, rows_where="user_id = 7", run_id=run_id)
    else:
        (again,) = nightkeep.run(table, run_id=run_id).documents
    assert (again.outcome, again.committed_version) == (Outcome.VERIFIED, stored["committed_version"])
    assert version(table) == before and shown.rows(table) == state.expected["rows"][table]


# ---- a key that is renamed without a reader ----


def documents(state: State) -> bool:
    return has(nightkeep.history().to_json(), state.expected["history"])


def holds(state: State) -> bool:
    return has(shown.hold("lake.watched_held"), state.expected["holds"]["lake.watched_held"])


def ledgers(state: State) -> bool:
    return has(shown.measured("lake.first"), state.expected["measured"]["lake.first"])


def looks(state: State) -> bool:
    return has(shown.look("shop.orders"), state.expected["looks"]["shop.orders"])


def nights(state: State) -> bool:
    return bool(places_of(night_path(state.reports, state.night)))


def quarantines(state: State) -> bool:
    files = state.expected["quarantined"]["lake.clicks"]
    back = nightkeep.restore("lake.clicks", "tidy").outcome is Outcome.VERIFIED
    return back and digests(state.folder / PLACES["lake.clicks"], files) == files


KEPT: Mapping[str, tuple[Callable[[State], bool], str]] = {
    "document": (documents, "reports/lake.clicks/manual-optimize.json"),
    "removal": (documents, "reports/lake.clicks/tidy-sweep.json"),
    "hold": (holds, "reports/holds/lake.watched_held.json"),
    "ledger": (ledgers, "reports/~ledger/tables/lake.first.jsonl"),
    "look": (looks, "reports/holds/shop.orders~look.json"),
    "night": (nights, "reports/~found/*~night.json"),
    "quarantine": (quarantines, f"{PLACES['lake.clicks']}/_nightkeep/quarantine/tidy-*/plan-00000.jsonl"),
    "mark": (quarantines, f"{PLACES['lake.clicks']}/_nightkeep/quarantine/tidy-*/done-00000.json"),
}
"""What reads a kind of stored file as before, and one such file."""
FOR_PEOPLE = frozenset({"attempt", "why", "modified_at", "at"})
"""Keys of quarantines that nothing reads."""


@pytest.mark.parametrize("kind", KEPT)
def test_a_key_without_its_reader_is_found(state: State, kind: str) -> None:
    is_read, pattern = KEPT[kind]
    (path,) = state.folder.glob(pattern)
    text = path.read_text(encoding="utf-8")
    renamed = {key for line in values_of(text) for key in keys_of(line)}
    if kind in ("quarantine", "mark"):
        renamed -= FOR_PEOPLE
    assert renamed
    for key in sorted(renamed):
        path.write_text(text.replace(f'"{key}":', f'"{key}_":'), encoding="utf-8")
        assert not reads(is_read, state), key
    path.write_text(text, encoding="utf-8")
    assert reads(is_read, state)


def values_of(text: str) -> list[Any]:
    """One JSON value, or one a line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def keys_of(value: Any) -> Iterator[str]:
    """Keys at any depth, but those without a value: a reader takes them for absent ones."""
    if isinstance(value, dict):
        yield from (key for key, each in value.items() if has_value(each))
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from keys_of(each)


def has_value(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(has_value, value.values() if isinstance(value, dict) else value))
    return value is not None


def reads(is_read: Callable[[State], bool], state: State) -> bool:
    try:
        return is_read(state)
    except (CorruptMetadata, UsageError):
        return False


def test_without_the_key_of_its_version_an_expiry_would_take_the_base(state: State) -> None:
    (path,) = state.reports.glob("lake.pending/before-check-*.json")
    path.write_text(path.read_text(encoding="utf-8").replace('"committed_version":', '"published":'), encoding="utf-8")
    assert of_pending(state) != []


# ---- what goes on with Spark ----


@pytest.mark.few(1)
@pytest.mark.parametrize("table", ["lake.pending", "shop.events_raw"])
def test_a_version_without_a_check_is_checked(state: State, spark: SparkSession, table: str) -> None:
    stored, before = state.document(table, "before-check"), version(table)
    assert before == stored["committed_version"] and stored["expectations"]["status"] == "not_run"
    report = nightkeep.check(table, version=before, base=stored["base_version"], spark=spark)
    assert report.status is CheckStatus.PASSED, str(report)
    (again,) = nightkeep.run(table, run_id="before-check", spark=spark).documents
    assert (again.outcome, again.expectations.status) == (Outcome.VERIFIED, CheckStatus.PASSED), again.reason
    assert again.committed_version == before == version(table)
    assert shown.rows(table) == state.expected["rows"][table]


def test_a_run_that_was_killed_after_its_commit_is_recognised(state: State, spark: SparkSession) -> None:
    table = "shop.stock"
    before = version(table)
    assert state.document(table, "after-commit")["committed_version"] is None
    (again,) = nightkeep.run(table, run_id="after-commit", spark=spark).documents
    assert (again.outcome, again.expectations.status) == (Outcome.VERIFIED, CheckStatus.PASSED), again.reason
    assert again.committed_version == before == version(table)
    assert shown.rows(table) == state.expected["rows"][table]


def test_the_next_night_ends_verified(state: State, spark: SparkSession) -> None:
    """One of all tables, after a release: what was done is not done again, and what was left is done."""
    nightkeep.release("lake.watched_held")
    tables = [part for name in state.expected["status"] for part in ("--table", name)]
    result = state.folder / "result.json"
    places = ["--policy", str(state.folder / "tables.yaml"), "--reports", str(state.reports), "--result", str(result)]
    assert run_job([*places, "--run-id-prefix", "next", *tables], operations=()) == 0
    ended = dict[str, set[str]]()
    for each in json.loads(result.read_text(encoding="utf-8")):
        ended.setdefault(each["table"], set()).add(each["outcome"])
    assert (ended.pop("lake.broken"), ended.pop("lake.foreign")) == ({"failed"}, {"refused"})
    assert set().union(*ended.values()) == {"verified", "unchanged"}, ended
    for table in ("lake.waiting", "lake.watched_held", "lake.raced", "shop.customers"):
        assert ended[table] == {"verified"}, table
