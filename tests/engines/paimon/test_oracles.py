"""What other engines see of our commits: the rows a merge showed before, and a table they can go on with."""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.drivers.history import Compact, play
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan
from tests.drivers.pypaimon_oracle import PyPaimon
from tests.drivers.random_history import random_history
from tests.formats.paimon import sabotage
from tests.formats.paimon.contents import opened
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.commit import commit
from nightkeep.formats.paimon.gate import audit
from nightkeep.formats.paimon.metadata.avro import read_container, write_container
from nightkeep.formats.paimon.metadata.own_commits import MERGED_PARENT
from nightkeep.running.rewrites import run_operation

SHOP = Path(__file__).parents[3] / "samples" / "paimon" / "shop.db"
SAMPLES = ("orders", "customers", "positions", "stock", "events_input")
GENERATED = ("history-13", "history-37", "history-42", "history-49")
MERGED = Scan(options=MERGE_ON_READ)
FILTERS = 20

Rows = list[tuple[Any, ...]]


@pytest.fixture
def table(request: pytest.FixtureRequest, paimon_java: PaimonJava, tmp_path: Path) -> Path:
    """A copy of a sample, or the end of a random history, with files on level 0."""
    name = str(request.param)
    folder = tmp_path / "shop.db" / name
    if name in SAMPLES:
        shutil.copytree(SHOP / name, folder)
        return folder
    history = random_history(int(name.removeprefix("history-")))
    paimon_java.create(folder, history.layout)
    steps = list(history.steps)
    while isinstance(steps[-1], Compact):
        steps.pop()
    play(paimon_java, folder, steps)
    return folder


every_table = pytest.mark.parametrize("table", some_extended((*SAMPLES, *GENERATED), keep=4), indirect=True)


@pytest.mark.few(1)
@every_table
def test_both_engines_read_what_a_merge_showed(table: Path, paimon_java: PaimonJava, pypaimon: PyPaimon) -> None:
    before = table.with_name("before")
    shutil.copytree(table, before)

    assert upgrade(table, full=_is_gentle(paimon_java, table)).outcome == "verified"

    scans = [Scan(), *(Scan(filter=condition) for condition in _filters(paimon_java, before))]
    whole = paimon_java.read(table)
    assert whole.raw_splits == whole.splits
    skipped = 0
    for scan in scans:
        wanted = paimon_java.read(before, Scan(filter=scan.filter, options=MERGE_ON_READ))
        found = paimon_java.read(table, scan)
        assert _sorted(found.rows) == _sorted(wanted.rows), scan.filter
        skipped += whole.files - found.files
        if not _has_wide_vectors(paimon_java, table):
            assert _sorted(pypaimon.read(table, scan).rows) == _sorted(wanted.rows), scan.filter
    assert skipped or whole.files == 1, "expected some filter to skip a file by its statistics"


@pytest.mark.few(1)
@every_table
def test_java_goes_on_after_us(table: Path, paimon_java: PaimonJava) -> None:
    paimon_java.create_tag(table, "kept", snapshot=paimon_java.snapshots(table)[-1]["id"])
    tagged = Scan(options={"scan.tag-name": "kept", **MERGE_ON_READ})
    at_tag = _sorted(paimon_java.read(table, tagged).rows)
    assert upgrade(table).outcome == "verified"
    assert paimon_java.delete_orphans(table, older_than_millis=2**52)["files"] == []

    for turn, compaction in enumerate((Compaction(), None, Compaction(full=True))):
        paimon_java.write(table, _changes(paimon_java, table, Random(turn)))
        wanted = _sorted(paimon_java.read(table, MERGED).rows)
        if compaction is None:
            assert upgrade(table).outcome in ("verified", "unchanged")
        else:
            paimon_java.compact(table, compaction)
        paimon_java.expire(table)
        paimon_java.delete_orphans(table, older_than_millis=2**52, dry_run=False)
        assert len(paimon_java.snapshots(table)) == 1
        assert _sorted(paimon_java.read(table, MERGED).rows) == wanted
    assert _sorted(paimon_java.read(table).rows) == wanted
    assert _sorted(paimon_java.read(table, tagged).rows) == at_tag


