"""What a commit of ours says, byte by byte, and what is a conflict; rewrites are made by hand, without rules."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap64
from tests.formats.delta.hand_made import NOW_MS, HandMade, removal
from tests.formats.delta.laid_anew import a_run, laid_anew
from tests.formats.delta.runs import commits_of, optimize

from nightkeep.errors import AddressError, CorruptMetadata
from nightkeep.formats.delta.commit.commit import commit
from nightkeep.formats.delta.commit.commit_info import commit_info
from nightkeep.formats.delta.format import DeltaTable, open_table
from nightkeep.formats.delta.gate.proof_parts import pieces
from nightkeep.formats.delta.metadata.naming import transaction_of
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.model import (
    Address,
    Candidate,
    Clustering,
    Curve,
    Intent,
    Operation,
    Outcome,
    Rewrite,
    Run,
    UnitKey,
    View,
)
from nightkeep.model.run_names import RETRY_HORIZON_MS
from nightkeep.storage import LocalStorage

DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")
Lines = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    return filled(HandMade(tmp_path / "table"))


@pytest.fixture
def tracked(tmp_path: Path) -> HandMade:
    """With row ids and in-commit timestamps."""
    return filled(HandMade(tmp_path / "tracked", row_ids=True))


def filled(made: HandMade) -> HandMade:
    """Two days in two files each, with vectors on the first; and a day whose rows are all deleted but one file."""
    for day in DAYS:
        made.append(day, range(100))
        made.append(day, range(100, 150))
    made.delete(DAYS[0], range(10, 110))
    return made


def opened(made: HandMade) -> DeltaTable:
    return open_table(Address("delta", str(made.folder), "shop.events"))


def staged(table: DeltaTable, run: Run, days: tuple[str, ...] = DAYS) -> tuple[list[Rewrite], Candidate]:
    snapshot = table.snapshot()
    rewrites = [laid_anew(table, snapshot.by_key[UnitKey(f"day={day}")], run) for day in days]
    return rewrites, table.commits.stage(snapshot, rewrites, run)


def lines(made: HandMade, name: str) -> Lines:
    found: Lines = []
    for line in (made.folder / name).read_text().splitlines():
        ((kind, body),) = json.loads(line).items()
        found.append((kind, body))
    return found


def of_kind(found: Lines, kind: str) -> list[dict[str, Any]]:
    return [body for each, body in found if each == kind]


# What it says


def test_the_history_reports_what_an_engine_would(made: HandMade) -> None:
    run = a_run()
    _, candidate = staged(opened(made), run)
    (info,) = of_kind(lines(made, candidate.metadata), "commitInfo")
    metrics = info.pop("operationMetrics")
    assert info == {
        "timestamp": NOW_MS + 7,
        "operation": "OPTIMIZE",
        "operationParameters": {
            "predicate": "[\"day >= '2026-11-01'\"]",
            "zOrderBy": '["id","price"]',
            "clusterBy": "[]",
            "auto": False,
        },
        "readVersion": 7,
        "isolationLevel": "SnapshotIsolation",
        "isBlindAppend": False,
        "engineInfo": "Nightkeep/0.1.0",
        "userMetadata": f"nightkeep-{run.token}",
        "txnId": transaction_of(candidate.metadata),
    }
    sizes = sorted(add["size"] for add in of_kind(lines(made, candidate.metadata), "add"))
    assert metrics == {
        "numRemovedFiles": "6",
        "numRemovedBytes": str(sum(file["size"] for file in made.live().values())),
        "numAddedFiles": "3",
        "numAddedBytes": str(sum(sizes)),
        "numDeletionVectorsRemoved": "2",
        "minFileSize": str(sizes[0]),
        "p25FileSize": str(sizes[0]),
        "p50FileSize": str(sizes[1]),
        "p75FileSize": str(sizes[2]),
        "maxFileSize": str(sizes[2]),
    }


@pytest.mark.parametrize(
    ("intent", "parameters"),
    [
        (Intent(), {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": False}),
        (
            Intent(clustering=Clustering(('a"b', "c.d"), Curve.HILBERT)),
            {"predicate": "[]", "zOrderBy": "[]", "clusterBy": '["a\\"b","c.d"]', "auto": False},
        ),
        (
            # As it is: other engines misread some characters that JSON escapes.
            Intent(where="caf\u00e9 = 1", clustering=Clustering(("caf\u00e9",), Curve.Z)),
            {"predicate": '["caf\u00e9 = 1"]', "zOrderBy": '["caf\u00e9"]', "clusterBy": "[]", "auto": False},
        ),
        (Intent(Operation.PERSIST_DELETES, "day = 'x'"), {"predicate": "[\"day = 'x'\"]"}),
    ],
)
def test_parameters_are_json_in_strings(made: HandMade, intent: Intent, parameters: dict[str, object]) -> None:
    info = commit_info(opened(made).snapshot(), DeltaEdit((), (), intent), now_ms=1)
    assert info["operationParameters"] == parameters
    assert info["operation"] == ("PERSIST DELETES" if intent.operation is Operation.PERSIST_DELETES else "OPTIMIZE")


def test_a_delete_counts_as_an_engine_does(made: HandMade) -> None:
    """Of a file that loses its vector for another one, of one that gets its first, and of one that goes whole."""
    files = [file for unit in opened(made).snapshot().units for file in unit.files]
    (marked, *_), (first, gone, *_) = (
        [file for file in files if (file.vector is not None) is marked] for marked in (True, False)
    )
    edit = DeltaEdit((marked, first, gone), (marked.raw, first.raw), Intent(Operation.DELETE), rows_deleted=70)
    info = commit_info(opened(made).snapshot(), edit, now_ms=1)
    assert (info["operation"], info["isolationLevel"]) == ("DELETE", "WriteSerializable")
    assert info["operationMetrics"] == {
        "numRemovedFiles": "1",
        "numRemovedBytes": "0",
        "numCopiedRows": "0",
        "numDeletionVectorsAdded": "2",
        "numDeletionVectorsRemoved": "1",
        "numDeletionVectorsUpdated": "1",
        "numAddedFiles": "0",
        "numAddedChangeFiles": "0",
        "numDeletedRows": "70",
        "numAddedBytes": "0",
    }


@pytest.mark.parametrize("count", [1, 4, 9])
def test_quartiles_of_sizes_are_those_of_an_engine(made: HandMade, count: int) -> None:
    adds = tuple({"path": str(size), "size": size} for size in range(count, 0, -1))
    counted = commit_info(opened(made).snapshot(), DeltaEdit((), adds, Intent()), now_ms=1)["operationMetrics"]
    assert isinstance(counted, dict)
    # OptimizeMetrics takes the element at count * quarter / 4, of whole numbers.
    quarters = [1 + int(count * part) for part in (0, 0.25, 0.5, 0.75)]
    names = ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize")
    assert [int(counted[name]) for name in names] == [*quarters, count]


def test_a_remove_repeats_the_vector_and_what_else_was_known(made: HandMade) -> None:
    before = made.live()
    _, candidate = staged(opened(made), a_run(), DAYS[:1])
    assert made.live() == before
    removes = of_kind(lines(made, candidate.metadata), "remove")
    assert {remove["path"] for remove in removes} == {p for p, add in before.items() if DAYS[0] in p}
    for remove in removes:
        add = before[remove["path"]]
        assert remove == {
            "path": add["path"],
            "deletionTimestamp": NOW_MS + 7,
            "dataChange": False,
            "extendedFileMetadata": True,
            "partitionValues": {"day": DAYS[0]},
            "size": add["size"],
            "deletionVector": add["deletionVector"],
            "stats": json.dumps({"numRecords": json.loads(add["stats"])["numRecords"]}, separators=(",", ":")),
        }


def test_actions_come_in_the_order_that_readers_rely_on(tracked: HandMade) -> None:
    _, candidate = staged(opened(tracked), a_run())
    kinds = [kind for kind, _ in lines(tracked, candidate.metadata)]
    assert kinds == ["commitInfo", *["remove"] * 6, *["add"] * 3, "domainMetadata"]
    assert next(iter(lines(tracked, candidate.metadata)[0][1])) == "inCommitTimestamp"


def test_a_file_that_several_tasks_read_is_removed_once(made: HandMade) -> None:
    table, run = opened(made), a_run()
    unit = table.snapshot().by_key[UnitKey(f"day={DAYS[0]}")]
    halves = [laid_anew(table, replace(unit, files=(file,)), run) for file in unit.files]
    shared = [replace(half, edit=replace(half.edit, removed=unit.files)) for half in halves]  # type: ignore[type-var]
    candidate = table.commits.stage(table.snapshot(), shared, run)
    found = lines(made, candidate.metadata)
    assert (len(of_kind(found, "remove")), len(of_kind(found, "add"))) == (2, 2)
    assert candidate.units == (unit.key,)
    assert not table.gate.faults(table.snapshot(), table.staged(candidate), candidate.units)


def test_a_file_that_is_not_live_cannot_be_removed(made: HandMade) -> None:
    table, run = opened(made), a_run()
    rewrites, _ = staged(table, run)
    made.delete(DAYS[1], [3])
    with pytest.raises(CorruptMetadata, match=r"version 8, day=2026-11-02: expected .* as it was rewritten"):
        table.commits.stage(table.snapshot(), rewrites, run)


def test_time_never_runs_backwards(tracked: HandMade) -> None:
    """The clock of this machine may lag behind that of the last writer."""
    table = opened(tracked)
    for lag_ms in (-10_000, 0, 5_000):
        snapshot = table.snapshot()
        assert snapshot.in_commit_timestamp is not None
        run = a_run(now_ms=snapshot.in_commit_timestamp + lag_ms)
        _, candidate = staged(table, run, DAYS[:1])
        (info,) = of_kind(lines(tracked, candidate.metadata), "commitInfo")
        assert info["inCommitTimestamp"] == max(run.now_ms, snapshot.in_commit_timestamp + 1)
        assert info["timestamp"] == max(run.now_ms, snapshot.commit_info["timestamp"])  # type: ignore[type-var]
        assert table.commits.commit(candidate)


def test_new_files_get_row_ids_above_all_others_and_rows_keep_theirs(tracked: HandMade) -> None:
    table = opened(tracked)
    before = rows(table)
    _, candidate = staged(table, a_run())
    found = lines(tracked, candidate.metadata)
    assert [(add["baseRowId"], add["defaultRowCommitVersion"]) for add in of_kind(found, "add")] == [
        (450, 8),
        (500, 8),
        (650, 8),
    ]
    (domain,) = of_kind(found, "domainMetadata")
    assert (domain["domain"], json.loads(domain["configuration"])) == ("delta.rowTracking", {"rowIdHighWaterMark": 799})
    assert of_kind(found, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}
    assert table.commits.commit(candidate)
    assert rows(table) == before
    assert table.snapshot().row_id_high_water_mark == 799


def test_a_file_that_gets_another_vector_keeps_its_row_ids(tracked: HandMade) -> None:
    table, run = opened(tracked), a_run()
    unit = table.snapshot().by_key[UnitKey(f"day={DAYS[0]}")]
    file = unit.files[0]
    (vector,) = tracked.vectors({file.path: tracked.deleted(file.raw)}).values()
    bare = {k: v for k, v in file.raw.items() if k not in ("baseRowId", "defaultRowCommitVersion")}
    edit = DeltaEdit((file,), ({**bare, "deletionVector": vector, "dataChange": False},))
    before = rows(table)
    candidate = table.commits.stage(
        table.snapshot(), [replace(laid_anew(table, unit, run), edit=edit, outputs=())], run
    )
    assert not table.gate.faults(table.snapshot(), table.staged(candidate), candidate.units)
    (add,) = of_kind(lines(tracked, candidate.metadata), "add")
    assert (add["baseRowId"], add["defaultRowCommitVersion"]) == (
        file.raw["baseRowId"],
        file.raw["defaultRowCommitVersion"],
    )
    assert not of_kind(lines(tracked, candidate.metadata), "domainMetadata")
    assert table.commits.commit(candidate)
    assert rows(table) == before


def test_files_without_a_row_left_are_removed_and_nothing_added(made: HandMade) -> None:
    """delta-spark leaves such a partition as it is: it commits nothing where nothing is added."""
    every = [add["path"] for add in made.live().values() if DAYS[1] in add["path"]]
    hidden = made.vectors(
        {path: BitMap64(range(json.loads(made.live()[path]["stats"])["numRecords"])) for path in every}
    )
    actions: list[dict[str, Any]] = []
    for path in every:
        add = made.live()[path]
        actions += [{"remove": removal(add)}, {"add": add | {"deletionVector": hidden[path]}}]
    made.commit("DELETE", *actions)
    table, run = opened(made), a_run()
    _, candidate = staged(table, run, DAYS[1:2])
    found = lines(made, candidate.metadata)
    assert (len(of_kind(found, "remove")), of_kind(found, "add")) == (2, [])
    metrics = of_kind(found, "commitInfo")[0]["operationMetrics"]
    assert (metrics["numAddedFiles"], "minFileSize" in metrics) == ("0", False)
    parent, after = table.snapshot(), table.staged(candidate)
    assert not table.gate.faults(parent, after, candidate.units)
    assert after.by_key[candidate.units[0]].files == ()
    assert table.commits.commit(candidate)
    assert set(made.live()) & set(every) == set()


# Publishing


def test_publishing_creates_exactly_the_staged_bytes(made: HandMade) -> None:
    table = opened(made)
    _, candidate = staged(table, a_run())
    told, listed = (made.folder / candidate.metadata).read_bytes(), set((made.folder / "_delta_log").iterdir())
    assert table.commits.commit(candidate)
    published = made.folder / "_delta_log/00000000000000000008.json"
    assert published.read_bytes() == told
    assert set((made.folder / "_delta_log").iterdir()) == listed - {made.folder / candidate.metadata} | {published}


def test_a_version_of_someone_else_is_not_ours(made: HandMade) -> None:
    table = opened(made)
    _, candidate = staged(table, a_run())
    assert not table.commits.visible(candidate)
    made.append(DAYS[0], [1])
    assert not table.commits.commit(candidate)
    assert not table.commits.visible(candidate)
    assert (made.folder / candidate.metadata).exists(), "it may be committed as another version"


@dataclass(frozen=True)
class Unlucky(LocalStorage):
    """Says that it created nothing: `before` may have been quicker, or the answer was lost."""

    before: Callable[[], None] = lambda: None

    def put_if_absent(self, name: str, data: bytes, **known: Any) -> bool:
        self.before()
        LocalStorage.put_if_absent(self, name, data, **known)
        return False


def test_a_commit_whose_answer_is_lost_is_ours_by_its_content(made: HandMade) -> None:
    table = opened(made)
    _, candidate = staged(table, a_run())
    assert commit(Unlucky(str(made.folder)), candidate)
    assert table.commits.visible(candidate)
    assert not (made.folder / candidate.metadata).exists()


def test_a_commit_that_another_writer_made_first_is_not_ours(made: HandMade) -> None:
    table = opened(made)
    _, candidate = staged(table, a_run())
    assert not commit(Unlucky(str(made.folder), before=lambda: made.append(DAYS[0], [1])), candidate)
    assert not table.commits.visible(candidate)
    assert (made.folder / candidate.metadata).exists()


def test_files_are_not_removed_later_than_now_by_the_clock_of_the_store(made: HandMade) -> None:
    """A remove of tomorrow would keep its file for a day longer than the table asks for."""
    ahead_ms = time.time_ns() // 10**6 + 24 * 3_600_000
    _, candidate = staged(opened(made), a_run(now_ms=ahead_ms))
    removes = of_kind(lines(made, candidate.metadata), "remove")
    assert {remove["deletionTimestamp"] < ahead_ms - 3_600_000 for remove in removes} == {True}
    assert list((made.folder / "_delta_log").glob(".staged-*")) == [made.folder / candidate.metadata]


def test_a_run_finds_its_commit_below_others_but_not_for_ever(made: HandMade) -> None:
    table, run = opened(made), a_run()
    _, candidate = staged(table, run, DAYS[1:])
    assert table.commits.commit(candidate)
    made.append(DAYS[0], [1])
    (done,) = table.commits.committed(a_run())
    assert (done.version, done.parent_version, set(done.units)) == (8, 7, set(candidate.units))
    assert done.parent is not None
    assert (done.identity.commit, done.parent.commit) == (table.digest(8), table.digest(7))
    assert table.commits.committed(a_run("another")) == ()
    late_ms = NOW_MS + RETRY_HORIZON_MS + 1_000
    assert table.commits.committed(a_run(now_ms=late_ms)) != (), "a clock that is ahead tells nothing"
    made.append(DAYS[0], [2])
    _at_time(made, 10, late_ms)
    assert table.commits.committed(a_run(now_ms=late_ms)) == ()
    _at_time(made, 9, None)
    assert table.commits.committed(a_run(now_ms=late_ms)) != (), "a commit without a time tells nothing"


def _at_time(made: HandMade, version: int, time_ms: int | None) -> None:
    path = made.folder / f"_delta_log/{version:020d}.json"
    first, *others = path.read_text().splitlines()
    info = json.loads(first)["commitInfo"] | {"timestamp": time_ms}
    path.write_text("\n".join([json.dumps({"commitInfo": info}), *others, ""]))


def test_a_folder_without_a_log_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(AddressError, match="expected a Delta table, found nothing in its folder _delta_log"):
        open_table(Address("delta", str(tmp_path), "nothing"))


def test_the_way_back_is_a_statement_of_the_engine(tmp_path: Path) -> None:
    made = filled(HandMade(tmp_path / "a`b"))
    assert opened(made).commits.rollback(3) == f"RESTORE TABLE delta.`{tmp_path}/a``b` TO VERSION AS OF 3"


# Conflicts


def _metadata(change: Callable[[dict[str, Any]], None]) -> Callable[[HandMade], None]:
    def altered(made: HandMade) -> None:
        (raw,) = of_kind(lines(made, "_delta_log/00000000000000000000.json"), "metaData")
        change(raw)
        made.commit("SET TBLPROPERTIES", {"metaData": raw})

    return altered


def _identity(mark: int) -> Callable[[dict[str, Any]], None]:
    def moved(raw: dict[str, Any]) -> None:
        schema = json.loads(raw["schemaString"])
        schema["fields"][0]["metadata"] = {"delta.identity.highWaterMark": mark}
        raw["schemaString"] = json.dumps(schema)

    return moved


def _with_field(name: str, metadata: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    def told(raw: dict[str, Any]) -> None:
        schema = json.loads(raw["schemaString"])
        others = [field for field in schema["fields"] if field["name"] != name]
        field = {"name": name, "type": "double", "nullable": True, "metadata": metadata}
        raw["schemaString"] = json.dumps({**schema, "fields": [*others, field]})

    return told


def _upgraded(made: HandMade) -> None:
    (raw,) = of_kind(lines(made, "_delta_log/00000000000000000000.json"), "protocol")
    made.commit("UPGRADE PROTOCOL", {"protocol": raw | {"writerFeatures": [*raw["writerFeatures"], "appendOnly"]}})


NOBODY: tuple[str, ...] = ()
MEANWHILE: dict[str, tuple[Callable[[HandMade], None], tuple[str, ...]]] = {
    "an append to an input's partition": (lambda made: made.append(DAYS[0], [1]), NOBODY),
    "an append of a new partition": (lambda made: made.append("2026-12-24", [1]), NOBODY),
    "a commit without files": (lambda made: made.commit("VACUUM END"), NOBODY),
    "a transaction of a stream": (lambda made: made.commit("X", {"txn": {"appId": "s", "version": 3}}), NOBODY),
    "identity numbers given away": (_metadata(_identity(17)), NOBODY),
    "a delete by vectors": (lambda made: made.delete(DAYS[1], [5]), (DAYS[1],)),
    "a delete that adds to a vector": (lambda made: made.delete(DAYS[0], [120]), (DAYS[0],)),
    "a delete of whole files": (lambda made: made.delete(DAYS[1], range(150)), (DAYS[1],)),
    "a column": (_metadata(_with_field("late", {})), DAYS),
    "what a column says": (_metadata(_with_field("price", {"comment": "net"})), DAYS),
    "a property": (_metadata(lambda raw: raw["configuration"].update({"delta.appendOnly": "true"})), DAYS),
    "a protocol upgrade": (_upgraded, DAYS),
}


@pytest.mark.parametrize("name", MEANWHILE)
def test_what_conflicts_and_what_does_not(made: HandMade, name: str) -> None:
    table, run = opened(made), a_run()
    planned = table.snapshot()
    rewrites, _ = staged(table, run)
    act, lost = MEANWHILE[name]
    act(made)
    found = dict(table.commits.conflicts(planned, table.snapshot(), rewrites))
    assert {str(key) for key in found} == {f"day={day}" for day in lost}
    assert all(reason for reason in found.values())


def test_another_layout_of_our_inputs_conflicts(made: HandMade) -> None:
    """Whatever its dataChange: two OPTIMIZE of the same files would leave every row twice (delta-rs PR #3982)."""
    table = opened(made)
    planned = table.snapshot()
    rewrites, _ = staged(table, a_run())
    assert table.commits.commit(staged(table, a_run("other"), DAYS[:1])[1])
    found = table.commits.conflicts(planned, table.snapshot(), rewrites)
    assert [str(key) for key, _ in found] == [f"day={DAYS[0]}"]


def test_identity_numbers_do_not_hide_another_change(made: HandMade) -> None:
    table = opened(made)
    planned = table.snapshot()
    rewrites, _ = staged(table, a_run())

    def both(raw: dict[str, Any]) -> None:
        _identity(3)(raw)
        raw["configuration"]["delta.dataSkippingNumIndexedCols"] = "1"

    _metadata(both)(made)
    assert len(table.commits.conflicts(planned, table.snapshot(), rewrites)) == len(DAYS)


# Parts


@pytest.mark.parametrize("part_bytes", [1, 2_000, 5_000, 1 << 40])
def test_parts_hold_every_file_once_and_shared_ones_together(made: HandMade, part_bytes: int) -> None:
    table = opened(made)
    for start in range(1000, 1006):
        made.append(DAYS[1], [start])
    base = table.snapshot().by_key[UnitKey(f"day={DAYS[1]}")]
    new = laid_anew(table, replace(base, files=base.files[:4]), a_run()).edit
    assert isinstance(new, DeltaEdit)
    candidate = table.commits.stage(
        table.snapshot(), [laid_anew(table, replace(base, files=base.files[:4]), a_run())], a_run()
    )
    after = table.staged(candidate).by_key[base.key]
    parts = pieces(base, after, part_bytes=part_bytes)
    assert all(left.key == right.key == base.key for left, right in parts)
    for side, whole in ((0, base), (1, after)):
        held = [file for part in parts for file in part[side].files]
        assert sorted(held, key=lambda file: file.path) == list(whole.files)
    for left, right in parts:
        shared = {f.path for f in left.files} & {f.path for f in after.files}
        assert shared == {f.path for f in right.files} & {f.path for f in base.files}
    assert (len(parts) == 1) is (part_bytes == 1 << 40)


def rows(table: DeltaTable) -> list[tuple[object, ...]]:
    """Every row with every column, row ids among them, in an order of their own."""
    found: list[tuple[object, ...]] = []
    for unit in table.snapshot().units:
        for batch in table.gate.rows(unit, table.gate.survivors(unit, View.RAW)):
            found += [tuple(row.values()) for row in batch.to_pylist()]
    return sorted(found, key=repr)


# Several commits of one run


def test_a_run_may_commit_several_times_and_knows_its_own(made: HandMade) -> None:
    """Each batch is staged on the planned version, and rebased on the run's own commits before it."""
    truth = made.rows()
    document = optimize(made.folder, run_id="night", commit_size="1B")
    assert (document.outcome, document.base_version) == (Outcome.VERIFIED, 7), document.reason
    assert [commit.version for commit in document.commits] == [8, 9, 10] == commits_of(made.folder, "night")
    assert sorted(str(key) for commit in document.commits for key in commit.units) == [f"day={day}" for day in DAYS]
    assert made.rows() == truth
    told = [of_kind(lines(made, f"_delta_log/{version:020d}.json"), "commitInfo")[0] for version in (8, 9, 10)]
    assert [info["readVersion"] for info in told] == [7, 8, 9]
    assert len({info["userMetadata"] for info in told}) == 1 and len({info["txnId"] for info in told}) == 3
