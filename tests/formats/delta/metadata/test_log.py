"""What a version is made of: the log segment, replay, checkpoints of every kind, staged commits."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.drivers.lakes_oracle import Lakes
from tests.formats.delta.hand_log import Action, HandLog, add, live, remove, vector
from tests.support.examples import examples

from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.delta.metadata import checkpoints, live_files
from nightkeep.formats.delta.metadata.actions import line, parse_lines
from nightkeep.formats.delta.metadata.locations import log_path, storage_name
from nightkeep.formats.delta.metadata.log_segment import newest
from nightkeep.formats.delta.metadata.log_state import commit_infos
from nightkeep.formats.delta.metadata.snapshot import load, load_staged
from nightkeep.model import Address
from nightkeep.storage import LocalStorage

GOLDEN = Path(__file__).parents[3] / "golden" / "delta"


@pytest.fixture
def log(tmp_path: Path) -> HandLog:
    hand = HandLog(tmp_path)
    hand.commit(0, *hand.head)
    return hand


def paths(log: HandLog, version: int | None = None) -> list[str]:
    return sorted(path for path, _ in live(log.load(version)))


# Which files make a version


def test_every_version_that_the_log_holds_can_be_read(log: HandLog) -> None:
    log.commit(1, add("x"))
    log.commit(2, add("y"), remove("x"))
    assert [paths(log, version) for version in range(3)] == [[], ["x"], ["y"]]
    assert newest(LocalStorage(str(log.folder))) == log.load().version == 2


@pytest.mark.parametrize("version", [-1, 3, 10**30])
def test_a_version_that_the_log_does_not_hold_is_missing(log: HandLog, version: int) -> None:
    log.commit(1, add("x"))
    with pytest.raises(MissingFile, match=f"expected version {version}, found versions 0 to 1"):
        log.load(version)


def test_a_folder_without_log_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="_delta_log: expected commits"):
        HandLog(tmp_path).load()
    with pytest.raises(MissingFile):
        newest(LocalStorage(str(tmp_path)))


def test_a_gap_in_the_commits_is_found_by_its_number(log: HandLog) -> None:
    log.commit(1, add("x"))
    log.commit(3, add("y"))
    with pytest.raises(MissingFile, match=rf"expected commit {2:020d}\.json"):
        log.load()
    assert paths(log, 1) == ["x"]


def test_a_log_that_starts_late_needs_a_checkpoint(log: HandLog) -> None:
    log.commit(1, add("x"))
    log.commit(2, add("y"))
    (log.log / f"{0:020d}.json").unlink()
    with pytest.raises(MissingFile, match=rf"expected commit {0:020d}\.json"):
        log.load()
    log.single(1, [*log.head, add("x")])
    (log.log / f"{1:020d}.json").unlink()
    assert paths(log) == ["x", "y"] and paths(log, 1) == ["x"]
    with pytest.raises(MissingFile, match="expected version 0, found versions 1 to 2"):
        log.load(0)


def test_the_newest_complete_checkpoint_is_read_and_no_older_one(log: HandLog) -> None:
    for version in range(1, 5):
        log.commit(version, add(f"from commit {version}"))
    log.single(1, [*log.head, add("checkpoint 1")])
    log.single(3, [*log.head, add("checkpoint 3")])
    assert paths(log) == ["checkpoint 3", "from commit 4"]
    assert paths(log, 2) == ["checkpoint 1", "from commit 2"]


def test_a_checkpoint_with_a_part_missing_does_not_count(log: HandLog) -> None:
    log.commit(1, add("x"))
    log.commit(2, add("y"))
    log.single(1, [*log.head, add("checkpoint 1")])
    parts = log.parts(2, [*log.head, add("checkpoint 2"), add("other")], 3)
    assert paths(log) == ["checkpoint 2", "other"]
    parts[1].unlink()
    assert paths(log) == ["checkpoint 1", "y"]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 1 << 16])
def test_statistics_in_columns_serve_from_the_first_file_without_text(
    log: HandLog, batch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "_BATCH_ROWS", batch_rows)
    log.commit(1, add("x"))
    log.single(1, [*log.head, *(add(name, stats=text) for name, text in zip("abcde", TEXTS, strict=True))])
    path = log.log / f"{1:020d}.checkpoint.parquet"
    table = pq.read_table(path)
    adds = table.column("add").combine_chunks()
    fields = {field.name: adds.field(field.name) for field in adds.type}
    counts = pa.array([{"numRecords": n - len(log.head)} for n in range(len(adds))])
    parsed = pa.StructArray.from_arrays([*fields.values(), counts], [*fields, "stats_parsed"], mask=adds.is_null())
    pq.write_table(table.set_column(table.column_names.index("add"), "add", parsed), path)
    assert {file.path: file.rows for unit in log.load().units for file in unit.files} == {
        "a": 10,
        "b": 11,
        "c": 2,
        "d": 13,
        "e": 4,
    }


TEXTS = ['{"numRecords":10}', '{"numRecords":11}', None, '{"numRecords":13}', None]


def test_a_version_is_identified_alike_however_many_files_are_listed_at_once(
    log: HandLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.commit(1, *(add(name) for name in "abcde"))
    whole = log.load().identity
    for files in (1, 2, 5):
        monkeypatch.setattr(live_files, "_LISTED_FILES", files)
        assert log.load().identity == whole


def test_an_empty_checkpoint_file_does_not_count(log: HandLog) -> None:
    log.commit(1, add("x"))
    (log.log / f"{1:020d}.checkpoint.parquet").touch()
    assert paths(log) == ["x"]


@pytest.mark.parametrize(
    "hint", ['{"version":1,"size":3}', '{"version":9,"size":3}', '{"version":"x"}', "{", "", "\0", "[" * 5000]
)
def test_the_hint_decides_nothing(log: HandLog, hint: str) -> None:
    log.commit(1, add("x"))
    log.commit(2, add("y"))
    log.single(2, [*log.head, add("x"), add("y")])
    (log.log / "_last_checkpoint").write_text(hint)
    assert paths(log) == ["x", "y"] and paths(log, 1) == ["x"]


def test_what_else_is_in_the_log_is_passed_over(log: HandLog) -> None:
    log.commit(1, add("x"))
    lies = json.dumps(add("lie"))
    for name in (
        f"{0:020d}.{1:020d}.compacted.json",
        f"{1:020d}.crc",
        f".{1:020d}.json.crc",
        "2.json",
        f"{2:020d}.json.tmp",
        f"{2:020d}.checkpoint.json",
        ".staged-nk-1.json",
        f"{2:021d}.json",
        "_commits",
        f"{3:020d}.00000.json",
    ):
        (log.log / name).write_text(lies)
    (log.log / "_staged_commits").mkdir()
    (log.log / "_staged_commits" / f"{2:020d}.{'a' * 36}.json").write_text(lies)
    assert log.load().version == 1 and paths(log) == ["x"]


def test_the_log_is_listed_once(log: HandLog) -> None:
    listed: list[str] = []

    class Listing(LocalStorage):
        def list(self, folder: str) -> Any:
            listed.append(folder)
            return LocalStorage.list(self, folder)

    log.single(0, log.head)
    log.commit(1, add("x"))
    load(Address("delta", "", "hand"), Listing(str(log.folder)))
    assert listed == ["_delta_log"]


# Replay


def test_the_newest_action_of_a_file_and_vector_wins(log: HandLog) -> None:
    log.commit(1, add("x", tags={"n": "1"}), add("y"))
    log.commit(2, add("x", tags={"n": "2"}))
    log.commit(3, remove("x", deletionVector=vector("v")), remove("never added"))
    assert live(log.load()) == {("x", None): add("x", tags={"n": "2"})["add"], ("y", None): add("y")["add"]}
    log.commit(4, add("x", deletionVector=vector("w")), remove("x"))
    assert set(live(log.load())) == {("x", "uw@1"), ("y", None)}
    (file, _) = (file for unit in log.load().units for file in unit.files)
    assert file.vector and (file.vector.place, file.vector.rows, file.rows) == ("w", 1, 10)


def test_the_order_within_a_commit_means_nothing(log: HandLog) -> None:
    log.commit(1, add("x"))
    log.commit(2, remove("x"), add("x", deletionVector=vector("v")))
    log.commit(3, add("x", deletionVector=vector("w")), remove("x", deletionVector=vector("v")))
    assert set(live(log.load(2))) == {("x", "uv@1")} and set(live(log.load(3))) == {("x", "uw@1")}


def test_two_live_vectors_of_one_file_are_no_version(log: HandLog) -> None:
    """Every reader would show its rows twice, as after a remove that forgot the vector."""
    log.commit(1, add("x", deletionVector=vector("v")))
    log.commit(2, remove("x"), add("x", deletionVector=vector("w")))
    with pytest.raises(CorruptMetadata, match="data file x: expected one live version"):
        log.load()


def test_two_spellings_of_one_path_are_no_version(log: HandLog) -> None:
    log.commit(1, add("a%20b"), add("a b"))
    with pytest.raises(CorruptMetadata, match="one spelling"):
        log.load()


@pytest.mark.parametrize(
    "actions",
    [
        [add("x"), add("x")],
        [add("x"), add("x", deletionVector=vector("v"))],
        [remove("x"), remove("x", deletionVector=vector("v"))],
        [add("x"), remove("x")],
        [{"txn": {"appId": "a", "version": 1}}, {"txn": {"appId": "a", "version": 2}}],
        [{"domainMetadata": {"domain": "d", "configuration": "", "removed": flag}} for flag in (True, False)],
        [HandLog(Path()).protocol, HandLog(Path()).protocol],
        [HandLog(Path()).metadata, HandLog(Path()).metadata],
    ],
)
def test_a_commit_holds_one_action_of_a_kind_and_name(log: HandLog, actions: list[Action]) -> None:
    log.commit(1, *actions)
    with pytest.raises(CorruptMetadata, match=f"{1:020d}.json"):
        log.load()


@pytest.mark.parametrize("kind", ["protocol", "metaData"])
def test_a_table_has_a_protocol_and_metadata(tmp_path: Path, kind: str) -> None:
    hand = HandLog(tmp_path)
    hand.commit(0, *(action for action in hand.head if kind not in action))
    with pytest.raises(CorruptMetadata, match=f"expected a {kind} action"):
        hand.load()


def test_applications_and_domains_keep_their_latest_word(log: HandLog) -> None:
    def domain(name: str, text: str, *, removed: bool = False) -> Action:
        return {"domainMetadata": {"domain": name, "configuration": text, "removed": removed}}

    log.commit(1, {"txn": {"appId": "a", "version": 5}}, domain("x", "1"), domain("y", "no JSON"))
    log.commit(2, {"txn": {"appId": "a", "version": 3}}, domain("x", "1", removed=True))
    log.commit(3, domain("delta.rowTracking", '{"rowIdHighWaterMark":41}'))
    snapshot = log.load()
    assert snapshot.transactions == {"a": 3}
    assert set(snapshot.domains) == {"y", "delta.rowTracking"}
    assert snapshot.domains["y"]["configuration"] == "no JSON"
    assert (snapshot.row_id_high_water_mark, log.load(2).row_id_high_water_mark) == (41, None)


def test_unknown_actions_and_fields_pass_and_fields_are_kept(log: HandLog) -> None:
    action = add("x", future={"a": [1, None]}, clusteringProvider="liquid", defaultRowCommitVersion=1, baseRowId=7)
    log.lines(1, "", json.dumps(action) + "\r", '{"futureAction":[1]}', '{"add":null,"futureAction":{}}', "  ")
    assert live(log.load()) == {("x", None): action["add"]}


def test_a_partition_that_this_commit_emptied_is_still_a_unit(log: HandLog) -> None:
    log.commit(1, add("x", "a"), add("y", "b"))
    log.commit(2, remove("x"))
    log.commit(3, add("z", "b"))
    assert [(str(u.key), len(u.files)) for u in log.load(2).units] == [("p=a", 0), ("p=b", 1)]
    assert [(str(u.key), len(u.files)) for u in log.load(3).units] == [("p=b", 2)]
    log.commit(4, remove("y", partitionValues={"p": "b"}), remove("z", partitionValues={"p": "b"}))
    log.single(4, log.head)
    assert [(str(u.key), len(u.files)) for u in log.load().units] == [("p=b", 0)]


def test_a_commit_that_repartitions_empties_no_unit(log: HandLog) -> None:
    log.commit(1, add("x", "a"))
    other = HandLog(log.folder, columns={"id": "long", "q": "integer"}, partition_columns=["q"])
    moved = add("y", partitionValues={"q": "7"})
    log.commit(2, other.metadata, remove("x", partitionValues={"p": "a"}), moved)
    assert [str(unit.key) for unit in log.load().units] == ["q=7"]
    log.single(2, [*other.head, moved])
    assert [str(unit.key) for unit in log.load().units] == ["q=7"]


@given(st.dictionaries(st.text(max_size=3), st.text(max_size=5)))
def test_an_action_survives_its_line(tags: dict[str, str]) -> None:
    body = add("caf\u00e9/\ud800", tags=tags)["add"]
    written = line("add", body).encode()
    assert b"\n" not in written and list(parse_lines(written, subject="x")) == [("add", body)]


def test_files_without_count_have_no_rows(log: HandLog) -> None:
    log.commit(1, add("w", stats=None), add("x", stats='{"minValues":{"id":NaN}}'), add("y", stats='{"numRecords":0}'))
    assert [file.rows for unit in log.load().units for file in unit.files] == [None, None, 0]


# Commits


def test_a_versions_own_commit_info_is_kept_and_no_other(log: HandLog) -> None:
    log.commit(1, {"commitInfo": {"operation": "ONE"}}, add("x"))
    log.commit(2, add("y"), {"commitInfo": {"operation": "TWO", "n": 1.5}})
    assert log.load(2).commit_info == {"operation": "TWO", "n": 1.5} and log.load(0).commit_info == {}
    log.single(2, [*log.head, add("x"), add("y")])
    assert log.load(2).commit_info["operation"] == "TWO"
    storage = LocalStorage(str(log.folder))
    assert [(version, info["operation"]) for version, info in commit_infos(storage)] == [(2, "TWO"), (1, "ONE")]


def test_an_in_commit_timestamp_comes_first_in_its_commit(tmp_path: Path) -> None:
    enabled = {"delta.enableInCommitTimestamps": "true"}
    hand = HandLog(tmp_path, configuration=enabled, features=["inCommitTimestamp"])
    info = {"commitInfo": {"inCommitTimestamp": 123}}
    hand.commit(0, info, *hand.head)
    hand.commit(1, add("x"), info)
    hand.commit(2, {"commitInfo": {"inCommitTimestamp": "124"}})
    hand.commit(3, info)
    assert hand.load(0).in_commit_timestamp == 123
    with pytest.raises(CorruptMetadata, match="version 1: expected commitInfo as its first action, found add"):
        hand.load(1)
    with pytest.raises(CorruptMetadata, match="version 2: expected inCommitTimestamp of type long"):
        hand.load(2)
    hand.single(3, hand.head)
    assert hand.load(3).in_commit_timestamp == 123
    (hand.log / f"{3:020d}.json").unlink()
    with pytest.raises(MissingFile, match="version 3"):
        hand.load()
    other = HandLog(tmp_path / "other", configuration=enabled, features=[])
    other.commit(0, *other.head)
    assert other.load().in_commit_timestamp is None


def test_a_staged_commit_is_the_next_version(log: HandLog) -> None:
    log.commit(1, add("x"))
    staged = log.commit(2, {"commitInfo": {"operation": "OPTIMIZE"}}, remove("x"), add("y"), name=".staged-nk-a.json")
    storage, address = LocalStorage(str(log.folder)), Address("delta", "", "hand")
    candidate = load_staged(address, storage, 1, f"_delta_log/{staged.name}")
    assert (candidate.version, set(live(candidate))) == (2, {("y", None)})
    assert [kind for kind, _ in candidate.actions] == ["commitInfo", "remove", "add"]
    assert log.load().version == 1 and log.load().actions == ()
    staged.rename(log.log / f"{2:020d}.json")
    assert (live(log.load()), log.load().commit_info) == (live(candidate), candidate.commit_info)
    with pytest.raises(MissingFile):
        load_staged(address, storage, 1, f"_delta_log/{staged.name}")


# Paths


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("p=a%20b%252F0/part-0.parquet", "p=a b%2F0/part-0.parquet"),
        ("p=50%25/x", "p=50%/x"),
        ("a b/x", "a b/x"),
        ("caf\u00e9/x", "caf\u00e9/x"),
        ("caf%C3%A9/x", "caf\u00e9/x"),
        ("a%3Ab", "a:b"),
        ("100%", "100%"),
    ],
)
def test_paths_are_decoded_once(path: str, name: str) -> None:
    assert storage_name(path, "/t") == name


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_any_name_survives_the_log(name: str) -> None:
    parts = name.split("/")
    if not {"", ".", ".."} & set(parts):
        assert log_path(name).isascii() and storage_name(log_path(name), "/t") == name


@pytest.mark.parametrize("path", ["/data/x", "s3://bucket/x", "file:/data/x", "file:///data/x", "C:/x", "a:b"])
def test_a_path_outside_the_table_is_refused(log: HandLog, path: str) -> None:
    log.commit(1, add(path))
    with pytest.raises(RefusedTable, match="outside the table's folder"):
        log.load()


@pytest.mark.parametrize("path", ["", "../x", "a/../../x", "a//b", "%2e%2e/x", "x%00", "%ff", "\ud800", "a?b", "a#b"])
def test_a_path_that_no_file_can_have_is_corrupt(log: HandLog, path: str) -> None:
    log.commit(1, add(path))
    with pytest.raises(CorruptMetadata):
        log.load()


# Checkpoints

Write = Callable[[HandLog, int, list[Action]], object]
KINDS: dict[str, Write] = {
    "single": lambda log, version, actions: log.single(version, actions),
    "parts": lambda log, version, actions: log.parts(version, actions, 3),
    "json": lambda log, version, actions: log.unique(version, actions, suffix="json", sidecars=0),
    "json with sidecars": lambda log, version, actions: log.unique(version, actions, suffix="json", sidecars=2),
    "parquet": lambda log, version, actions: log.unique(version, actions, suffix="parquet", sidecars=0),
    "parquet with sidecars": lambda log, version, actions: log.unique(version, actions, suffix="parquet", sidecars=2),
}
FULL = add("full%20path", None, tags={"nightkeep.clustering": "{}"}, deletionVector=vector("place"), baseRowId=3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_states_what_its_commits_stated(log: HandLog, kind: str) -> None:
    domain = {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}
    said = [FULL, add("y", "b", stats=None), {"txn": {"appId": "a", "version": 5}}, domain]
    log.commit(1, *said)
    log.commit(2, remove("y"))
    by_commits = log.load(1)
    KINDS[kind](log, 1, [*log.head, *said, remove("gone")])
    (log.log / f"{0:020d}.json").unlink()
    by_checkpoint = log.load(1)
    assert list(live(by_checkpoint).values()) == list(live(by_commits).values())
    for name in ("schema", "transactions", "domains", "raw_protocol", "raw_metadata", "commit_info"):
        assert getattr(by_checkpoint, name) == getattr(by_commits, name), name
    assert set(live(log.load(2))) == {("full%20path", "uplace@1")}


def test_a_classic_checkpoint_may_have_sidecars(log: HandLog) -> None:
    beside = log.unique(0, [*log.head, add("x")], suffix="parquet", sidecars=1)
    beside.rename(log.log / f"{0:020d}.checkpoint.parquet")
    (log.log / f"{0:020d}.json").unlink()
    assert paths(log) == ["x"]


def test_a_sidecar_may_be_named_by_its_path(log: HandLog) -> None:
    (log.log / "_sidecars").mkdir(parents=True)
    sidecar = log.sidecar([add("x")])
    head = [*log.head, {"checkpointMetadata": {"version": 0}}]
    for folder in ("", "_sidecars/", "_delta_log/_sidecars/", f"file:{log.log}/_sidecars/"):
        told = {**sidecar, "path": f"{folder}{sidecar['path']}"}
        log.commit(0, *head, {"sidecar": told}, name=f"{0:020d}.checkpoint.{'a' * 36}.json")
        assert paths(log) == ["x"]


EVENTS = st.lists(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["add", "remove", "mark"])), max_size=4), max_size=8
)


@settings(max_examples=examples(40), deadline=None)
@given(events=EVENTS, checkpoints=st.lists(st.tuples(st.integers(0, 8), st.sampled_from(sorted(KINDS))), max_size=3))
def test_replay_is_that_of_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory, events: list[list[tuple[str, str]]], checkpoints: list[tuple[int, str]]
) -> None:
    """Whatever is checkpointed and how: the twin is a dictionary of adds by path."""
    log = HandLog(tmp_path_factory.mktemp("log"))
    log.commit(0, *log.head)
    twin: dict[str, Action] = {}
    states = [dict(twin)]
    for version, commit in enumerate(events, start=1):
        log.commit(
            version, *(action for path, event in dict(commit).items() for action in step(twin, path, event, version))
        )
        states.append(dict(twin))
    for version, kind in checkpoints:
        if version < len(states):
            KINDS[kind](log, version, [*log.head, *states[version].values()])
    for version, state in enumerate(states):
        found = {path: raw for (path, _), raw in live(log.load(version)).items()}
        assert found == {path: action["add"] for path, action in state.items()}


def step(twin: dict[str, Action], path: str, event: str, version: int) -> list[Action]:
    """What a commit says of one path: a file added, added again, given another vector, or removed."""
    old = twin.pop(path, None)
    if event == "add":
        twin[path] = {"add": {**old["add"], "tags": {"again": str(version)}}} if old else add(path, path)
        return [twin[path]]
    marked = old["add"].get("deletionVector") if old else None
    actions = [remove(path, **({"deletionVector": marked} if marked else {}))] if old else []
    if event == "mark":
        twin[path] = add(path, path, deletionVector=vector(f"v{version}"))
        actions.append(twin[path])
    return actions


def test_statistics_in_columns_are_those_that_the_commits_had() -> None:
    """Written by delta-spark: statistics as structs, their JSON null."""
    storage, address = LocalStorage(str(GOLDEN / "checkpoint_v1_struct/table")), Address("delta", "", "golden")
    by_checkpoint = load(address, storage, 2)
    told = {}
    for version in (1, 2):
        for text in storage.read(f"_delta_log/{version:020d}.json").splitlines():
            action = json.loads(text).get("add")
            told |= {action["path"]: json.loads(action["stats"])} if action else {}
    files = [file for unit in by_checkpoint.units for file in unit.files]
    assert len(files) == 3
    for file in files:
        assert file.stats and file.rows == told[file.path]["numRecords"]
        expected = {k: v for k, v in told[file.path].items() if k != "tightBounds"}
        found = json.loads(file.stats)
        assert {k: v for k, v in found.items() if k != "tightBounds"} == expected


def test_a_checkpoint_of_delta_rs_states_what_its_commits_stated(tmp_path: Path, lakes: Lakes) -> None:
    """Another writer's columns, without those that it has no use for."""
    table = tmp_path / "table"
    moment = datetime(2026, 11, 1, 6, 7, 8, 9, tzinfo=UTC)
    rows = {"id": [1, 2, 3], "p": ["a b/0", "50%", None], "at": [moment, None, moment]}
    data = pa.table(rows, pa.schema({"id": pa.int64(), "p": pa.string(), "at": pa.timestamp("us", "UTC")}))
    for _ in range(3):
        lakes.delta_rs_append(table, data, partition_by=("p",))
    lakes.delta_rs_delete(table, "id = 2")
    storage, address = LocalStorage(str(table)), Address("delta", "", "rs")
    by_commits = load(address, storage)
    lakes.delta_rs_checkpoint(table)
    for commit in (table / "_delta_log").glob("[0-9]*.json"):
        if int(commit.stem) < by_commits.version:
            commit.unlink()
    by_checkpoint = load(address, storage)
    assert [str(unit.key) for unit in by_checkpoint.units] == ["p=50%25", "p=a b%2F0", "p=null"]
    assert [len(unit.files) for unit in by_checkpoint.units] == [0, 3, 3]
    for unit in by_checkpoint.units:
        assert unit.files == by_commits.by_key[unit.key].files
        assert all((table / file.name).is_file() for file in unit.files)
