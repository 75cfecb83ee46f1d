"""What keeps files of a Delta table alive, by logs written line by line: against a replay of every action in turn."""

import json
import os
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.delta.hand_log import HandLog, add, remove, vector
from tests.formats.delta.hand_made import two_days
from tests.formats.delta.runs import opened

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.delta.deletes import z85
from nightkeep.formats.delta.retention.horizon import tombstone_retention_ms
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import OpenFiles, Retention, Root, refuse_changes

NOW = 1_795_000_000_000
OLD = NOW - 30 * DAY_MS
WEEK = Retention(NOW, 7 * DAY_MS)
UUID = b"0123456789abcdef"
NAME = "deletion_vector_30313233-3435-3637-3839-616263646566.bin"
PLACE = z85.encode(UUID)

Told = dict[str, bool]
"""Names below the log apart, and whether readers need them."""


def told(table: OpenFiles, roots: Iterable[Root]) -> Told:
    found: Told = {}
    for root in roots:
        reach = table.reach(pickle.loads(pickle.dumps(root)))
        batches = reach.files.to_batches()
        for source in reach.sources:
            assert hash(source) == hash(pickle.loads(pickle.dumps(source)))
            batches += table.live(source)
        for row in (row for batch in batches for row in batch.to_pylist()):
            if not row["name"].startswith("_delta_log/"):
                found[row["name"]] = found.get(row["name"], False) or row["needed"]
    return found


def live(log: HandLog, retention: Retention = WEEK) -> Told:
    table = opened(log.folder).retention
    return told(table, table.roots(retention))


def made(log: HandLog, version: int, *actions: Mapping[str, Any], at_ms: int = OLD) -> None:
    """A commit of a time, which its file shows as well."""
    path = log.commit(version, {"commitInfo": {"timestamp": at_ms}}, *actions)
    os.utime(path, ns=(at_ms * 1_000_000,) * 2)


@pytest.fixture
def log(tmp_path: Path) -> HandLog:
    return HandLog(tmp_path / "table")


def gone(path: str, at_ms: int = OLD, **more: Any) -> dict[str, Any]:
    return dict(remove(path, deletionTimestamp=at_ms, **more))


def test_files_of_the_newest_version_are_needed_and_late_tombstones_protected(log: HandLog) -> None:
    made(log, 0, *log.head, add("a"), add("b"), add("c"))
    made(log, 1, gone("a"), at_ms=OLD)
    made(log, 2, gone("b", NOW - DAY_MS), at_ms=NOW - DAY_MS)
    assert live(log) == {"c": True, "b": False}


@pytest.mark.parametrize("says", ["its action", "its commit", "its file"])
def test_a_tombstone_is_as_late_as_whatever_reports_the_latest_time(log: HandLog, says: str) -> None:
    made(log, 0, *log.head, add("a"), add("b"))
    late = NOW - DAY_MS
    path = log.commit(
        1,
        {"commitInfo": {"timestamp": late if says == "its commit" else OLD}},
        gone("a", late if says == "its action" else OLD),
    )
    shown = late if says == "its file" else NOW - 7 * DAY_MS - 1
    os.utime(path, ns=(shown * 1_000_000,) * 2)
    assert live(log) == {"b": True, "a": False}


def test_a_longer_retention_of_the_table_or_of_the_caller_holds(log: HandLog) -> None:
    log.configuration = {"delta.deletedFileRetentionDuration": "interval 14 days"}
    made(log, 0, *log.head, add("a"))
    made(log, 1, gone("a", NOW - 10 * DAY_MS), at_ms=NOW - 10 * DAY_MS)
    assert live(log) == {"a": False}
    assert live(log, Retention(NOW, 20 * DAY_MS)) == {"a": False}
    log.configuration = {}
    made(log, 2, log.metadata)
    assert live(log) == {}
    assert live(log, Retention(NOW, 20 * DAY_MS)) == {"a": False}


def test_vectors_live_as_long_as_the_actions_that_name_them(log: HandLog) -> None:
    made(log, 0, *log.head, add("a"), add("b"), add("c"))
    first, inline = vector("Ab" + PLACE), {**vector("x"), "storageType": "i", "offset": None}
    made(log, 1, gone("a"), add("a", deletionVector=first), gone("b"), add("b", deletionVector=inline))
    assert live(log) == {"a": True, "b": True, "c": True, f"Ab/{NAME}": True}
    # One of two files that share a .bin goes; the other keeps it.
    made(log, 2, gone("c"), add("c", deletionVector={**first, "offset": 60}))
    made(log, 3, gone("a", deletionVector=first))
    assert live(log) == {"b": True, "c": True, f"Ab/{NAME}": True}
    made(log, 4, gone("c", NOW, deletionVector={**first, "offset": 60}), at_ms=NOW)
    assert live(log) == {"b": True, "c": False, f"Ab/{NAME}": False}


