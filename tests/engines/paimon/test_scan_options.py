"""Options that a table stores and that change what Paimon Java's batch read shows: our reads are refused by name."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.canonical import rows_from_arrow
from tests.drivers.json_lines import EngineError
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Layout
from tests.formats.paimon.upgrade import upgrade

import nightkeep
from nightkeep.errors import CorruptMetadata, MissingFile, RefusedTable
from nightkeep.formats.paimon.metadata.batch_read import BRANCHES, HARMLESS, PLACES
from nightkeep.model import Outcome

COLUMNS = [("k", "INT NOT NULL"), ("day", "STRING NOT NULL"), ("n", "INT")]
KEYED = {"bucket": "1", "write-only": "true"}
VECTORS = {"deletion-vectors.enabled": "true"}
KINDS: Mapping[str, tuple[Sequence[str], Mapping[str, str]]] = {
    "keyed": (["k", "day"], KEYED),
    "vectors": (["k", "day"], {**KEYED, **VECTORS}),
    "append": ([], {"bucket": "-1", **VECTORS}),
}
FUTURE = "4000000000000"
VALUES: Mapping[str, Sequence[str]] = {
    "scan.snapshot-id": ["1", "99"],
    "scan.version": ["1", "t", "watermark-1"],
    "scan.tag-name": ["t", "gone", ""],
    "scan.timestamp": ["2020-01-01 00:00:00", "2090-01-01 00:00:00"],
    "scan.timestamp-millis": ["1", FUTURE],
    "scan.file-creation-time-millis": ["1", FUTURE],
    "scan.creation-time-millis": ["1", FUTURE],
    "scan.watermark": ["1"],
    "incremental-between": ["1,2"],
    "incremental-between-timestamp": [f"1,{FUTURE}"],
    "incremental-to-auto-tag": ["t"],
    "scan.fallback-branch": ["dev", ""],
    "scan.primary-branch": ["dev", ""],
    "scan.bucket": ["0", "5"],
    "scan.fallback-snapshot-branch": ["dev"],
    "scan.fallback-delta-branch": ["dev"],
    "scan.bounded.watermark": ["1"],
    "log.scan.timestamp-millis": ["1"],
    "log.scan": ["latest", "compacted-full"],
    "sequence.field": ["n"],
    "rowkind.field": ["day"],
    "partition.default-name": ["d0"],
    "bucket-key": ["k"],
    "partition.expiration-time": ["1 d"],
    "scan.plan-auto-tag-for-read.time-retained": ["1 h"],
    "snapshot.num-retained.max": ["20"],
    "consumer-id": ["me"],
    "sort-spill-threshold": ["2"],
    "blob.split-by-file-size": ["true"],
}
TOGETHER: Sequence[Mapping[str, str]] = (
    {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"},
    {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "1"},
    {"scan.mode": "from-timestamp", "scan.timestamp-millis": "1"},
    {"scan.mode": "incremental", "incremental-between": "1,2"},
    {"scan.mode": "from-file-creation-time", "scan.file-creation-time-millis": FUTURE},
    {"scan.mode": "from-creation-timestamp", "scan.creation-time-millis": FUTURE},
    {"scan.mode": "latest", "scan.fallback-branch": "dev"},
    {"deletion-vectors.merge-on-read": "true"},
)
OURS = {*BRANCHES, *PLACES, *HARMLESS}
AGREE = {"scan.bounded.watermark", "scan.fallback-snapshot-branch", "scan.fallback-delta-branch", "consumer-id"}
"""Options that sound as if they changed a batch read, and do not."""

Rows = list[tuple[Any, ...]]


class Stored:
    """A table whose newest version, first version, tag and branch have different rows, and what options it stores."""

    def __init__(self, java: PaimonJava, table: Path, kind: str) -> None:
        self.java, self.table = java, table
        self.keys, self.options = KINDS[kind]
        java.create(table, Layout(COLUMNS, self.keys, ["day"], self.options))
        java.write(table, [("+I", k, f"d{k % 2}", 0) for k in range(6)])
        java.create_tag(table, "t", snapshot=1)
        java.create_branch(table, "dev", tag="t")
        java.write(table / "branch/branch-dev", [("+I", k, "d2", 9) for k in range(20, 25)])
        java.write(table, [("+I", k, f"d{k % 2}", 1) for k in range(4, 8)])
        if self.keys:
            java.compact(table, Compaction(full=True))
            java.compact(table / "branch/branch-dev", Compaction(full=True))
        java.write(table, [("+I", k, f"d{k % 2}", 2) for k in range(10, 12)])

    def store(self, options: Mapping[str, str]) -> None:
        """In the schema's file, as an ALTER TABLE refuses some of them and older releases did not."""
        path = self.table / "schema/schema-0"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"options": {**self.options, **options}}))

    def creates(self, options: Mapping[str, str]) -> bool:
        """Whether Java creates such a table. What it does not, it does not open either."""
        try:
            layout = Layout(COLUMNS, self.keys, ["day"], {**self.options, **options})
            self.java.create(self.table.with_name("-".join(map(str, options.items())).replace("/", "")), layout)
        except EngineError:
            return False
        return True

    def theirs(self) -> Rows | None:
        """None where Java fails."""
        try:
            return sorted(map(tuple, self.java.read(self.table).rows))
        except EngineError:
            return None

    def ours(self, **asked: Any) -> Rows | None:
        try:
            found = nightkeep.read(f"paimon:{self.table}", **asked).read_all()
        except (RefusedTable, CorruptMetadata, MissingFile):
            return None
        return sorted(map(tuple, rows_from_arrow(found, [kind for _, kind in COLUMNS])))


