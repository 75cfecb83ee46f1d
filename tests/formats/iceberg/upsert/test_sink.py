"""Batches applied by our writer and by Iceberg's own, to two tables side by side: Java reads the same rows of both."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Column, Table, Warehouse
from tests.formats.iceberg.catalog_world import address_of, configure, loaded
from tests.support.extended import some_extended

from nightkeep.api.changes import Workers, apply_batch
from nightkeep.commands.apply_changes import apply_job
from nightkeep.errors import RefusedTable, UnknownOutcome, UsageError
from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.upsert import sink
from nightkeep.formats.iceberg.upsert.batch import ChangeBatch, ChangeMode, Distribution
from nightkeep.formats.iceberg.upsert.sink import Applied
from nightkeep.spark.exchange import SparkExchange
from nightkeep.spark.session import SparkMapper

pytestmark = pytest.mark.in_turn("version")

COLUMNS: Sequence[Column] = (
    ("id", "long", True),
    ("day", "date"),
    ("name", "string"),
    ("price", "decimal(9,2)"),
    ("at", "timestamp"),
)
Row = Mapping[str, Any]
Changed = Sequence[tuple[str, Row]]

LAYOUTS = {
    "unpartitioned": Layout(),
    "identity": Layout((("day", "identity"),)),
    "bucket-truncate": Layout((("id", "bucket[3]"), ("day", "month"))),
    "void": Layout((("day", "void"),)),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """The same table twice: Java writes `theirs`, we write `ours`."""

    java: IcebergJava
    ours: Table
    theirs: Table
    folder: Path

    def make(self, layout: Layout, columns: Sequence[Column] = COLUMNS) -> None:
        for table in (self.ours, self.theirs):
            self.java.create(table, columns, layout)

    def apply(self, batch_id: str, changes: Changed, mode: ChangeMode, keys: tuple[str, ...], **more: Any) -> Applied:
        """Ours alone."""
        files, workers = more.pop("files", 1), more.pop("workers", Workers())
        paths = []
        for number in range(files):
            path = self.folder / f"{batch_id}-{number}.jsonl"
            part = changes[number * len(changes) // files : (number + 1) * len(changes) // files]
            path.write_text("".join(json.dumps({**row, "_change_type": kind}) + "\n" for kind, row in part))
            paths.append(str(path))
        batch = ChangeBatch(batch_id, tuple(paths), mode, keys=keys, **more)
        return apply_batch(address_of(self.ours), batch, workers)

    def both(self, batch_id: str, changes: Changed, mode: ChangeMode, keys: tuple[str, ...], **more: Any) -> Applied:
        done = self.apply(batch_id, changes, mode, keys, **more)
        self.java.cdc(self.theirs, changes, keys=keys, upsert=mode is ChangeMode.UPSERT)
        assert self.java.read(self.ours) == self.java.read(self.theirs)
        return done

    def live(self, table: Table, content: int) -> list[dict[str, Any]]:
        return [each for each in self.java.entries(table) if each["content"] == content and each["status"] != 2]


@pytest.fixture
def pair(iceberg_java: IcebergJava, iceberg: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    configure(monkeypatch, iceberg)
    folder = tmp_path / "changes"
    folder.mkdir()
    return Pair(iceberg_java, iceberg.table("db.ours"), iceberg.table("db.theirs"), folder)


def row(number: int, day: str | None = "2026-11-01", name: str | None = "a", **more: Any) -> Row:
    return {"id": number, "day": day, "name": name, "price": "1.50", "at": "2026-11-01T06:07:08", **more}


def random_changes(chance: random.Random, count: int, *, kinds: Sequence[str]) -> Changed:
    days = ["2026-10-31", "2026-11-01", None]
    return [
        (
            chance.choice(kinds),
            row(chance.randrange(8), days[chance.randrange(3)], chance.choice(["a", "", None, "\u00e4\U00020000"])),
        )
        for _ in range(count)
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_java_reads_of_our_upserts_what_it_reads_of_its_own(pair: Pair, layout: str, version: int) -> None:
    how = LAYOUTS[layout]
    pair.make(Layout(how.partition, version))
    chance = random.Random(f"{layout} {version}")
    keys = ("id", "day") if how.partition else ("id",)
    for number in range(4):
        kinds = ("+I", "+U", "-U", "-D")
        pair.both(f"b{number}", random_changes(chance, 12, kinds=kinds), ChangeMode.UPSERT, keys)


@pytest.mark.parametrize("version", [2, 3])
def test_java_reads_of_our_changes_what_it_reads_of_its_own(pair: Pair, version: int) -> None:
    """Without upsert a delete carries the whole row it deletes."""
    pair.make(Layout((("day", "identity"),), version))
    chance = random.Random(version)
    for number in range(4):
        pair.both(
            f"b{number}", random_changes(chance, 12, kinds=("+I", "-D", "-U", "+U")), ChangeMode.CHANGES, ("id", "day")
        )
    deletes = pair.live(pair.ours, 2)
    assert deletes and all(set(each["value_counts"]) == {"1", "2", "3", "4", "5"} for each in deletes)


@pytest.mark.parametrize(
    "changes",
    [
        [("+I", 1), ("+I", 1)],
        [("+I", 1), ("-D", 1)],
        [("-D", 1), ("+I", 1)],
        [("+I", 1), ("-U", 1), ("+U", 1), ("-U", 1), ("+U", 1)],
        [("-D", 1), ("-D", 1)],
        [("+I", 1), ("-D", 1), ("-D", 1), ("+I", 1)],
    ],
    ids=lambda changes: "".join(kind for kind, _ in changes),
)
@pytest.mark.parametrize("mode", [ChangeMode.UPSERT, ChangeMode.CHANGES])
@pytest.mark.parametrize("version", [2, 3])
def test_changes_of_one_key_in_one_batch(
    pair: Pair, changes: list[tuple[str, int]], mode: ChangeMode, version: int
) -> None:
    """With an older row of the key, and without; by position where the batch wrote it, by equality where not."""
    pair.make(Layout(format_version=version))
    told = [(kind, row(number, name=str(at))) for at, (kind, number) in enumerate(changes)]
    pair.both("new", told, mode, ("id",))
    pair.both("again", told, mode, ("id",))


def test_files_are_what_iceberg_s_writer_makes_them(pair: Pair) -> None:
    """Numbers of files and rows of each kind, equality ids, bounds by which deletes are file-scoped, and names."""
    pair.make(Layout((("day", "identity"),)))
    changes = [("+I", row(1)), ("+I", row(2)), ("+I", row(1, name="b")), ("+I", row(3, "2026-11-02")), ("-D", row(9))]
    done = pair.both("first", changes, ChangeMode.UPSERT, ("id", "day"))
    for content in (0, 1, 2):
        ours, theirs = pair.live(pair.ours, content), pair.live(pair.theirs, content)
        for key in ("partition", "record_count", "equality_ids", "spec_id", "sequence_number", "value_counts"):
            told = [sorted(json.dumps(each.get(key)) for each in side) for side in (ours, theirs)]
            assert told[0] == told[1], (content, key)
    (position,) = pair.live(pair.ours, 1)
    assert position["lower_bounds"]["2147483546"] == position["upper_bounds"]["2147483546"]
    names = [each["file_path"].rpartition("/")[2] for content in (0, 1, 2) for each in pair.live(pair.ours, content)]
    assert len({"-".join(name.split("-")[2:7]) for name in names}) == 1, "one operation id"
    assert all(re.fullmatch(r"00000-\d+-[0-9a-f-]{36}-\d{5}(-deletes)?\.parquet", name) for name in names)
    assert done.files == {"data": 2, "position_deletes": 1, "equality_deletes": 2}


@pytest.mark.parametrize("version", [2, 3])
def test_data_files_roll_at_their_target(pair: Pair, version: int) -> None:
    """Rows that the batch replaces later may be in any of its files, and each file has its own position deletes."""
    pair.make(Layout((), version, {"write.target-file-size-bytes": "8192"}))
    chance = random.Random(version)
    names = [f"{chance.getrandbits(128):x}" for _ in range(3_000)]
    changes = [("+I", row(number % 2_000, name=name)) for number, name in enumerate(names)]
    done = pair.both("b", changes, ChangeMode.UPSERT, ("id",))
    files = pair.live(pair.ours, 0)
    assert len(files) > 3 and sum(each["record_count"] for each in files) == 3_000
    assert done.files["position_deletes"] == len({each["referenced_data_file"] for each in pair.live(pair.ours, 1)}) > 1


def test_a_replayed_batch_changes_nothing(pair: Pair) -> None:
    pair.make(Layout())
    first = pair.apply("b", [("+I", row(1))], ChangeMode.UPSERT, ("id",))
    before = pair.java.describe(pair.ours)
    again = pair.apply("b", [("+I", row(2))], ChangeMode.UPSERT, ("id",))
    assert again.replayed and again.snapshot_id == first.snapshot_id
    assert pair.java.describe(pair.ours) == before


def test_a_batch_whose_answer_was_lost_is_found(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog commits, and the answer is an error: the batch is applied once."""
    pair.make(Layout())
    commit = TableHandle.commit

    def losing(self: TableHandle, snapshot: Any, parent: int | None, **how: Any) -> bool:
        commit(self, snapshot, parent, **how)
        raise OSError("no answer")

    monkeypatch.setattr(TableHandle, "commit", losing)
    done = pair.apply("b", [("+I", row(1))], ChangeMode.UPSERT, ("id",))
    assert loaded(pair.ours).version == done.snapshot_id and len(pair.java.read(pair.ours).rows) == 1


