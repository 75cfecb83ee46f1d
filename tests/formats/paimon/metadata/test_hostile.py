"""Bytes that are not what they claim to be, and tables that ask for what we do not do: a named end, nothing touched."""

import json
import random
import shutil
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Writer
from tests.formats.paimon.contents import SAMPLES, contents, files, opened
from tests.formats.paimon.upgrade import upgrade

from nightkeep.encodings.avro_container import Record
from nightkeep.formats.paimon.metadata.avro import read_container, write_container
from nightkeep.model import Outcome
from nightkeep.records import RunDocument

Damage = Callable[[bytes], bytes]
Change = Callable[[list[Record]], object]

DAMAGES: dict[str, Damage] = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "noise": lambda data: random.Random(1).randbytes(len(data)),
}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "events_input", tmp_path / "events_input"))


def assert_evidence(table: Path, before: Mapping[str, bytes], *names: str) -> None:
    """An upgrade fails, says where, what was expected and what was found, and leaves every byte as it was."""
    document = upgrade(table)
    assert document.outcome is Outcome.FAILED, document.reason
    assert document.committed_version is None
    assert document.reason is not None
    assert document.reason.split(":")[0] in ("CorruptMetadata", "MissingFile")
    for word in ("expected", "found", *names):
        assert word in document.reason
    _assert_untouched(table, before)


def _assert_untouched(table: Path, before: Mapping[str, bytes]) -> None:
    after = files(table)
    assert {name: after.get(name) for name in before} == before
    # What a run has written before it met the damage is its own and unreferenced.
    assert all("nk-" in name for name in after.keys() - before.keys())


def parts(table: Path) -> dict[str, str]:
    """One file of each kind that the latest version of `orders` needs."""
    snapshot = opened(table).snapshot()
    bucket = snapshot.units[0]
    return {
        "schema": "schema/schema-0",
        "snapshot": f"snapshot/snapshot-{snapshot.version}",
        "base manifest list": f"manifest/{snapshot.raw['baseManifestList']}",
        "delta manifest list": f"manifest/{snapshot.raw['deltaManifestList']}",
        "manifest": f"manifest/{snapshot.delta_manifests[0]['_FILE_NAME']}",
        "index manifest": f"manifest/{snapshot.raw['indexManifest']}",
        "vectors": f"index/{bucket.index_files[0]}",
        "level-0 file": bucket.path(next(file for file in bucket.files if file.level == 0)),
        "top file": bucket.path(next(file for file in bucket.files if file.level == 5)),
    }


KINDS = (
    "schema",
    "snapshot",
    "base manifest list",
    "delta manifest list",
    "manifest",
    "index manifest",
    "vectors",
    "level-0 file",
    "top file",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_bytes_are_named(orders: Path, kind: str, damage: str) -> None:
    name = parts(orders)[kind]
    path = orders / name
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert_evidence(orders, files(orders), Path(name).name)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_files_are_named(orders: Path, kind: str) -> None:
    name = parts(orders)[kind]
    (orders / name).unlink()
    assert_evidence(orders, files(orders), "schema" if kind == "schema" else Path(name).name)


@pytest.mark.parametrize("kind", ["level-0 file", "top file", "vectors"])
def test_a_flipped_bit_in_any_part_of_a_file_is_not_compacted_away(orders: Path, kind: str) -> None:
    """Pages and vectors carry checksums; what they cover is most of a file, and all of its rows."""
    whole = contents(orders).merged
    path = orders / parts(orders)[kind]
    data = path.read_bytes()
    for place in range(8, len(data), len(data) // 12):
        flipped = bytearray(data)
        flipped[place] ^= 1
        path.write_bytes(flipped)
        before, document = files(orders), upgrade(orders, where="dt = '2026-11-01'")
        if document.outcome is Outcome.VERIFIED:
            assert contents(orders).merged == whole
            return
        assert document.outcome in (Outcome.FAILED, Outcome.REFUSED), document.reason
        _assert_untouched(orders, before)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", 8),
        ("id", "7"),
        ("id", None),
        ("id", True),
        ("schemaId", []),
        ("baseManifestList", 5),
        ("baseManifestList", "../../outside"),
        ("deltaManifestList", "no-such-list"),
        ("commitKind", None),
        ("timeMillis", "now"),
        ("totalRecordCount", None),
        ("indexManifest", "no-such-index"),
    ],
)
def test_a_snapshot_of_impossible_fields_is_evidence(orders: Path, field: str, value: object) -> None:
    _say(orders / "snapshot/snapshot-7", **{field: value})
    assert_evidence(orders, files(orders))