def trials(java: PaimonJava, *, every: bool) -> Iterator[dict[str, str]]:
    """Every option of Paimon with other values than its default, or those of them that this page is about."""
    usual = {option["key"]: option for option in java.options()}
    for key in sorted({*usual, *VALUES}) if every else sorted({*OURS, *VALUES}):
        option = usual.get(key, {"values": [], "default": ""})
        default = option["default"]
        other = [value for value in option["values"] if value != default]
        numbers = ["1"] if default is None or default.isdecimal() else []
        yield from ({key: value} for value in VALUES.get(key, other or numbers))
    yield from map(dict, TOGETHER)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.extended)])
def test_a_read_shows_what_java_shows_or_is_refused(
    paimon_java: PaimonJava, tmp_path: Path, kind: str, *, every: bool
) -> None:
    made = Stored(paimon_java, tmp_path / "t", kind)
    newest = made.ours()
    assert newest and newest == made.theirs()
    differing: set[str] = set()
    for options in trials(paimon_java, every=every):
        made.store(options)
        theirs, ours = made.theirs(), made.ours()
        assert ours in (None, theirs) or (theirs is None and not made.creates(options)), options
        assert not (ours is None and theirs == newest and AGREE & options.keys()), options
        if theirs != newest:
            differing |= options.keys() & OURS
    assert {"scan.fallback-branch", "scan.primary-branch", "scan.snapshot-id", "incremental-between"} <= differing


def test_the_options_are_those_of_the_release(paimon_java: PaimonJava) -> None:
    """A new option that is called as if it changed a batch read has to be looked at."""
    known = {name for option in paimon_java.options() for name in (option["key"], *option["older"])}
    assert known >= OURS
    beside = {
        "scan.fallback-branch.read-fail-fast",
        "scan.ignore-corrupt-files",
        "scan.ignore-lost-files",
        "scan.manifest.parallelism",
        "scan.max-splits-per-task",
        "scan.plan-auto-tag-for-read.time-retained",
        "scan.plan-sort-partition",
        "incremental-between-scan-mode",
        "incremental-between-tag-to-snapshot",
    }
    named = {key for key in known if key.startswith(("scan.", "incremental-", "batch-", "log.scan"))}
    assert named == (OURS | AGREE | beside) & named


def test_such_a_table_is_read_as_asked_and_maintained(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = Stored(paimon_java, tmp_path / "t", "vectors")
    newest, merged = made.ours(), made.ours(view="merge-on-read")
    paimon_java.alter(made.table, {"change": "set_option", "name": "scan.fallback-branch", "value": "dev"})
    with pytest.raises(RefusedTable, match=r"option scan\.fallback-branch = dev changes the rows .*name a version"):
        nightkeep.read(f"paimon:{made.table}")
    with pytest.raises(RefusedTable, match=r"option scan\.fallback-branch = dev changes the rows"):
        nightkeep.read_plan(f"paimon:{made.table}", where="k > 3")
    latest = paimon_java.snapshots(made.table)[-1]["id"]
    assert made.ours(version=latest) == newest
    assert made.ours(view="merge-on-read") == merged != newest
    assert upgrade(made.table).outcome is Outcome.VERIFIED
    shown = made.theirs()
    assert shown is not None and merged is not None
    assert set(shown) == {*merged, *((k, "d2", 9) for k in range(20, 25))}


def test_rows_that_readers_do_not_see_are_not_deleted(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Java's own DELETE chooses rows by its batch read, and commits to the newest version of this branch."""
    made = Stored(paimon_java, tmp_path / "t", "append")
    made.store({"scan.fallback-branch": "dev"})
    told = [
        nightkeep.delete(f"paimon:{made.table}", rows_where="k = 20", no_check=True, reports=tmp_path / "reports"),
        nightkeep.update(
            f"paimon:{made.table}", set=["n = 1"], rows_where="k = 1", no_check=True, reports=tmp_path / "reports"
        ),
    ]
    for document in told:
        assert document.outcome is Outcome.REFUSED, document.reason
        assert "option scan.fallback-branch = dev changes the rows" in str(document.reason)
