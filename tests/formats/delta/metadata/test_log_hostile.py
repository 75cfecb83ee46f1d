"""Any bytes in a log read as a version or as evidence, by name: never as another exception."""

import json
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.delta.hand_log import HandLog, add, vector
from tests.support.examples import examples

from nightkeep.errors import CorruptMetadata, EvidenceError, MissingFile, RefusedTable
from nightkeep.formats.delta.metadata.actions import parse_lines
from nightkeep.formats.delta.metadata.snapshot import load
from nightkeep.model import Address
from nightkeep.storage import LocalStorage

GOLDEN = Path(__file__).parents[3] / "golden" / "delta"
STEP = 97


@pytest.fixture
def log(tmp_path: Path) -> HandLog:
    hand = HandLog(tmp_path)
    hand.commit(0, *hand.head)
    return hand


def line(**fields: object) -> str:
    return json.dumps({"add": {**add("x")["add"], **fields}})


LINES = {
    "garbage": "garbage",
    "a truncated object": '{"add":{"path":"x"',
    "a text": '"add"',
    "a list": "[]",
    "null": "null",
    "a number": "17",
    "two actions": '{"add":{"path":"x","partitionValues":{},"size":1},"remove":{"path":"y"}}',
    "an action that is no object": '{"add":[1]}',
    "a text for an action": '{"remove":"x"}',
    "no path": '{"add":{"partitionValues":{},"size":1}}',
    "no partition values": '{"add":{"path":"x","size":1}}',
    "no size": '{"add":{"path":"x","partitionValues":{}}}',
    "a path of the wrong type": line(path=1),
    "a size of the wrong type": line(size="100"),
    "a fractional size": line(size=1.5),
    "true for a size": line(size=True),
    "a size that no long holds": line(size=1 << 63),
    "a negative size": line(size=-1),
    "a number too long to read": '{"add":{"path":"x","partitionValues":{},"size":' + "9" * 5000 + "}}",
    "a row id that no long holds": line(baseRowId=-(1 << 63) - 1),
    "partition values of numbers": line(partitionValues={"p": 1}),
    "partition values in a list": line(partitionValues=["p"]),
    "values of no partition column": line(partitionValues={"p": "a", "q": "b"}),
    "tags that are no map": line(tags="a"),
    "statistics that are no text": line(stats={"numRecords": 1}),
    "a vector of more rows than the file": line(deletionVector=vector("v", 11)),
    "a vector that is no object": line(deletionVector="v"),
    "a vector without place": line(deletionVector={"storageType": "u", "sizeInBytes": 1, "cardinality": 1}),
    "a vector of an unknown kind": line(deletionVector={**vector("v"), "storageType": "x"}),
    "a vector of negative size": line(deletionVector={**vector("v"), "sizeInBytes": -1}),
    "a vector far out": line(deletionVector={**vector("v"), "offset": 1 << 31}),
    "an inline vector with an offset": line(deletionVector={**vector("v"), "storageType": "i"}),
    "a name twice": '{"add":{"path":"x","path":"y","partitionValues":{},"size":1}}',
    "an action twice in a line": '{"add":{"path":"x","partitionValues":{},"size":1},"add":null}',
    "NaN": '{"add":{"path":"x","partitionValues":{},"size":NaN}}',
    "infinity": '{"commitInfo":{"x":-Infinity}}',
    "deep nesting": '{"commitInfo":' + '{"x":' * 100_000 + "1" + "}" * 100_000 + "}",
    "deep lists": '{"commitInfo":{"x":' + "[" * 100_000 + "]" * 100_000 + "}}",
    "a NUL byte": '{"add":{"path":"x\0","partitionValues":{},"size":1}}',
    "an escaped NUL in a path": line(path="x\0"),
    "a NUL line": "\0",
    "half a surrogate in a path": line(path="x\ud800"),
    "a byte order mark": "\ufeff" + line(),
    "no metadata": '{"metaData":{"id":"x"}}',
    "a configuration of numbers": '{"metaData":{"schemaString":"{}","configuration":{"x":1}}}',
    "partition columns of numbers": '{"metaData":{"schemaString":"{}","partitionColumns":[1]}}',
    "a schema that is no JSON": '{"metaData":{"schemaString":"struct"}}',
    "a schema that is no struct": '{"metaData":{"schemaString":"{}"}}',
    "a schema nested deep": json.dumps({"metaData": {"schemaString": '{"type":' * 100_000}}),
    "a protocol without versions": '{"protocol":{}}',
    "a protocol of texts": '{"protocol":{"minReaderVersion":"1","minWriterVersion":"2"}}',
    "a negative protocol": '{"protocol":{"minReaderVersion":-1,"minWriterVersion":2}}',
    "a protocol without its lists": '{"protocol":{"minReaderVersion":3,"minWriterVersion":7}}',
    "features of numbers": '{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":[1]}}',
    "a transaction without application": '{"txn":{"version":1}}',
    "a domain without name": '{"domainMetadata":{"configuration":"","removed":false}}',
    "a mark that is no JSON": '{"domainMetadata":{"domain":"delta.rowTracking","configuration":"x"}}',
    "a mark that is no number": '{"domainMetadata":{"domain":"delta.rowTracking","configuration":"{}"}}',
}