def test_json_without_end_is_evidence(orders: Path) -> None:
    (orders / "snapshot/snapshot-7").write_text("[" * 200_000)
    assert_evidence(orders, files(orders), "snapshot-7")


def test_a_manifest_list_in_the_place_of_a_manifest_is_evidence(orders: Path) -> None:
    """Both are of version 2."""
    named = parts(orders)
    shutil.copy(orders / named["base manifest list"], orders / named["manifest"])
    assert_evidence(orders, files(orders), Path(named["manifest"]).name)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("_ROW_COUNT", 10**15),
        ("_ROW_COUNT", -1),
        ("_FILE_SIZE", -1),
        ("_LEVEL", 2**31 - 1),
        ("_LEVEL", -1),
        ("_MIN_KEY", b""),
        ("_MIN_KEY", b"\0\0\0\1" + b"\xff" * 16),
        ("_FILE_NAME", "../../../../outside.parquet"),
        ("_FILE_NAME", "/etc/passwd"),
        ("_SCHEMA_ID", 99),
    ],
)
def test_an_entry_of_an_absurd_file_is_evidence(orders: Path, field: str, value: object) -> None:
    def absurd(entries: list[Record]) -> None:
        entries[0]["_FILE"][field] = value

    _edit(orders / parts(orders)["manifest"], absurd)
    assert_evidence(orders, files(orders))


@pytest.mark.parametrize("change", ["twice added", "never added"])
def test_entries_that_contradict_each_other_are_evidence(orders: Path, change: str) -> None:
    def contradict(entries: list[Record]) -> None:
        entries.append(entries[0] if change == "twice added" else {**entries[0], "_KIND": 1, "_BUCKET": 77})

    named = parts(orders)
    path = orders / named["manifest"]
    _edit(path, contradict)
    counts = {"_NUM_ADDED_FILES": 0, "_NUM_DELETED_FILES": 0}
    for entry in read_container(path.read_bytes(), subject="").records:
        counts["_NUM_DELETED_FILES" if entry["_KIND"] else "_NUM_ADDED_FILES"] += 1
    _edit(orders / named["delta manifest list"], lambda metas: metas[0].update(counts))
    assert_evidence(orders, files(orders), "expected a new file" if change == "twice added" else "expected a live file")


def test_a_manifest_that_lost_entries_is_evidence(orders: Path) -> None:
    """Cut between two blocks, it is a file of fewer records like any other."""
    _edit(orders / parts(orders)["manifest"], lambda entries: entries.pop())
    assert_evidence(orders, files(orders), "added and deleted entries")


def test_a_manifest_that_a_list_lost_is_found_by_the_count_of_rows(orders: Path) -> None:
    _edit(orders / parts(orders)["delta manifest list"], lambda metas: metas.pop())
    before, document = files(orders), upgrade(orders)
    assert document.outcome is Outcome.MISMATCH
    assert document.reason is not None and "totalRecordCount" in document.reason
    _assert_untouched(orders, before)


@pytest.mark.parametrize(
    "change",
    [
        lambda records: records.append(records[0]),
        lambda records: records[0].update(_KIND=1),
        lambda records: records[0]["_DELETIONS_VECTORS_RANGES"][0].update(f1=2**30),
        lambda records: records[0]["_DELETIONS_VECTORS_RANGES"][0].update(f2=1),
        lambda records: records[0]["_DELETIONS_VECTORS_RANGES"][0].update(_CARDINALITY=1),
        lambda records: records[0].update(_FILE_NAME="../../outside"),
    ],
    ids=["two vector files", "a removed one", "offset", "length", "cardinality", "name"],
)
def test_an_index_entry_that_cannot_be_is_evidence(orders: Path, change: Change) -> None:
    _edit(orders / parts(orders)["index manifest"], change)
    assert_evidence(orders, files(orders))


def test_a_vanished_newest_snapshot_is_not_replaced(orders: Path) -> None:
    """A commit on top of the one before it would hide what was lost."""
    (orders / "snapshot/snapshot-7").unlink()
    assert_evidence(orders, files(orders), "snapshot-7 or a newer one", "up to snapshot-6")


def test_keys_out_of_order_below_are_evidence(orders: Path) -> None:
    """A lookup by search would miss keys: their old rows would come back."""
    path = orders / parts(orders)["top file"]
    rows = pq.read_table(path)
    pq.write_table(rows.take([1, 0, *range(2, rows.num_rows)]), path, store_schema=False, store_decimal_as_integer=True)
    assert_evidence(orders, files(orders), "sorts before")