def test_a_batch_that_failed_leaves_its_files_under_its_name(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.make(Layout())
    pair.apply("a", [("+I", row(1))], ChangeMode.UPSERT, ("id",))
    known = set(pair.ours.warehouse.folder.rglob("*.parquet"))

    def failing(self: TableHandle, snapshot: Any, parent: int | None, **how: Any) -> bool:
        raise OSError("no answer")

    with monkeypatch.context() as broken, pytest.raises(UnknownOutcome):
        broken.setattr(TableHandle, "commit", failing)
        pair.apply("b", [("+I", row(2))], ChangeMode.UPSERT, ("id",))
    left = set(pair.ours.warehouse.folder.rglob("*.parquet")) - known
    done = pair.apply("b", [("+I", row(2))], ChangeMode.UPSERT, ("id",))
    own = set(pair.ours.warehouse.folder.rglob("*.parquet")) - known - left
    assert left and own and not done.replayed
    operation = {"-".join(path.name.split("-")[2:7]) for path in left | own}
    assert len(operation) == 1, "leftovers and the batch's files share the operation id"
    assert sorted(pair.java.read(pair.ours).column("id")) == [1, 2]


def test_a_lost_race_is_tried_again_on_top(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java commits between our look at the table and our commit; both batches are there, Java's row replaced."""
    pair.make(Layout())
    staged = sink.commit.stage_files
    others = iter([True])

    def late(*args: Any, **more: Any) -> Any:
        if next(others, False):
            pair.java.cdc(pair.ours, [("+I", row(1, name="theirs")), ("+I", row(2, name="theirs"))], keys=("id",))
        return staged(*args, **more)

    monkeypatch.setattr(sink.commit, "stage_files", late)
    pair.apply("b", [("+I", row(1, name="ours"))], ChangeMode.UPSERT, ("id",))
    assert sorted(zip(*(pair.java.read(pair.ours).column(name) for name in ("id", "name")), strict=True)) == [
        (1, "ours"),
        (2, "theirs"),
    ]


@pytest.mark.parametrize("step", ["staged", "committed"])
def test_a_table_that_is_created_anew_meanwhile_takes_no_batch(
    pair: Pair, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are empty, of one schema, at one place: only the id of the table tells them apart."""
    pair.make(Layout())
    staged, commit = sink.commit.stage_files, TableHandle.commit
    others = iter([True])

    def create_anew() -> None:
        if next(others, False):
            pair.java.drop(pair.ours)
            pair.java.create(pair.ours, COLUMNS, Layout())

    def before_staged(*args: Any, **more: Any) -> Any:
        create_anew()
        return staged(*args, **more)

    def before_committed(self: TableHandle, snapshot: Any, parent: int | None, **how: Any) -> bool:
        create_anew()
        return commit(self, snapshot, parent, **how)

    if step == "staged":
        monkeypatch.setattr(sink.commit, "stage_files", before_staged)
    else:
        monkeypatch.setattr(TableHandle, "commit", before_committed)
    with pytest.raises(RefusedTable, match="created anew"):
        pair.apply("b", [("+I", row(1))], ChangeMode.UPSERT, ("id",))
    assert not pair.java.read(pair.ours).rows
    assert not pair.apply("b", [("+I", row(1))], ChangeMode.UPSERT, ("id",)).replayed


@pytest.mark.parametrize("distribution", [Distribution.HASH, Distribution.NONE])
def test_several_writers(pair: Pair, distribution: Distribution) -> None:
    """By hash whatever the files hold; without, only if no key is in two writers' files."""
    pair.make(Layout(format_version=3))
    changes = [("+I", row(number % 4, name=str(number))) for number in range(20)]
    if distribution is Distribution.NONE:
        with pytest.raises(UsageError, match="found 4 keys at several"):
            pair.apply("a", changes, ChangeMode.UPSERT, ("id",), files=2, writers=2, distribution=distribution)
        # Half of the keys in either file.
        changes.sort(key=lambda change: change[1]["id"])
    done = pair.both("b", changes, ChangeMode.UPSERT, ("id",), files=2, writers=2, distribution=distribution)
    assert done.files["data"] == 2


@pytest.mark.parametrize("distribution", some_extended([Distribution.HASH, Distribution.NONE], keep=1))
def test_writers_on_spark(pair: Pair, spark: SparkSession, distribution: Distribution) -> None:
    """The same rows as of one writer, whose changes of a key keep their order through Spark's exchange."""
    pair.make(Layout((("id", "bucket[2]"),)))
    changes = [("+I", row(number % 7, name=str(number))) for number in range(40)]
    if distribution is Distribution.NONE:
        changes.sort(key=lambda change: change[1]["id"] >= 4)
        cut = sum(change[1]["id"] < 4 for change in changes)
        changes = changes[: min(cut, len(changes) - cut)] + changes[-min(cut, len(changes) - cut) :]
    workers = Workers(SparkMapper(spark), SparkExchange(spark))
    more = {"files": 2, "writers": 2, "distribution": distribution, "workers": workers}
    done = pair.both("b", changes, ChangeMode.UPSERT, ("id",), **more)
    names = {each["file_path"].rpartition("/")[2][:5] for each in pair.live(pair.ours, 0)}
    assert names == {"00000", "00001"} and done.rows == len(changes)


def test_rows_are_appended_without_keys(pair: Pair) -> None:
    pair.make(Layout((("at", "hour"),)))
    done = pair.apply("b", [("INSERT", row(1)), ("INSERT", row(1))], ChangeMode.APPEND, ())
    assert done.files == {"data": 1, "position_deletes": 0, "equality_deletes": 0}
    assert len(pair.java.read(pair.ours).rows) == 2
    assert loaded(pair.ours).operation == "append"


def test_a_batch_of_deletes_alone_is_a_delete(pair: Pair) -> None:
    pair.make(Layout())
    pair.both("a", [("+I", row(1)), ("+I", row(2))], ChangeMode.UPSERT, ("id",))
    pair.both("b", [("-D", {"id": 1})], ChangeMode.UPSERT, ("id",))
    assert loaded(pair.ours).operation == "delete"


def test_identifier_fields_are_the_keys_by_default(pair: Pair) -> None:
    pair.make(Layout())
    with pytest.raises(UsageError, match="expected --key, as the table has no identifier fields"):
        pair.apply("a", [("+I", row(1))], ChangeMode.UPSERT, ())
    pair.java.alter(pair.ours, {"change": "identifier", "name": "id"})
    pair.apply("a", [("+I", row(1)), ("+I", row(1))], ChangeMode.UPSERT, ())
    assert len(pair.java.read(pair.ours).rows) == 1


def test_what_cannot_be_applied_is_refused_by_name(pair: Pair) -> None:
    pair.make(Layout((("day", "identity"),)), [*COLUMNS, ("ratio", "double")])
    with pytest.raises(RefusedTable, match="partition field day is of column day, which is no key"):
        pair.apply("a", [("+I", row(1))], ChangeMode.UPSERT, ("id",))
    with pytest.raises(RefusedTable, match="key ratio of type double"):
        pair.apply("a", [("+I", row(1))], ChangeMode.UPSERT, ("ratio", "day"))
    with pytest.raises(UsageError, match=r"expected keys among .*, found nobody"):
        pair.apply("a", [("+I", row(1))], ChangeMode.UPSERT, ("nobody",))
    with pytest.raises(UsageError, match="expected keys to distribute by"):
        pair.apply("a", [("+I", row(1))], ChangeMode.APPEND, (), distribution=Distribution.HASH)
    with pytest.raises(UsageError, match="column id: expected a value in every row, found 1 rows without"):
        pair.apply("a", [("+I", {"day": "2026-11-01"})], ChangeMode.UPSERT, ("id", "day"))
    with pytest.raises(UsageError, match=r"_change_type to be one of .*, found '\?'"):
        pair.apply("a", [("?", row(1))], ChangeMode.UPSERT, ("id", "day"))
    with pytest.raises(UsageError, match="only INSERT in mode append, found DELETE"):
        pair.apply("a", [("-D", row(1))], ChangeMode.APPEND, ())
    with pytest.raises(UsageError, match=r"expected columns of the table \(.*\) and _change_type, found extra"):
        pair.apply("a", [("+I", row(1, extra=1))], ChangeMode.UPSERT, ("id", "day"))
    assert loaded(pair.ours).version == -1


def test_rows_that_deletes_would_not_reach_are_refused(pair: Pair) -> None:
    """Equality deletes hold within their own spec: rows of an older one would stay."""
    pair.make(Layout((("day", "identity"),)))
    pair.apply("a", [("+I", row(1))], ChangeMode.UPSERT, ("id", "day"))
    pair.java.alter(pair.ours, {"change": "add_partition_field", "column": "id", "transform": "bucket[2]"})
    with pytest.raises(RefusedTable, match="live data files of spec 0, which deletes of spec 1 do not reach"):
        pair.apply("b", [("+I", row(1))], ChangeMode.UPSERT, ("id", "day"))
    assert pair.apply("c", [("+I", row(2))], ChangeMode.APPEND, ()).rows == 1


def test_parquet_changes_keep_their_types(pair: Pair) -> None:
    """What JSON has no type for; a time of day and a binary value among them."""
    pair.make(Layout(), [("id", "uuid", True), ("raw", "binary"), ("t", "time"), ("at", "timestamptz")])
    path = pair.folder / "changes.parquet"
    held = {
        "id": pa.array([b"a" * 16, b"b" * 16], pa.binary(16)),
        "raw": pa.array([b"\0\1", None]),
        "t": pa.array([1, None], pa.time64("us")),
        "at": pa.array([1, None], pa.timestamp("us", "Europe/Berlin")),
    }
    pq.write_table(pa.table(held), path)
    apply_batch(address_of(pair.ours), ChangeBatch("b", (str(path),), ChangeMode.UPSERT, keys=("id",)), Workers())
    assert sorted(pair.java.read(pair.ours).column("raw"), key=str) == ["0001", None]


def test_the_job_prints_what_became_of_the_batch(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    pair.make(Layout())
    path = pair.folder / "b.jsonl"
    path.write_text(json.dumps(row(1)) + "\n")
    address = str(address_of(pair.ours))
    argv = ["--table", address, "--batch-id", "b", "--mode", "upsert", "--key", "id", str(path)]
    assert apply_job(argv) == 0 and json.loads(capsys.readouterr().out)["replayed"] is False
    assert apply_job(argv) == 0 and json.loads(capsys.readouterr().out)["replayed"] is True
    with pytest.raises(UsageError, match="nobody"):
        apply_job([*argv[:3], "x", *argv[4:7], "nobody", str(path)])