UNKNOWN = {
    "statistics that are no JSON": "{",
    "statistics that are no object": "[1]",
    "statistics nested deep": "[" * 100_000,
    "a count of rows as text": '{"numRecords":"1"}',
    "a fractional count of rows": '{"numRecords":1.5}',
    "a whole count with a point": '{"numRecords":1.0}',
    "a negative count of rows": '{"numRecords":-1}',
    "a count that no long holds": '{"numRecords":' + "9" * 30 + "}",
}


@pytest.mark.parametrize("stats", UNKNOWN.values(), ids=UNKNOWN)
def test_statistics_are_optional_and_those_of_no_sense_state_nothing(log: HandLog, stats: str) -> None:
    log.lines(1, line(stats=stats), json.dumps(add("y", stats='{"numRecords":4}')))
    files = log.load().units[0].files
    assert sorted((file.path, file.rows) for file in files) == [("x", None), ("y", 4)]


@pytest.mark.parametrize("text", LINES.values(), ids=LINES)
def test_a_line_that_cannot_be_is_evidence(log: HandLog, text: str) -> None:
    log.commit(1, add("y"))
    log.lines(2, text)
    assert log.load(1).version == 1
    with pytest.raises(CorruptMetadata):
        log.load()


def test_a_bad_line_is_named(log: HandLog) -> None:
    log.lines(1, json.dumps(add("x")), json.dumps(add("y")), "garbage")
    with pytest.raises(CorruptMetadata, match=rf"{1:020d}\.json, line 3: expected a JSON object, found 7 characters: "):
        log.load()


@pytest.mark.parametrize("depth", [50, 200, 300, 400, 450, 480, 600, 900, 950, 10_000])
def test_no_depth_is_more_than_evidence(tmp_path: Path, depth: int) -> None:
    kind = '{"type":"array","containsNull":true,"elementType":' * depth + '"long"' + "}" * depth
    field = '{"name":"c","nullable":true,"metadata":{},"type":' + kind + "}"
    schema = json.dumps('{"type":"struct","fields":[' + field + "]}")
    lists = "[" * depth + "]" * depth
    for number, text in enumerate(
        (
            f'{{"metaData":{{"schemaString":{schema}}}}}',
            f'{{"add":{lists}}}',
            f'{{"add":{{"path":{lists}}}}}',
            f'{{"add":{{"path":"x","size":1,"partitionValues":{{}},"future":{lists}}}}}',
            f'{{"future":{lists}}}',
            f'{{"metaData":{{"schemaString":{json.dumps(lists)}}}}}',
            line(stats=f'{{"numRecords":{lists}}}'),
            line(stats=f'{{"numRecords":1,"future":{lists}}}'),
        )
    ):
        log = HandLog(tmp_path / str(number))
        log.commit(0, *log.head)
        log.lines(1, text)
        try:
            assert log.load().version == 1
        except CorruptMetadata as failure:
            assert len(str(failure)) < 2000