UNKNOWN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "snapshot": ("snapshot version 4 is unknown", lambda table: _say(table / "snapshot/snapshot-7", version=4)),
    "schema": ("schema version 4 is unknown", lambda table: _say(table / "schema/schema-0", version=4)),
    "manifest list": (
        "record version 3 is unknown",
        lambda table: _edit(table / parts(table)["delta manifest list"], lambda r: r[0].update(_VERSION=3)),
    ),
    "manifest": (
        "record version 3 is unknown",
        lambda table: _edit(table / parts(table)["manifest"], lambda r: r[0].update(_VERSION=3)),
    ),
    "index manifest": (
        "record version 2 is unknown",
        lambda table: _edit(table / parts(table)["index manifest"], lambda r: r[0].update(_VERSION=2)),
    ),
    "external data file": (
        "a file outside the table's folder is not handled",
        lambda table: _edit(
            table / parts(table)["manifest"], lambda r: r[0]["_FILE"].update(_EXTERNAL_PATH="s3://elsewhere/x")
        ),
    ),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_a_newer_writer_may_mean_is_refused(orders: Path, kind: str) -> None:
    feature, change = UNKNOWN[kind]
    change(orders)
    assert_refused(orders, files(orders), feature)


REFUSED: dict[str, tuple[str, str | None]] = {
    # option: (a value that is refused, one that is not)
    "merge-engine": ("of-a-later-release", "deduplicate"),
    "changelog-producer": ("full-compaction", "lookup"),
    "type": ("format-table", "table"),
    "branch": ("dev", "main"),
    "file.format": ("lance", "parquet"),
    "file.format.per.level": ("0:csv", "0:parquet,3:orc"),
    "manifest.format": ("orc", "avro"),
    "manifest.compression": ("xz", "snappy"),
    "bucket": ("-2", None),
    "num-levels": ("1000000000", "6"),
    "pk-clustering-override": ("true", "false"),
    "chain-table.enabled": ("true", "false"),
    "pk-vector.index.columns": ("kind", None),
    "pk-btree.index.columns": ("kind", None),
    "pk-bitmap.index.columns": ("kind", None),
    "pk-full-text.index.columns": ("kind", None),
    "row-tracking.enabled": ("true", "false"),
    "data-evolution.enabled": ("true", "false"),
    "lookup.remote-file.enabled": ("true", "false"),
    "metadata.iceberg.storage": ("hadoop-catalog", "disabled"),
    "commit.callbacks": ("org.example.Callback", None),
    "visibility-callback.enabled": ("true", None),
    "query-auth.enabled": ("true", "false"),
    "data-file.external-paths": ("s3://elsewhere", None),
    "global-index.external-path": ("s3://elsewhere", None),
    "record-level.expire-time": ("1 d", None),
    "sequence.snapshot-ordering": ("true", "false"),
    "compaction.force-rewrite-all-files": ("true", "false"),
    "deletion-vectors.modifiable": ("true", "false"),
    "deletion-vectors.enabled": ("false", "true"),
}


WITH = {"data-file.external-paths": {"data-file.external-paths.strategy": "round-robin"}}
"""Options without which another has no effect."""


@pytest.mark.parametrize("option", REFUSED)
def test_an_option_we_do_not_handle_is_refused_by_name(events: Path, option: str) -> None:
    value, _ = REFUSED[option]
    for other, needed in WITH.get(option, {}).items():
        _set(events, other, needed)
    _set(events, option, value)
    assert_refused(events, files(events), value if option == "num-levels" else option)


@pytest.mark.parametrize("option", [option for option, (_, accepted) in REFUSED.items() if accepted])
def test_the_same_option_is_no_obstacle_with_a_value_we_handle(events: Path, option: str) -> None:
    _, value = REFUSED[option]
    _set(events, option, str(value))
    assert upgrade(events).outcome is Outcome.VERIFIED


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "VECTOR", "element": "FLOAT", "length": 3},
        {"type": "ARRAY", "element": "VARIANT"},
        {"type": "MAP", "key": "INT", "value": "TIMESTAMP(9)"},
        "BLOB",
        "VARIANT",
    ],
    ids=str,
)
def test_a_column_of_a_type_that_cannot_be_held_is_refused_by_name(events: Path, kind: object) -> None:
    path = events / "schema/schema-0"
    document = json.loads(path.read_bytes())
    document["fields"][2]["type"] = kind
    path.write_text(json.dumps(document))
    assert_refused(events, files(events), "column score")