def test_an_absolute_vector_is_kept_however_the_folder_is_called(log: HandLog) -> None:
    place = f"file:///elsewhere/a%20table/{NAME}"
    made(log, 0, *log.head, add("a", deletionVector={**vector(place), "storageType": "p"}))
    found = live(log)
    assert {"a": True, NAME: False, f"a table/{NAME}": False}.items() <= found.items()


def test_an_absolute_live_file_is_refused_and_an_absolute_tombstone_kept(log: HandLog) -> None:
    made(log, 0, *log.head, add("a"))
    made(log, 1, gone(f"file:{log.folder}/p=x%20y/b", NOW), at_ms=NOW)
    assert live(log)["p=x y/b"] is False
    made(log, 2, add("s3://bucket/table/c"))
    with pytest.raises(RefusedTable, match="shallow clone"):
        live(log)


def test_paths_are_decoded_once(log: HandLog) -> None:
    made(log, 0, *log.head, add("p=a%20b%252F0/part%C3%BC"))
    assert live(log) == {"p=a b%2F0/part\u00fc": True}


def test_change_files_of_late_commits_are_protected(log: HandLog) -> None:
    made(log, 0, *log.head, {"cdc": {"path": "_change_data/old", "size": 1, "partitionValues": {}}})
    made(log, 1, {"cdc": {"path": "_change_data/new%20er", "size": 1, "partitionValues": {}}}, at_ms=NOW - DAY_MS)
    made(log, 2, at_ms=NOW - DAY_MS)
    assert live(log) == {"_change_data/new er": False}


def test_files_of_versions_to_be_kept_are_protected_whatever_their_age(log: HandLog) -> None:
    made(log, 0, *log.head, add("a"), add("b", deletionVector=vector(PLACE)))
    made(log, 1, gone("b", deletionVector=vector(PLACE)))
    made(log, 2, gone("a"), add("c"))
    assert live(log) == {"c": True}
    assert live(log, Retention(NOW, 0, frozenset({1}))) == {"c": True, "a": False}
    assert live(log, Retention(NOW, 0, frozenset({0, 2, 99}))) == {"c": True, "a": False, "b": False, NAME: False}


def test_files_of_a_checkpoint_are_needed_by_the_newest_version_and_protected_for_one_that_is_kept(
    log: HandLog,
) -> None:
    made(log, 0, *log.head, add("a"), add("b"))
    log.single(0, [*log.head, add("a"), add("b")])
    made(log, 1, gone("a"))
    assert live(log, Retention(NOW, 0, frozenset({0}))) == {"a": False, "b": True}


def test_a_commit_is_a_new_root_and_takes_none_away(log: HandLog) -> None:
    made(log, 0, *log.head, add("a"))
    made(log, 1, add("b"))
    table = opened(log.folder).retention
    before = table.roots(WEEK)
    seen = told(table, before)
    made(log, 2, gone("a"), add("c"), at_ms=NOW)
    made(log, 3, gone("c", NOW), add("d"), at_ms=NOW)
    after = table.roots(WEEK)
    assert {root.id for root in before} < {root.id for root in after}
    fresh = [root for root in after if root.id not in {root.id for root in before}]
    assert seen | told(table, fresh) == {"a": False, "b": True, "c": False, "d": True}
    assert [root.version for root in after] == [None, 1, 2, 3]


def test_a_commit_that_was_replaced_is_another_root(log: HandLog) -> None:
    made(log, 0, *log.head, add("a"))
    before = opened(log.folder).retention.roots(WEEK)
    made(log, 0, *log.head, add("b"), at_ms=OLD + 1)
    assert not {root.id for root in before} & {root.id for root in opened(log.folder).retention.roots(WEEK)}


@pytest.mark.parametrize("feature", ["catalogManaged", "coordinatedCommits-preview", "adaptiveMetadata-preview"])
def test_a_table_that_others_must_keep_is_refused(log: HandLog, feature: str) -> None:
    log.features = (*log.features, feature)
    log.configuration = {"delta.coordinatedCommits.commitCoordinator-preview": "dynamodb"}
    made(log, 0, *log.head, add("a"))
    for look in (lambda table: table.roots(WEEK), lambda table: table.table_files()):
        with pytest.raises(RefusedTable, match=feature):
            look(opened(log.folder).retention)


@pytest.mark.parametrize("feature", ["redirectWriterOnly-preview", "later"])
def test_files_of_a_table_whose_writers_must_know_more_are_listed_only(log: HandLog, feature: str) -> None:
    log.features = (*log.features, feature)
    log.configuration = {"delta.redirectWriterOnly-preview": "{}"}
    made(log, 0, *log.head, add("a"))
    table = opened(log.folder).retention
    assert table.roots(WEEK)
    with pytest.raises(RefusedTable, match=feature):
        refuse_changes(table.table_files())