def test_bytes_that_are_no_text_are_evidence(log: HandLog) -> None:
    for data in (b"\xff\xfe{}", json.dumps(add("x")).encode("utf-16"), b'{"add":"\xe9"}', b"\x80"):
        (log.log / f"{1:020d}.json").write_bytes(data)
        with pytest.raises(CorruptMetadata):
            log.load()


def test_versions_beyond_any_number_are_missing_commits(log: HandLog) -> None:
    (log.log / f"{10**20 - 1}.json").write_text("")
    (log.log / f"{7:020d}.checkpoint.{1:010d}.{10**10 - 1}.parquet").write_text("x")
    with pytest.raises(MissingFile, match=f"{1:020d}.json"):
        log.load()


NAMES = ("path", "partitionValues", "size", "stats", "deletionVector", "tags", "schemaString", "configuration", "p")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=examples(150), deadline=None)
@given(kind=st.sampled_from(["add", "remove", "metaData", "protocol", "txn", "domainMetadata", "cdc"]), body=JSON)
def test_any_action_reads_or_is_evidence(tmp_path_factory: pytest.TempPathFactory, kind: str, body: object) -> None:
    log = HandLog(tmp_path_factory.mktemp("log"))
    log.commit(0, *log.head)
    log.lines(1, json.dumps({kind: body}))
    try:
        assert log.load().version == 1
    except (EvidenceError, RefusedTable):
        assert log.load(0).version == 0


@given(st.binary(max_size=60))
def test_any_bytes_parse_or_are_evidence(data: bytes) -> None:
    try:
        list(parse_lines(data, subject="x"))
    except CorruptMetadata as failure:
        assert str(failure).startswith("x")


# Checkpoints: those that delta-spark wrote, cut and scribbled on

CHECKPOINTS = ("checkpoint_v1", "checkpoint_v1_struct", "checkpoint_v2_parquet", "checkpoint_v2_json")


def checkpointed(name: str, folder: Path) -> tuple[LocalStorage, list[Path]]:
    """A copy of a golden table whose first commits are gone, and the files of its checkpoint."""
    table = folder / name
    shutil.copytree(GOLDEN / name / "table", table)
    log = table / "_delta_log"
    version = int(next(log.glob("*.checkpoint.*")).name[:20])
    for commit in log.glob("[0-9]*.json"):
        if ".checkpoint." not in commit.name and int(commit.stem) < version:
            commit.unlink()
    return LocalStorage(str(table)), [*log.glob("*.checkpoint.*"), *log.glob("_sidecars/*")]