@pytest.mark.parametrize("act", [None, sabotage.state_that_it_was_made_long_ago])
def test_readers_by_the_time_of_files_see_rows_that_we_moved(
    act: sabotage.Act | None, paimon_java: PaimonJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And would not if a new file said another time, which the gate stops."""
    table = Path(shutil.copytree(SHOP / "orders", tmp_path / "orders"))
    times = [file.created_ms for unit in opened(table).snapshot().units for file in unit.files]
    # Java takes the times of files for those of its own wall clock.
    since = min(times) - 24 * 3_600_000
    recent = Scan(options={"scan.mode": "from-file-creation-time", "scan.file-creation-time-millis": str(since)})
    if act is not None:
        verify = run_operation.verify

        def damaged(opened: Any, plan: Any, rewrites: Any, candidate: Any, **options: Any) -> Any:
            verified = verify(opened, plan, rewrites, candidate, **options)
            act(sabotage.Staged(table, candidate))
            return verified

        monkeypatch.setattr(run_operation, "verify", damaged)
    assert upgrade(table, where="dt = '2026-11-01'").outcome == "verified"
    seen, every = (sorted(paimon_java.read(table, scan).rows) for scan in (recent, Scan()))
    assert (seen == every) is (act is None)


@pytest.mark.few(2)
@every_table
def test_a_snapshot_states_what_java_would_have_stated(table: Path, paimon_java: PaimonJava) -> None:
    java = table.with_name("java")
    shutil.copytree(table, java)
    full = _is_gentle(paimon_java, table)
    paimon_java.compact(java, Compaction(full=full, single_pick=True))
    assert upgrade(table, full=full).outcome == "verified"

    theirs, ours = _snapshot(paimon_java, java), _snapshot(paimon_java, table)

    # A commit that has merged manifests names its parent by its content. Readers skip properties.
    assert set(ours.pop("properties", {})) <= {MERGED_PARENT}
    assert ours.keys() == theirs.keys()
    own = {"uuid", "commitUser", "timeMillis", *(key for key in ours if "anifest" in key)}
    assert {k: v for k, v in ours.items() if k not in own} == {k: v for k, v in theirs.items() if k not in own}


def test_a_snapshot_carries_what_others_keep_in_it(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = _disjoint_files(paimon_java, tmp_path, **{"write.sequence-number-init-mode": "snapshot"})
    (table / "statistics").mkdir()
    (table / "statistics" / "stat-1").write_text(json.dumps({"snapshotId": 3, "schemaId": 0}))
    _edit_snapshot(table, watermark=1234567, statistics="stat-1", nextRowId=77)
    java = table.with_name("java")
    shutil.copytree(table, java)
    paimon_java.compact(java, Compaction(single_pick=True))

    assert upgrade(table).outcome == "verified"

    theirs, ours = _snapshot(paimon_java, java), _snapshot(paimon_java, table)
    kept = ("watermark", "statistics", "nextRowId", "properties")
    assert {key: ours[key] for key in kept} == {key: theirs[key] for key in kept}
    assert ours["properties"] == {"sequence.generation.max-sequence-number": "29"}


def test_statistics_of_an_older_schema_are_not_carried(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = _disjoint_files(paimon_java, tmp_path)
    (table / "statistics").mkdir()
    (table / "statistics" / "stat-1").write_text(json.dumps({"snapshotId": 3, "schemaId": 0}))
    _edit_snapshot(table, statistics="stat-1")
    paimon_java.alter(table, {"change": "add_column", "name": "more", "type": "INT"})

    assert upgrade(table).outcome == "verified"

    assert "statistics" not in _snapshot(paimon_java, table)
    assert _snapshot(paimon_java, table)["schemaId"] == 1


def test_a_file_upgraded_in_place_outlives_expiry(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = _disjoint_files(paimon_java, tmp_path)
    names = {file.name for file in paimon_java.files(table)}

    assert upgrade(table).outcome == "verified"
    paimon_java.write(table, [("+I", 1000, "later", None)])
    paimon_java.expire(table)

    lifted = [file for file in paimon_java.files(table) if file.level == 5]
    assert {file.name for file in lifted} == names
    assert len(paimon_java.read(table).rows) == 30


@pytest.mark.parametrize("gate", ["shut", "open"])
def test_an_upgrade_whose_last_word_is_delete(
    gate: str, paimon_java: PaimonJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Committed the other way round, the same upgrade reads well until expiry runs; hence the gate looks at it."""
    in_order = commit._entries

    def out_of_order(edit: Any) -> list[Record]:
        return list(in_order(edit))[::-1]

    monkeypatch.setattr(commit, "_entries", out_of_order)
    table = _disjoint_files(paimon_java, tmp_path)
    names = {file.name for file in paimon_java.files(table)}
    if gate == "shut":
        document = upgrade(table)
        assert document.outcome == "mismatch"
        assert "DELETE follows its ADD" in str(document.reason)
        return
    monkeypatch.setattr(audit, "_order_faults", lambda candidate: ())
    assert upgrade(table).outcome == "verified"
    assert len(paimon_java.read(table).rows) == 30

    paimon_java.write(table, [("+I", 1000, "later", None)])
    paimon_java.expire(table)

    assert {path.name for path in table.rglob("data-*")} & names == set()


def test_fields_of_newer_writers_survive_in_manifests(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = _disjoint_files(paimon_java, tmp_path)
    _add_field_everywhere(table)

    assert upgrade(table).outcome == "verified"

    snapshot = _snapshot(paimon_java, table)
    metas = [*_records(table, snapshot["baseManifestList"]), *_records(table, snapshot["deltaManifestList"])]
    entries = _records(table, metas[-1]["_FILE_NAME"])
    assert [meta["_FROM_THE_FUTURE"] for meta in metas] == ["kept"] * (len(metas) - 1) + [None]
    assert {entry["_KIND"] for entry in entries} == {0, 1}
    assert {entry["_FILE"]["_FROM_THE_FUTURE"] for entry in entries} == {"kept"}
    assert len(paimon_java.read(table).rows) == 30
    paimon_java.compact(table, Compaction(full=True))
    assert len(paimon_java.read(table).rows) == 30


def test_index_entries_of_other_kinds_and_buckets_stay(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = tmp_path / "orders"
    shutil.copytree(SHOP / "orders", table)
    name = _snapshot(paimon_java, table)["indexManifest"]
    (first, *others) = _records(table, name)
    foreign = first | {
        "_INDEX_TYPE": "HASH",
        "_FILE_NAME": "index-hash-0",
        "_FILE_SIZE": 4,
        "_ROW_COUNT": 1,
        "_DELETIONS_VECTORS_RANGES": None,
    }
    (table / "index" / "index-hash-0").write_bytes(b"\0\0\0\1")
    _rewrite(table, name, [foreign, first, *others])
    vectors = {entry["_FILE_NAME"]: entry for entry in (first, *others)}

    document = upgrade(table, where="dt = '2026-11-01'")

    assert document.outcome == "verified"
    touched = {f"{unit.partition}/bucket-{unit.bucket}" for unit in document.units}
    assert touched == {"dt=2026-11-01/bucket-0", "dt=2026-11-01/bucket-1"}
    after = _records(table, _snapshot(paimon_java, table)["indexManifest"])
    assert foreign in after
    kept = [entry for entry in after if entry["_FILE_NAME"] in vectors]
    assert kept == [vectors[entry["_FILE_NAME"]] for entry in kept]
    assert len(kept) == len(vectors) - 2
    assert len(after) == len(vectors) + 1


def test_a_vector_of_a_file_that_is_gone_is_pruned(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Compactions of Paimon up to 1.4 left such entries, which Java tolerates."""
    table = tmp_path / "events_input"
    shutil.copytree(SHOP / "events_input", table)
    paimon_java.compact(table)
    paimon_java.write(table, [("+I", 900_001, "view", 1)])
    name = _snapshot(paimon_java, table)["indexManifest"]
    (entry,) = _records(table, name)
    (stale, *_) = entry["_DELETIONS_VECTORS_RANGES"]
    ranges = [*entry["_DELETIONS_VECTORS_RANGES"], stale | {"f0": "data-long-gone-0.parquet"}]
    _rewrite(table, name, [entry | {"_DELETIONS_VECTORS_RANGES": ranges, "_ROW_COUNT": len(ranges)}])
    wanted = _sorted(paimon_java.read(table, MERGED).rows)

    assert upgrade(table).outcome == "verified"

    (vectors,) = paimon_java.vectors(table)
    assert vectors.files.keys() <= {file.name for file in paimon_java.files(table)}
    assert _sorted(paimon_java.read(table).rows) == wanted


def test_deletes_that_a_writer_did_not_count_are_found(
    paimon_java: PaimonJava, pypaimon: PyPaimon, tmp_path: Path
) -> None:
    """pypaimon 2.1.0 says of every file that it holds no delete; lifted on its word, deleted rows would come back."""
    table = tmp_path / "counted"
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true", "rowkind.field": "kind"}
    columns = [("id", "INT NOT NULL"), ("kind", "STRING")]
    paimon_java.create(table, Layout(columns=columns, primary_keys=["id"], options=options))
    paimon_java.write(table, [("+I", n, "+I") for n in range(20)])
    paimon_java.compact(table, Compaction(full=True))
    pypaimon.write(table, [("-D", 3, "-D"), ("+I", 30, "+I")])
    (fresh,) = [file for file in paimon_java.files(table) if file.level == 0]
    assert fresh.delete_rows == 0

    assert upgrade(table).outcome == "verified"

    assert sorted(row[0] for row in paimon_java.read(table).rows) == [n for n in range(20) if n != 3] + [30]


def _filters(engine: PaimonJava, table: Path) -> Iterator[Mapping[str, Any]]:
    """Conditions on keys, partitions and values, whose literals the table holds: edges of files among them."""
    random = Random(7)
    found = engine.read(table, MERGED)
    for _ in range(FILTERS):
        leaves = [_leaf(random, found.columns, found.rows) for _ in range(random.choice((1, 1, 2)))]
        one = leaves[0]
        yield one if len(leaves) == 1 else {"op": random.choice(("and", "or")), "children": leaves}


def _leaf(random: Random, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> Mapping[str, Any]:
    place = random.randrange(len(columns))
    held = [row[place] for row in rows if row[place] not in (None, "NaN")]
    op = random.choice(("eq", "lt", "le", "gt", "ge", "ne", "in", "between", "is_null", "is_not_null"))
    if not held or op.startswith("is_"):
        return {"op": "is_null" if not held else op, "field": columns[place], "values": []}
    count = {"in": 3, "between": 2}.get(op, 1)
    return {"op": op, "field": columns[place], "values": [random.choice(held) for _ in range(count)]}


def _changes(engine: PaimonJava, table: Path, random: Random) -> Rows:
    """Deletes of some rows, and others with the values of their neighbours."""
    schema = engine.schema(table)
    names = [field["name"] for field in schema["fields"]]
    fixed = {*schema["primaryKeys"], *schema["partitionKeys"]}
    rows = list(engine.read(table, MERGED).rows)
    chosen = random.sample(range(len(rows)), min(40, len(rows)))
    changes: Rows = []
    for place in chosen:
        old, other = rows[place], rows[place - 1]
        mixed = [mine if name in fixed else theirs for name, mine, theirs in zip(names, old, other, strict=True)]
        changes.append(("-D", *old) if place % 4 == 0 else ("+U", *mixed))
    return changes


def _disjoint_files(engine: PaimonJava, folder: Path, **options: str) -> Path:
    """Three level-0 files whose keys do not meet, each too large to be rewritten."""
    table = folder / "disjoint"
    given = {"bucket": "1", "deletion-vectors.enabled": "true", "write-only": "true", "target-file-size": "1 kb"}
    columns = [("id", "INT NOT NULL"), ("text", "STRING"), ("amount", "DECIMAL(10, 2)")]
    engine.create(table, Layout(columns=columns, primary_keys=["id"], options=given | options))
    for start in (0, 100, 200):
        engine.write(table, [("+I", start + n, f"text {n}", f"{n}.50") for n in range(10)])
    return table


def _snapshot(engine: PaimonJava, table: Path) -> dict[str, Any]:
    found = engine.snapshot(table)
    assert found is not None
    return found


def _edit_snapshot(table: Path, **fields: object) -> None:
    path = table / "snapshot" / f"snapshot-{(table / 'snapshot' / 'LATEST').read_text()}"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def _records(table: Path, name: str) -> list[Record]:
    return list(read_container((table / "manifest" / name).read_bytes(), subject=name).records)


def _rewrite(table: Path, name: str, records: Sequence[Record]) -> None:
    path = table / "manifest" / name
    container = read_container(path.read_bytes(), subject=name)
    path.write_bytes(write_container(records, container.schema, "zstd"))


def _add_field_everywhere(table: Path) -> None:
    """As a newer writer might have written them: one more field in every manifest list and every entry's file."""
    text = {"name": "_FROM_THE_FUTURE", "type": ["null", "string"], "default": None}
    for path in (table / "manifest").iterdir():
        container = read_container(path.read_bytes(), subject=path.name)
        schema = json.loads(json.dumps(container.schema))
        if path.name.startswith("manifest-list"):
            schema["fields"].append(text)
            records = [record | {"_FROM_THE_FUTURE": "kept"} for record in container.records]
        else:
            (file,) = (field for field in schema["fields"] if field["name"] == "_FILE")
            file["type"]["fields"].append(text)
            records = [
                record | {"_FILE": record["_FILE"] | {"_FROM_THE_FUTURE": "kept"}} for record in container.records
            ]
        path.write_bytes(write_container(records, schema, "zstd"))


def _is_gentle(engine: PaimonJava, table: Path) -> bool:
    return bool(engine.schema(table)["options"].get("lookup-compact") == "gentle")


def _has_wide_vectors(engine: PaimonJava, table: Path) -> bool:
    return "deletion-vectors.bitmap64" in engine.schema(table)["options"]


def _sorted(rows: Sequence[tuple[Any, ...]]) -> Rows:
    return sorted(rows, key=repr)
