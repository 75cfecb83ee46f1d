"""Checkpoints of ours: the actions that the log has, no other, and none that a reader could take for a finished one."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.formats.delta.checkpointed import alone, checkpointed
from tests.formats.delta.hand_log import HandLog, add, remove, vector
from tests.formats.delta.lake import Lake
from tests.formats.delta.runs import files, opened, optimize
from tests.support.faulty_store import FaultyStorage, Fuse, fail

from nightkeep.errors import CorruptMetadata, EvidenceError, NightkeepError, RefusedTable
from nightkeep.formats.delta.commit import checkpoint as commit_checkpoint
from nightkeep.formats.delta.commit.checkpoint_columns import CheckpointSchema
from nightkeep.formats.delta.deletes import z85
from nightkeep.formats.delta.metadata.replay import LogState
from nightkeep.formats.delta.upkeep import checkpointing
from nightkeep.model import Outcome
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import Retention
from nightkeep.storage import LocalStorage

NOW = 1_795_000_000_000
PLACE = z85.encode(b"0123456789abcdef")
Stored = list[tuple[str, dict[str, Any]]]


def stored(table: Path) -> Stored:
    """What the newest checkpoint holds, sidecars included, by Arrow alone."""
    log = table / "_delta_log"
    paths = [sorted(log.glob("*.checkpoint*.parquet"))[-1]]
    found: Stored = []
    for path in paths:
        for row in pq.read_table(path).to_pylist(maps_as_pydicts="strict"):
            ((kind, body),) = ((kind, body) for kind, body in row.items() if body is not None)
            if kind == "sidecar":
                paths.append(log / "_sidecars" / body["path"])
            found.append((kind, {name: value for name, value in body.items() if value is not None}))
    return found


def of_kind(table: Path, kind: str) -> list[dict[str, Any]]:
    return sorted((body for each, body in stored(table) if each == kind), key=repr)


@pytest.fixture
def log(tmp_path: Path) -> HandLog:
    """Files a to d: b removed yesterday, c ten days ago, d hidden in part; two transactions, two domains, one ended."""
    log = HandLog(tmp_path / "table")
    domain = {"domain": "mine", "configuration": "{}", "removed": False}
    log.commit(0, *log.head, *map(add, "abcd"), {"txn": {"appId": "app", "version": 1}})
    log.commit(1, removed("c", 10), {"domainMetadata": domain}, {"domainMetadata": {**domain, "domain": "other"}})
    log.commit(2, removed("b", 1, stats="{}", tags={"x": "y"}), {"domainMetadata": {**domain, "removed": True}})
    log.commit(3, removed("d", 1), add("d", deletionVector=vector(PLACE)))
    log.commit(4, {"txn": {"appId": "app", "version": 7, "lastUpdated": NOW - 3 * DAY_MS}})
    log.commit(5, {"txn": {"appId": "late", "version": 2, "lastUpdated": NOW}}, add("e", None))
    return log


def removed(name: str, days: float, **more: Any) -> Mapping[str, Any]:
    return remove(name, deletionTimestamp=int(NOW - days * DAY_MS), **more)


def test_a_checkpoint_holds_what_is_in_force(log: HandLog) -> None:
    before = log.load()
    assert checkpointed(log.folder, now_ms=NOW) is not None
    assert {
        body["path"]: body.get("deletionVector", {}).get("pathOrInlineDv") for body in of_kind(log.folder, "add")
    } == {"a": None, "d": PLACE, "e": None}
    assert [body["partitionValues"] for body in of_kind(log.folder, "add")] == [{"p": "a"}, {"p": "a"}, {"p": None}]
    tombstones = of_kind(log.folder, "remove")
    assert [body["path"] for body in tombstones] == ["b", "d"]
    assert not any(body.keys() & {"stats", "tags"} or body["dataChange"] for body in tombstones)
    assert [(body["appId"], body["version"]) for body in of_kind(log.folder, "txn")] == [("app", 7), ("late", 2)]
    assert [body["domain"] for body in of_kind(log.folder, "domainMetadata")] == ["other"]
    assert of_kind(log.folder, "metaData")[0]["schemaString"] == log.metadata["metaData"]["schemaString"]
    assert not any(body["dataChange"] for body in of_kind(log.folder, "add"))
    alone(log.folder)
    after = log.load()
    assert after.identity.content == before.identity.content
    assert (after.transactions, after.domains.keys()) == (before.transactions, before.domains.keys())


def test_transactions_expire_by_the_tables_own_retention(log: HandLog) -> None:
    configured = {
        **log.metadata["metaData"],
        "configuration": {"delta.setTransactionRetentionDuration": "interval 2 days"},
    }
    log.commit(6, {"metaData": configured})
    checkpointed(log.folder, now_ms=NOW)
    assert [body["appId"] for body in of_kind(log.folder, "txn")] == ["late"]


def test_a_checkpoint_on_top_of_one_carries_tombstones_that_are_young(log: HandLog) -> None:
    checkpointed(log.folder, now_ms=NOW)
    log.commit(6, removed("a", 0), add("f"), add("b"))
    alone(log.folder)
    assert checkpointed(log.folder, now_ms=NOW + DAY_MS) is not None
    assert [body["path"] for body in of_kind(log.folder, "remove")] == ["a", "d"]
    log.commit(7, add("g"))
    assert checkpointed(log.folder, now_ms=NOW + 8 * DAY_MS) is not None
    assert of_kind(log.folder, "remove") == []
    assert [body["path"] for body in of_kind(log.folder, "add")] == ["b", "d", "e", "f", "g"]


@pytest.mark.parametrize("actions", [1, 2, 3, 100])
def test_a_v2_checkpoint_has_sidecars_above_a_size(log: HandLog, actions: int) -> None:
    log.commit(6, {"metaData": {**log.metadata["metaData"], "configuration": {"delta.checkpointPolicy": "v2"}}})
    before = log.load()
    written = checkpointed(log.folder, now_ms=NOW, sidecar_actions=actions)
    assert written is not None and written.sidecars == {1: 5, 2: 3, 3: 2, 100: 0}[actions]
    assert [path.name[20:32] for path in log.log.glob("*.checkpoint*")] == [".checkpoint."]
    assert of_kind(log.folder, "checkpointMetadata") == [{"version": 6}]
    kinds = [kind for kind, _ in stored(log.folder)]
    assert (kinds.count("add"), kinds.count("remove"), kinds.count("sidecar")) == (3, 2, written.sidecars)
    alone(log.folder)
    assert log.load().identity.content == before.identity.content


def test_the_policy_v2_counts_only_with_its_feature(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "table", features=("deletionVectors",), configuration={"delta.checkpointPolicy": "v2"})
    log.commit(0, *log.head, add("a"))
    checkpointed(log.folder)
    assert [path.name for path in log.log.glob("*.checkpoint*")] == [f"{0:020d}.checkpoint.parquet"]


VALUES = {
    "minValues": {
        "id": 5,
        "x": -0.5,
        "d": "2024-02-29",
        "t": "2024-01-01T00:00:00.123Z",
        "n": 1.50,
        "s": "a",
        "in": {"b": 1},
    },
    "maxValues": {
        "id": 7,
        "x": "NaN",
        "d": "9999-12-31",
        "t": "2024-01-01T02:00:00.123+02:00",
        "n": 1e2,
        "s": "\u00e9",
    },
    "nullCount": {"id": 0, "x": 1, "d": 2, "t": 3, "n": 4, "s": 5, "in": {"b": 6}, "l": 7},
}
COLUMNS = {
    "id": "long",
    "x": "float",
    "d": "date",
    "t": "timestamp",
    "n": "decimal(20,2)",
    "s": "string",
    "in": {"type": "struct", "fields": [{"name": "b", "type": "byte", "nullable": True, "metadata": {}}]},
    "l": {"type": "array", "elementType": "long", "containsNull": True},
    "p": "date",
}
STRUCT = {"delta.checkpoint.writeStatsAsStruct": "true"}
NO_JSON = {"delta.checkpoint.writeStatsAsJson": "false"}


@pytest.mark.parametrize("properties", [STRUCT, {**STRUCT, **NO_JSON}])
def test_statistics_and_partition_values_in_columns_are_typed(tmp_path: Path, properties: dict[str, str]) -> None:
    log = HandLog(tmp_path / "table", columns=COLUMNS, configuration=properties)
    stats = json.dumps({"numRecords": 9, **VALUES, "tightBounds": True})
    odd = json.dumps({"numRecords": 9, "minValues": {"id": "five", "x": [], "d": "soon", "t": 5, "n": "no", "s": 1}})
    log.commit(0, *log.head, add("a", "2024-02-29", stats=stats), add("b", None, stats=odd), add("c", None, stats="{"))
    assert checkpointed(log.folder) is not None
    first, second, third = of_kind(log.folder, "add")
    assert first["partitionValues_parsed"]["p"].isoformat() == "2024-02-29"
    parsed = first["stats_parsed"]
    assert (parsed["numRecords"], parsed["tightBounds"], parsed["nullCount"]["in"]) == (9, True, {"b": 6})
    assert [str(parsed["minValues"][name]) for name in ("id", "x", "d", "n", "s", "in")] == [
        "5",
        "-0.5",
        "2024-02-29",
        "1.50",
        "a",
        "{'b': 1}",
    ]
    assert parsed["minValues"]["t"] == parsed["maxValues"]["t"] and "l" not in parsed["minValues"]
    assert set(second["stats_parsed"]["minValues"].values()) == {None} and second["stats_parsed"]["numRecords"] == 9
    assert "stats_parsed" not in third
    assert ("stats" in first) == (properties == STRUCT)


def test_row_counts_are_never_lost(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "table", configuration=NO_JSON)
    log.commit(0, *log.head, add("a"))
    with pytest.raises(RefusedTable, match="row counts"):
        checkpointed(log.folder)
    plain = HandLog(tmp_path / "plain", configuration=NO_JSON, features=())
    plain.commit(0, *plain.head, add("a"))
    assert checkpointed(plain.folder) is not None
    assert "stats" not in of_kind(plain.folder, "add")[0]


@pytest.mark.parametrize(
    ("action", "named"),
    [
        (add("b", shape="round"), "field shape"),
        (add("b", deletionVector={**vector(PLACE), "maxRowIndex": 7}), "deletionVector.maxRowIndex"),
        ({"txn": {"appId": "a", "version": 1, "by": "me"}}, "field by"),
        (add("b", tags={"x": "\ud800"}), "cannot hold"),
    ],
)
def test_what_a_checkpoint_would_lose_is_refused(log: HandLog, action: Mapping[str, Any], named: str) -> None:
    log.commit(6, action)
    before = files(log.folder)
    with pytest.raises(RefusedTable, match=named):
        checkpointed(log.folder)
    assert files(log.folder) == before


def test_a_partition_value_without_a_zone_is_in_no_column(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "table", columns={"id": "long", "p": "timestamp"}, configuration=STRUCT)
    log.commit(0, *log.head, add("a", "2024-01-01 00:00:00"))
    with pytest.raises(RefusedTable, match="names no zone"):
        checkpointed(log.folder)


def test_unknown_features_of_writers_are_refused(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "table", features=("deletionVectors", "wings"))
    log.commit(0, *log.head, add("a"))
    with pytest.raises(RefusedTable, match="wings"):
        checkpointed(log.folder)


Change = Callable[[LogState], LogState]
LIES: Mapping[str, Change] = {
    "an add is lost": lambda state: replace(state, adds=state.adds[1:]),
    "an add is another": lambda state: replace(state, adds=({**state.adds[0], "size": 101}, *state.adds[1:])),
    "a vector is lost": lambda state: replace(
        state, adds=tuple({k: v for k, v in body.items() if k != "deletionVector"} for body in state.adds)
    ),
    "statistics are another file's": lambda state: replace(
        state, adds=({**state.adds[0], "stats": '{"numRecords": 9}'}, *state.adds[1:])
    ),
    "a domain is lost": lambda state: replace(state, domains={}),
    "a property is set": lambda state: replace(
        state, metadata={**state.metadata, "configuration": {"delta.appendOnly": "true"}}
    ),
    "a feature is lost": lambda state: replace(state, protocol={**state.protocol, "writerFeatures": []}),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_staged_checkpoint_that_is_not_the_log_is_never_visible(
    log: HandLog, lie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = checkpointing.read_checkpoint_state

    def lying(*asked: Any) -> Any:
        read = honest(*asked)
        return replace(read, state=LIES[lie](read.state))

    monkeypatch.setattr(checkpointing, "read_checkpoint_state", lying)
    before = files(log.folder)
    with pytest.raises((EvidenceError, CorruptMetadata)):
        checkpointed(log.folder, now_ms=NOW)
    assert files(log.folder) == before


@pytest.mark.parametrize("name", ["removed", "transactions"])
def test_tombstones_and_transactions_are_compared_as_well(
    log: HandLog, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = checkpointing.read_checkpoint_state
    monkeypatch.setattr(checkpointing, "read_checkpoint_state", lambda *asked: replace(honest(*asked), **{name: ()}))
    with pytest.raises(EvidenceError, match="actions of the log"):
        checkpointed(log.folder, now_ms=NOW)


def test_wrong_columns_of_statistics_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = HandLog(tmp_path / "table", configuration=STRUCT)
    stats = json.dumps({"numRecords": 9, "minValues": {"id": 3}, "maxValues": {"id": 5}, "nullCount": {"id": 0}})
    log.commit(0, *log.head, add("a", stats=stats))
    honest = CheckpointSchema._adds

    def lying(self: CheckpointSchema, columns: Any, values: Any, spelling: Any) -> Any:
        columns = {**columns, "stats": pa.array([stats.replace("3", "4")])}
        return honest(self, columns, values, spelling)

    monkeypatch.setattr(CheckpointSchema, "_adds", lying)
    with pytest.raises(EvidenceError):
        checkpointed(log.folder)
    monkeypatch.setattr(
        CheckpointSchema,
        "_adds",
        lambda self, columns, values, spelling: _other_stats(honest(self, columns, values, spelling)),
    )
    with pytest.raises(EvidenceError, match="in columns"):
        checkpointed(log.folder)


def _other_stats(adds: Any) -> Any:
    columns = {field.name: adds.field(field.name) for field in adds.type}
    (parsed,) = columns["stats_parsed"].to_pylist()
    parsed["minValues"]["id"] = 4
    columns["stats_parsed"] = pa.array([parsed], columns["stats_parsed"].type)
    return pa.StructArray.from_arrays([*columns.values()], fields=list(adds.type))


def test_the_hint_names_the_checkpoint_and_never_moves_back(log: HandLog) -> None:
    assert checkpointed(log.folder, now_ms=NOW, version=3) is not None
    hint = json.loads((log.log / "_last_checkpoint").read_text())
    path = log.log / f"{3:020d}.checkpoint.parquet"
    assert hint["version"] == 3 and hint["numOfAddFiles"] == 2 and hint["sizeInBytes"] == path.stat().st_size
    assert hint["size"] == pq.ParquetFile(path).metadata.num_rows
    assert checkpointed(log.folder, now_ms=NOW) is not None
    newest = (log.log / "_last_checkpoint").read_bytes()
    assert json.loads(newest)["version"] == 5
    assert checkpointed(log.folder, now_ms=NOW, version=4) is not None
    assert (log.log / "_last_checkpoint").read_bytes() == newest


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": "9"}', b'{"version": 4}'])
def test_a_damaged_hint_is_replaced(log: HandLog, content: bytes) -> None:
    (log.log / "_last_checkpoint").write_bytes(content)
    checkpointed(log.folder, now_ms=NOW)
    assert json.loads((log.log / "_last_checkpoint").read_text())["version"] == 5


def test_the_hints_checksum_is_the_protocols() -> None:
    text = commit_checkpoint.hint_text({"version": 7, "size": 3, "sizeInBytes": 10, "numOfAddFiles": 1})
    # md5 of '"numOfAddFiles"=1,"size"=3,"sizeInBytes"=10,"version"=7'
    assert json.loads(text)["checksum"] == "bc7ff02f70c819b00493e86d8d65a58d"


@dataclass(frozen=True)
class _Neighbour(LocalStorage):
    """A store beside which another checkpointer is quicker."""

    first: Callable[[str], None] = lambda name: None

    def put_if_absent(self, name: str, data: bytes, **how: Any) -> bool:
        self.first(name)
        return LocalStorage.put_if_absent(self, name, data, **how)


def test_a_second_checkpointer_is_first(log: HandLog) -> None:
    def theirs(name: str) -> None:
        shutil.copytree(log.log, log.folder / "copy" / "_delta_log")
        checkpointed(log.folder / "copy", now_ms=NOW + 7 * DAY_MS)
        os.replace(log.folder / "copy" / name, log.folder / name)
        shutil.rmtree(log.folder / "copy")

    store = _Neighbour(str(log.folder), first=theirs)
    assert checkpointed(log.folder, storage=store, now_ms=NOW) is None
    assert sorted(path.name for path in log.log.iterdir() if path.suffix != ".json") == [f"{5:020d}.checkpoint.parquet"]
    assert not list(log.log.glob(".*"))
    assert checkpointed(log.folder, now_ms=NOW) is None


def test_a_version_that_is_replaced_meanwhile_gets_no_checkpoint(log: HandLog) -> None:
    def replaced(name: str) -> None:
        log.commit(5, add("z"))

    store = _Neighbour(str(log.folder), first=replaced)
    assert checkpointed(log.folder, storage=store, now_ms=NOW) is None
    assert not list(log.log.glob("*.parquet"))


def points(log: HandLog) -> Iterator[tuple[int, Path]]:
    """A copy of the log for each point of the writes of a checkpoint, and its number."""
    clean = Fuse()
    copy = Path(shutil.copytree(log.folder, log.folder.parent / "clean"))
    checkpointed(copy, storage=FaultyStorage(str(copy), clean), now_ms=NOW, sidecar_actions=2)
    assert {point.step for point in clean.passed} == {"create", "link", "rename", "delete"}
    for at in range(1, len(clean.passed) + 1):
        yield at, Path(shutil.copytree(log.folder, log.folder.parent / f"copy-{at}"))


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_every_write_fails_once(log: HandLog, policy: str) -> None:
    log.commit(6, {"metaData": {**log.metadata["metaData"], "configuration": {"delta.checkpointPolicy": policy}}})
    content = log.load().identity.content
    for at, table in points(log):
        store = FaultyStorage(str(table), Fuse(at, fail))
        with suppress(OSError, NightkeepError):
            checkpointed(table, storage=store, now_ms=NOW, sidecar_actions=2)
        snapshot = opened(table).snapshot()
        assert (snapshot.version, snapshot.identity.content) == (6, content)
        hint = table / "_delta_log/_last_checkpoint"
        if hint.exists():
            assert json.loads(hint.read_text())["version"] == 6
            assert list((table / "_delta_log").glob("*.checkpoint*.parquet"))
        log_of_7 = HandLog(table)
        log_of_7.commit(7, add("y"))
        assert checkpointed(table, now_ms=NOW) is not None
        alone(table)
        assert {file.path for unit in opened(table).snapshot().units for file in unit.files} == {"a", "d", "e", "y"}


def test_a_checkpoint_keeps_the_doubt_about_its_log(log: HandLog) -> None:
    """A commit without a statement may have lost lines: a sweep of the table must go on refusing."""
    checkpointed(log.folder, now_ms=NOW)
    alone(log.folder)
    (log.log / "_last_checkpoint").unlink()
    table = opened(log.folder).retention
    assert table is not None
    (root,) = (root for root in table.roots(Retention(NOW, 0)) if root.version == 5)
    assert [each.subject for each in table.reach(root).unproven] == [f"_delta_log/{5:020d}.checkpoint.parquet"]
    log.commit(6, add("f"))
    checkpointed(log.folder, now_ms=NOW)
    alone(log.folder)
    (root,) = (root for root in table.roots(Retention(NOW, 0)) if root.version == 6)
    assert [each.subject for each in table.reach(root).unproven] == [f"_delta_log/{6:020d}.checkpoint.parquet"]


def grown(tmp_path: Path, commits: int, **properties: str) -> Lake:
    lake = Lake(tmp_path / "lake", pa.schema([("id", pa.int64())]), properties=properties)
    for number in range(commits):
        lake.append(pa.table({"id": [number]}))
    return lake


@pytest.mark.parametrize(
    ("commits", "properties", "written"),
    [
        (8, {}, True),
        (7, {}, False),
        (2, {"delta.checkpointInterval": "3"}, True),
        (20, {"delta.checkpointInterval": "50"}, False),
    ],
)
def test_a_commit_of_ours_is_followed_by_a_checkpoint_where_the_interval_says_so(
    tmp_path: Path, commits: int, properties: dict[str, str], written: bool
) -> None:
    lake = grown(tmp_path, commits, **properties)
    rows = lake.rows()
    document = optimize(lake.folder)
    version = commits + 1
    assert (document.outcome, document.committed_version) == (Outcome.VERIFIED, version)
    assert ("log_note" in document.extra) == written
    names = [path.name for path in (lake.folder / "_delta_log").glob("*.checkpoint*")]
    assert names == [f"{version:020d}.checkpoint.parquet"] * written
    if written:
        assert str(document.extra["log_note"]).startswith(f"wrote a checkpoint of version {version}: ")
        alone(lake.folder)
    assert lake.rows() == rows


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"delta.checkpointInterval": "often"}, "delta.checkpointInterval"),
        ({"delta.deletedFileRetentionDuration": "soon"}, "delta.deletedFileRetentionDuration"),
        ({"delta.checkpoint.writeStatsAsJson": "false"}, "row counts"),
    ],
)
def test_a_commit_stays_published_where_no_checkpoint_can_be_written(
    tmp_path: Path, properties: dict[str, str], why: str
) -> None:
    lake = grown(tmp_path, 9, **properties)
    document = optimize(lake.folder)
    assert (document.outcome, document.committed_version) == (Outcome.VERIFIED, 10)
    note = str(document.extra["log_note"])
    assert note.startswith("no checkpoint of version 10 was written: ") and why in note
    assert not list((lake.folder / "_delta_log").glob("*.checkpoint*"))