def read(storage: LocalStorage) -> int:
    return len(load(Address("delta", storage.root, "golden"), storage).units)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_cut_anywhere_is_evidence(tmp_path: Path, name: str) -> None:
    storage, files = checkpointed(name, tmp_path)
    assert read(storage)
    for file in files:
        whole = file.read_bytes()
        for end in range(1, len(whole) - 1, STEP):
            file.write_bytes(whole[:end])
            with pytest.raises(EvidenceError):
                read(storage)
        file.write_bytes(whole)
    assert read(storage)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_checkpoint_with_a_wrong_byte_reads_or_is_evidence(tmp_path: Path, name: str) -> None:
    storage, files = checkpointed(name, tmp_path)
    draw = random.Random(0)
    evidence = 0
    for file in files:
        whole = file.read_bytes()
        for _ in range(40):
            scribbled = bytearray(whole)
            scribbled[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
            file.write_bytes(scribbled)
            try:
                read(storage)
            except (EvidenceError, RefusedTable):
                evidence += 1
        file.write_bytes(whole)
    assert evidence


def test_a_checkpoint_that_is_another_file_is_evidence(log: HandLog) -> None:
    for data in (b"PAR1", b"not Parquet", b"PAR1" + bytes(100) + b"PAR1"):
        (log.log / f"{0:020d}.checkpoint.parquet").write_bytes(data)
        with pytest.raises(CorruptMetadata, match=r"checkpoint\.parquet"):
            log.load()


def test_a_data_file_is_no_checkpoint(log: HandLog) -> None:
    data = next((GOLDEN / "append_only/table").glob("*.parquet"))
    shutil.copy(data, log.log / f"{0:020d}.checkpoint.parquet")
    with pytest.raises(CorruptMetadata, match="a protocol action"):
        log.load()


def test_a_checkpoint_states_each_thing_once(log: HandLog) -> None:
    for twice in (add("x"), log.protocol, log.metadata, {"txn": {"appId": "a", "version": 1}}):
        log.single(0, [*log.head, add("x"), {"txn": {"appId": "a", "version": 1}}, twice])
        with pytest.raises(CorruptMetadata, match="expected once, found twice"):
            log.load()


def test_a_missing_sidecar_is_missing(log: HandLog) -> None:
    log.unique(0, [*log.head, add("x"), add("y")], suffix="json", sidecars=2)
    next(log.log.glob("_sidecars/*")).unlink()
    with pytest.raises(MissingFile, match="_sidecars"):
        log.load()


def test_a_sidecar_of_another_size_is_evidence(log: HandLog) -> None:
    log.unique(0, [*log.head, add("x")], suffix="parquet", sidecars=1)
    (own,) = log.log.glob("_sidecars/*")
    other = log.log / "_sidecars" / log.sidecar([add("x"), add("y"), add("z", tags={"a": "b" * 99})])["path"]
    shutil.move(other, own)
    with pytest.raises(CorruptMetadata, match="_sidecars"):
        log.load()


@pytest.mark.parametrize(
    "path",
    ["/other/_delta_log/_sidecars/x.parquet", "s3://b/_delta_log/_sidecars/x.parquet", "../x.parquet", "a/x.parquet"],
)
def test_a_sidecar_of_another_table_is_refused(log: HandLog, path: str) -> None:
    _v2(log, {"sidecar": {"path": path, "sizeInBytes": 1}})
    with pytest.raises(RefusedTable, match="sidecar outside"):
        log.load()


@pytest.mark.parametrize("path", ["", "..", "x", "x%00.parquet", "%2e%2e"])
def test_a_sidecar_that_no_file_can_be_is_evidence(log: HandLog, path: str) -> None:
    _v2(log, {"sidecar": {"path": path, "sizeInBytes": 1}})
    with pytest.raises(CorruptMetadata, match="sidecar"):
        log.load()


def test_a_v2_checkpoint_describes_itself(log: HandLog) -> None:
    name = f"{0:020d}.checkpoint.{'a' * 36}.json"
    for told in ([], [{"checkpointMetadata": {"version": 1}}], [{"checkpointMetadata": {"version": 0}}] * 2):
        log.commit(0, *log.head, *told, name=name)
        with pytest.raises(CorruptMetadata, match="checkpointMetadata"):
            log.load()


def test_files_are_in_a_checkpoint_or_beside_it(log: HandLog) -> None:
    (log.log / "_sidecars").mkdir()
    _v2(log, add("x"), {"sidecar": log.sidecar([add("y")])})
    with pytest.raises(CorruptMetadata, match="files in both"):
        log.load()


def _v2(log: HandLog, *actions: dict[str, object]) -> None:
    described = {"checkpointMetadata": {"version": 0}}
    log.commit(0, *log.head, described, *actions, name=f"{0:020d}.checkpoint.{'a' * 36}.json")