@pytest.mark.parametrize("option", ["bucket", "num-sorted-run.compaction-trigger", "target-file-size"])
def test_an_option_that_is_no_number_is_evidence(events: Path, option: str) -> None:
    _set(events, option, "many")
    assert_evidence(events, files(events), option, "many")


def test_a_table_without_vectors_is_refused_with_the_option_that_helps(tmp_path: Path) -> None:
    table = Path(shutil.copytree(SAMPLES / "ledger", tmp_path / "ledger"))
    assert_refused(table, files(table), "set deletion-vectors.enabled = true")


def test_vectors_that_came_later_want_a_full_upgrade_first(events: Path) -> None:
    _set(events, "deletion-vectors.modifiable", "true")
    assert_refused(events, files(events), "--full")
    assert upgrade(events, full=True).outcome is Outcome.VERIFIED


class TestWritersThatCompact:
    """Their next compaction would fail on ours: they keep a bucket's levels in memory."""

    def test_one_user_with_both_kinds_of_commit_is_refused(self, orders: Path) -> None:
        _say(orders / "snapshot/snapshot-4", commitUser="shop-writer")
        assert_refused(orders, files(orders), "writer shop-writer also compacts", "write-only = true")

    def test_unless_it_is_allowed(self, orders: Path) -> None:
        _say(orders / "snapshot/snapshot-4", commitUser="shop-writer")
        assert upgrade(orders, allow_compacting_writers=True).outcome is Outcome.VERIFIED

    def test_a_user_that_only_compacts_is_fine(self, orders: Path) -> None:
        assert {"APPEND", "COMPACT"} == {_kind(orders, n) for n in range(1, 8)}
        assert upgrade(orders).outcome is Outcome.VERIFIED

    def test_a_job_that_goes_on_beside_us_is_refused_until_it_is_known(
        self, paimon_java: PaimonJava, events: Path
    ) -> None:
        ids = count(90_000)

        def append() -> None:
            paimon_java.write(events, [["+I", next(ids), "view", 0]], Writer(user="shop-writer"))

        def compact(user: str) -> None:
            append()
            paimon_java.compact(events, Compaction(user=user))
            append()

        for user in ("before-us-1", "before-us-2"):
            compact(user)
        assert upgrade(events, other_managers="unknown").outcome is Outcome.VERIFIED
        compact("by-hand")
        assert upgrade(events, other_managers="unknown").outcome is Outcome.VERIFIED
        compact("job-1")
        before, told = files(events), upgrade(events, other_managers="unknown")
        assert (told.outcome, files(events)) == (Outcome.REFUSED, before)
        assert "job-1 compacts beside us" in str(told.reason) and "other_managers: known" in str(told.reason)
        assert upgrade(events).outcome is Outcome.VERIFIED

    def test_what_it_did_long_ago_is_forgotten(self, paimon_java: PaimonJava, events: Path) -> None:
        paimon_java.write(events, [["+I", 90_000, "view", 0]], Writer(user="both"))
        paimon_java.compact(events, Compaction(user="both"))
        for number in range(18):
            paimon_java.write(events, [["+I", 90_001 + number, "view", 0]], Writer(user="shop-writer"))
        assert upgrade(events, dry_run=True).outcome is Outcome.REFUSED
        paimon_java.write(events, [["+I", 90_100, "view", 0]], Writer(user="shop-writer"))
        assert upgrade(events).outcome is Outcome.VERIFIED


def assert_refused(table: Path, before: Mapping[str, bytes], *features: str) -> RunDocument:
    document = upgrade(table)
    assert (document.outcome, document.outcome.exit_status) == (Outcome.REFUSED, 3), document.reason
    assert document.reason is not None
    for feature in features:
        assert feature in document.reason
    assert files(table) == before
    return document


def _say(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_bytes()) | fields))


def _set(table: Path, option: str, value: str) -> None:
    path = table / "schema/schema-0"
    document: dict[str, Any] = json.loads(path.read_bytes())
    document["options"][option] = value
    path.write_text(json.dumps(document))


def _edit(path: Path, change: Change) -> None:
    container = read_container(path.read_bytes(), subject=path.name)
    records = list(container.records)
    change(records)
    path.write_bytes(write_container(records, container.schema, container.codec))


def _kind(table: Path, version: int) -> str:
    return str(json.loads((table / f"snapshot/snapshot-{version}").read_bytes())["commitKind"])