def test_a_damaged_or_broken_log_shows_nothing(log: HandLog) -> None:
    made(log, 0, *log.head, add("a"))
    made(log, 2, add("b"))
    with pytest.raises(MissingFile, match=r"00000000000000000001\.json"):
        opened(log.folder).retention.roots(WEEK)
    log.lines(1, '{"add": {"path": "c"')
    table = opened(log.folder).retention
    with pytest.raises(CorruptMetadata):
        told(table, table.roots(WEEK))
    log.lines(1, json.dumps(add("../c")))
    with pytest.raises(CorruptMetadata):
        told(table, table.roots(WEEK))


def test_versions_that_can_be_read_are_reported(tmp_path: Path) -> None:
    made_table = two_days(tmp_path / "events")
    table = opened(made_table.folder).retention
    roots = table.roots(Retention(NOW, 7 * DAY_MS))
    assert [root.version for root in roots] == list(range(made_table.version + 1))
    assert told(table, roots[-1:]).keys() >= {add["path"].replace("%20", " ") for add in made_table.live().values()}


# ---- any log, against a replay of every action in turn ----

PATHS, PLACES = "abcd", (None, PLACE, "Zz" + PLACE)
Step = tuple[str, str | None, bool]
"""A path, the vector it gets (or that it is removed, where there is no such), whether the commit is late."""
steps = st.lists(
    st.tuples(st.sampled_from(PATHS), st.sampled_from((*PLACES, "remove")), st.booleans()), min_size=1, max_size=12
)


@given(
    steps=steps, checkpoints=st.sets(st.integers(0, 12), max_size=2), form=st.sampled_from(["single", "parts", "v2"])
)
def test_any_log_with_any_checkpoints_keeps_what_a_plain_replay_keeps(
    steps: list[Step], checkpoints: set[int], form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = HandLog(tmp_path_factory.mktemp("log") / "table")
    made(log, 0, *log.head)
    state: dict[str, str | None] = {}
    tombstones: dict[tuple[str, str | None], dict[str, Any]] = {}
    kept: Told = {}
    steps = sorted(steps, key=lambda step: step[2])
    for version, (path, place, late) in enumerate(steps, start=1):
        at_ms, actions, old = NOW - DAY_MS if late else OLD, [], state.get(path, "none")
        if old not in ("none", place):
            tombstones[path, old] = gone(path, at_ms, **descriptor(state.pop(path)))
            actions.append(tombstones[path, old])
            kept |= dict.fromkeys((path, *named(old)), False) if late else {}
        if place not in (old, "remove"):
            state[path] = place
            tombstones.pop((path, place), None)
            actions.append(add(path, **descriptor(place)))
        made(log, version, *actions, at_ms=at_ms)
        if version in checkpoints:
            # Without tombstones, the checkpoints of a state that comes back would be copies of each other.
            write_checkpoint(log, version, state, form, tombstones.values())
    kept |= {name: True for path, place in state.items() for name in (path, *named(place))}
    assert live(log) == kept


def descriptor(place: str | None) -> dict[str, Any]:
    return {"deletionVector": vector(place)} if place else {}


def named(place: str | None) -> tuple[str, ...]:
    return () if place is None else (NAME,) if place == PLACE else (f"Zz/{NAME}",)


def write_checkpoint(
    log: HandLog, version: int, state: Mapping[str, str | None], form: str, tombstones: Iterable[dict[str, Any]] = ()
) -> None:
    files = [add(path, **descriptor(place)) for path, place in state.items()]
    actions = [*log.head, *files, *tombstones]
    if form == "single":
        log.single(version, actions)
    elif form == "parts":
        log.parts(version, actions, 2)
    else:
        log.unique(version, actions, suffix="json" if version % 2 else "parquet", sidecars=version % 3)


def test_tombstones_of_a_checkpoint_outlive_their_commits(log: HandLog) -> None:
    """Commits before it may be gone from the log."""
    log.log.mkdir(parents=True)
    log.single(5, [*log.head, add("a"), gone("b", NOW - DAY_MS), gone("c", OLD)])
    made(log, 5, add("a"))
    made(log, 6, add("d"), gone("a"))
    assert live(log) == {"d": True, "b": False}


# ---- intervals ----


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("interval 1 week", 168.0),
        ("7 days", 168.0),
        ("INTERVAL 168 HOURS", 168.0),
        ("interval 1 day 2 hours", 26.0),
        ("interval 1 day -2 hours", 22.0),
        ("interval 90 minutes", 1.5),
        ("interval 0 hours", 0.0),
        ("interval 1.5 seconds", 1.5 / 3600),
    ],
)
def test_intervals_are_read_as_spark_reads_them(text: str, hours: float) -> None:
    told = tombstone_retention_ms({"configuration": {"delta.deletedFileRetentionDuration": text}})
    assert told == round(hours * 3_600_000)
    assert tombstone_retention_ms({}) == 168 * 3_600_000


@pytest.mark.parametrize("text", ["", "soon", "interval 1 month", "interval -1 day", "1 day or so"])
def test_what_is_no_interval_stops_everything(text: str) -> None:
    with pytest.raises(CorruptMetadata, match="deletedFileRetentionDuration"):
        tombstone_retention_ms({"configuration": {"delta.deletedFileRetentionDuration": text}})
