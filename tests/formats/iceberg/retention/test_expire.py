"""Snapshots that may go: as Iceberg Java tells them, by its rules read aloud, and in one commit of ours."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.fault_proxy import Way
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_rest import IcebergRest
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.rest_faults import COMMIT, RestFaults
from tests.formats.iceberg.runs import Kept, changed, configured, contents, opened, row
from tests.formats.iceberg.sweeping import UUID, now_ms, old, reached, rewritten

from nightkeep.errors import CorruptMetadata, RefusedTable, UnknownOutcome
from nightkeep.formats.iceberg.catalog.sql_pointers import SqlPointers
from nightkeep.formats.iceberg.metadata.remove_snapshots import RemovedSnapshots, without
from nightkeep.formats.iceberg.retention.expire import plan_expiry
from nightkeep.model import Run
from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import ExpireRequest, Expiry, Retention
from nightkeep.storage import LocalStorage

pytestmark = pytest.mark.in_turn("kept")

RUN = Run("expiry", "0" * 16, "a", 0)
HOUR_MS = DAY_MS // 24
NOW_MS = 1_800_000_000_000
LOCATION = f"file:///lake/db/t/metadata/00001-{UUID}.metadata.json"


def planned(found: Any, request: ExpireRequest) -> Expiry:
    return plan_expiry("db.t", (found, LOCATION), request, LocalStorage("/"))[0]


def gone(expiry: Expiry) -> list[int | None]:
    return [root.version for root in expiry.roots]


# By the rules, of tables that are nowhere

Snapshots = Sequence[tuple[int | None, int]]
"""Parents, by place, and ages in hours; ids are places from 1 on."""


def document(snapshots: Snapshots, refs: Mapping[str, Mapping[str, Any]], properties: Mapping[str, str]) -> Any:
    return {
        "format-version": 2,
        "table-uuid": UUID,
        "location": "file:///lake/db/t",
        "last-sequence-number": len(snapshots),
        "last-updated-ms": NOW_MS,
        "properties": dict(properties),
        "current-snapshot-id": refs["main"]["snapshot-id"],
        "refs": dict(refs),
        "snapshots": [
            {
                "snapshot-id": number,
                **({} if parent is None else {"parent-snapshot-id": parent}),
                "timestamp-ms": NOW_MS - hours * HOUR_MS,
                "manifest-list": f"file:///lake/db/t/metadata/snap-{number}-1-{UUID}.avro",
            }
            for number, (parent, hours) in enumerate(snapshots, 1)
        ],
        "snapshot-log": [],
    }


def by_the_rules(found: Any, request: ExpireRequest) -> tuple[set[int], set[str]]:
    """What stays, snapshot by snapshot: RemoveSnapshots.java, with the gentler of option and request."""
    times = {each["snapshot-id"]: each["timestamp-ms"] for each in found["snapshots"]}
    parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in found["snapshots"]}
    told = found["properties"]
    max_age = int(told.get("history.expire.max-snapshot-age-ms", 5 * DAY_MS))
    min_kept = int(told.get("history.expire.min-snapshots-to-keep", 1))
    refs = {
        name: ref
        for name, ref in found["refs"].items()
        if name == "main"
        or NOW_MS - times[ref["snapshot-id"]]
        <= ref.get("max-ref-age-ms", int(told.get("history.expire.max-ref-age-ms", 2**62)))
    }
    stays, referenced = {number for number in times if number in request.keep}, set()
    for ref in refs.values():
        at, kept, more = ref["snapshot-id"], 0, True
        stays.add(at)
        referenced.add(at)
        while ref["type"] == "branch" and at is not None:
            referenced.add(at)
            age = max(ref.get("max-snapshot-age-ms", max_age), request.older_than_ms or 0)
            least = max(ref.get("min-snapshots-to-keep", min_kept), request.retain_last or 1)
            more = more and (kept < least or times[at] >= NOW_MS - age)
            if more:
                stays.add(at)
                kept += 1
            at = parents[at]
    young = NOW_MS - max(max_age, request.older_than_ms or 0)
    stays |= {number for number, time in times.items() if number not in referenced and time >= young}
    return stays, set(refs)


@st.composite
def tables(draw: st.DrawFn) -> Any:
    count = draw(st.integers(1, 8))
    hours = st.integers(0, 24 * 8)
    snapshots = [(draw(st.none() | st.integers(1, n)) if n else None, draw(hours)) for n in range(count)]
    ages = {"max-snapshot-age-ms": hours.map(lambda h: h * HOUR_MS), "min-snapshots-to-keep": st.integers(1, 4)}
    ref = st.fixed_dictionaries(
        {"snapshot-id": st.integers(1, count), "type": st.sampled_from(["branch", "tag"])},
        optional={"max-ref-age-ms": hours.map(lambda h: h * HOUR_MS)},
    )
    refs = draw(st.dictionaries(st.sampled_from(["a", "b", "c"]), ref))
    for each in ({"snapshot-id": draw(st.integers(1, count)), "type": "branch"}, *refs.values()):
        refs = {"main": each, **refs} if "main" not in refs else refs
        if each["type"] == "branch":
            each.update(draw(st.fixed_dictionaries({}, optional=ages)))
    keys = {f"history.expire.{key}": value.map(str) for key, value in ages.items()}
    keys["history.expire.max-ref-age-ms"] = hours.map(lambda h: str(h * HOUR_MS))
    return document(snapshots, refs, draw(st.fixed_dictionaries({}, optional=keys)))


@given(
    tables(),
    st.builds(
        ExpireRequest,
        st.just(NOW_MS),
        keep=st.frozensets(st.integers(1, 9), max_size=2),
        older_than_ms=st.none() | st.integers(0, 24 * 8).map(lambda h: h * HOUR_MS),
        retain_last=st.none() | st.integers(1, 4),
    ),
)
def test_what_stays_is_what_the_rules_state(found: Any, request: ExpireRequest) -> None:
    expiry = planned(found, request)
    stays, refs = by_the_rules(found, request)
    assert {int(number) for number, _ in expiry.kept} == stays
    assert set(gone(expiry)) == {each["snapshot-id"] for each in found["snapshots"]} - stays
    times = {each["snapshot-id"]: each["timestamp-ms"] for each in found["snapshots"]}
    ages = [times[number] for number in gone(expiry) if number is not None]
    assert ages == sorted(ages)
    if gone(expiry):
        assert len(expiry.notes) == len(found["refs"]) - len(refs)


def test_each_one_that_stays_has_its_reason() -> None:
    line: Snapshots = [(None, 240), (1, 230), (2, 220), (3, 210), (None, 1), (None, 200), (None, 205)]
    refs = {"main": {"snapshot-id": 4, "type": "branch"}, "v1": {"snapshot-id": 1, "type": "tag"}}
    found = document(line, refs, {"history.expire.min-snapshots-to-keep": "2"})
    expiry = planned(found, ExpireRequest(NOW_MS, keep=frozenset({6})))
    assert gone(expiry) == [2, 7]
    assert dict(expiry.kept) == {
        "4": "branch main",
        "3": "among the last 2 of branch main",
        "1": "tag v1",
        "5": "of no branch and no tag, but young",
        "6": "it was asked to stay",
    }


def test_a_tag_that_is_too_old_goes_with_what_it_kept() -> None:
    refs = {
        "main": {"snapshot-id": 2, "type": "branch"},
        "v1": {"snapshot-id": 1, "type": "tag", "max-ref-age-ms": HOUR_MS},
    }
    expiry = planned(document([(None, 240), (1, 0)], refs, {}), ExpireRequest(NOW_MS))
    assert (gone(expiry), expiry.notes) == ([1], ("tag v1 is too old and goes with them",))
    found = document([(None, 2), (1, 0)], refs, {})
    expiry = planned(found, ExpireRequest(NOW_MS))
    assert (gone(expiry), expiry.notes) == ([], ())


def test_history_begins_after_what_went() -> None:
    refs = {"main": {"snapshot-id": 4, "type": "branch"}}
    found = document([(None, 4), (1, 3), (2, 2), (3, 1)], refs, {})
    log = [{"timestamp-ms": n, "snapshot-id": number} for n, number in enumerate((1, 2, 1, 3, 4))]
    after = without(
        {**found, "snapshot-log": log}, RemovedSnapshots(frozenset({1}), frozenset(), 0), location="l", subject=""
    )
    assert after["snapshot-log"] == log[3:]
    assert after["metadata-log"] == [{"timestamp-ms": NOW_MS, "metadata-file": "l"}]
    assert after["last-updated-ms"] == NOW_MS


def test_no_branch_may_lose_its_snapshot() -> None:
    refs = {"main": {"snapshot-id": 2, "type": "branch"}, "v1": {"snapshot-id": 1, "type": "tag"}}
    found = document([(None, 4), (1, 3)], refs, {})
    for number in (1, 2):
        with pytest.raises(CorruptMetadata, match="none of a branch or tag"):
            without(found, RemovedSnapshots(frozenset({number}), frozenset(), 0), location="l", subject="")
    assert without(found, RemovedSnapshots(frozenset({1}), frozenset({("v1", 1)}), 0), location="l", subject="")


def test_metadata_that_contradicts_itself_plans_nothing() -> None:
    main = {"snapshot-id": 1, "type": "branch"}
    for refs, properties, match in (
        ({"main": main, "v1": {"snapshot-id": 7, "type": "tag"}}, {}, "a snapshot that the table has"),
        ({"main": main}, {"history.expire.max-snapshot-age-ms": "5 days"}, "a number"),
    ):
        with pytest.raises(CorruptMetadata, match=match):
            planned(document([(None, 1)], refs, properties), ExpireRequest(NOW_MS))
    with pytest.raises(RefusedTable, match=r"gc\.enabled"):
        found = document([(None, 1)], {"main": main}, {"gc.enabled": "false"})
        planned(found, ExpireRequest(NOW_MS))


# Against Java


@pytest.fixture(scope="module", params=[2, 3])
def kept(
    request: pytest.FixtureRequest, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kept]:
    """Two branches of which one ended, tags, a snapshot of nobody, and statistics of several."""
    warehouse = Warehouse(f"expiry{request.param}", tmp_path_factory.mktemp("expiry") / "warehouse")
    table = warehouse.table()
    java = iceberg_java
    changed(java, table, version=request.param)
    first, second, *_ = (each["snapshot-id"] for each in table.document()["snapshots"])
    java.refs(table, {"change": "create_branch", "name": "dev", "snapshot": second})
    java.refs(table, {"change": "create_tag", "name": "v1", "snapshot": first})
    for number in range(3):
        java.append(table, [row("2026-11-01", 1000 + number)], branch="dev")
        java.statistics(table)
        java.append(table, [row("2026-11-02", 2000 + number)])
    java.statistics(table, kind="partition")
    last = java.append(table, [row("2026-11-02", 3000)])
    java.refs(table, {"change": "create_tag", "name": "v2", "snapshot": last})
    forgotten = java.append(table, [row("2026-11-02", 4000)])
    java.refs(table, {"change": "rollback", "snapshot": last})
    assert forgotten in {each["snapshot-id"] for each in table.document()["snapshots"]}
    java.append(table, [row("2026-11-03", 5000)])
    with configured(warehouse):
        yield Kept.of(table)


def random_ages(table: Table, random: Random) -> None:
    """Snapshots, properties and refs with ages that both of us are to go by."""
    found = table.document()
    hours = sorted((random.randrange(24 * 8) for _ in found["snapshots"]), reverse=random.random() < 0.8)
    for snapshot, ago in zip(found["snapshots"], hours, strict=True):
        snapshot["timestamp-ms"] = now_ms() - ago * HOUR_MS - HOUR_MS // 2
    properties, prefix = found["properties"], "history.expire"
    options = {
        "max-snapshot-age-ms": lambda: random.randrange(24 * 8) * HOUR_MS,
        "min-snapshots-to-keep": lambda: random.randrange(1, 5),
        "max-ref-age-ms": lambda: random.randrange(24 * 12) * HOUR_MS,
    }
    for key, value in options.items():
        if random.random() < 0.4:
            properties[f"{prefix}.{key}"] = str(value())
        for name, ref in found["refs"].items():
            if (
                random.random() < 0.3
                and (ref["type"] == "branch" or "ref" in key)
                and (name, key) != ("main", "max-ref-age-ms")
            ):
                ref[key] = value()
    rewritten(table, snapshots=found["snapshots"], properties=properties, refs=found["refs"])


def told(table: Table) -> dict[str, Any]:
    """What an expiry may change of a version, and that it changes nothing else."""
    found = table.document()
    volatile = {"last-updated-ms", "metadata-log"}
    # Java writes empty ones, and sorts by what it has in memory.
    plain = {key: value for key, value in found.items() if key not in volatile and value not in (None, [], {})}
    for key in ("snapshots", "statistics", "partition-statistics"):
        plain[key] = sorted(plain.get(key, ()), key=lambda each: each["snapshot-id"])
    return plain


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(12))
def test_java_lets_the_same_snapshots_go(seed: int, kept: Kept, iceberg_java: IcebergJava) -> None:
    table = kept.put_back()
    random_ages(table, Random(seed))
    same = table.document()
    ours = opened(table)
    assert ours.retention.expiry(ExpireRequest(now_ms())).forget(RUN)
    by_us = told(table)
    assert iceberg_java.metadata(table)["snapshots"]
    kept.put_back()
    rewritten(table, **same)
    iceberg_java.expire(table, keep_files=True)
    by_java = told(table)
    if len(by_us["snapshots"]) == len(same["snapshots"]):
        # We leave a ref that is too old until there is a snapshot to go.
        by_us["refs"] = by_java["refs"] = {}
    assert by_us == by_java


def test_files_that_only_they_reach_are_those_that_java_deletes(kept: Kept, iceberg_java: IcebergJava) -> None:
    table = kept.put_back()
    old(table)
    ours = opened(table)
    expiry = ours.retention.expiry(ExpireRequest(now_ms()))
    wanted = {name for files in reached(ours.retention, expiry.roots) for name in files["name"].to_pylist()}
    assert expiry.forget(RUN)
    left = {
        name
        for root in ours.retention.roots(Retention(now_ms(), 0))
        for files in reached(ours.retention, [root])
        for name in files["name"].to_pylist()
    }
    kept.put_back()
    old(table)
    deleted = iceberg_java.expire(table, keep_files=True)
    assert wanted - left == {path.removeprefix("file:").lstrip("/") for path in deleted}
    assert any(path.endswith(".stats") for path in deleted)


# Our commit


@pytest.fixture
def table(kept: Kept) -> Table:
    found = kept.put_back()
    old(found)
    return found


def test_one_commit_and_nothing_else_changes(table: Table, iceberg_java: IcebergJava) -> None:
    before, ours = contents(table), opened(table)
    expiry, was = ours.retention.expiry(ExpireRequest(now_ms())), table.metadata
    assert len(expiry.roots) > 3
    shown = iceberg_java.read(table)
    assert expiry.forget(RUN)
    after = contents(table)
    (new,) = after.keys() - before.keys()
    assert before.items() <= after.items() and new == str(table.metadata)[1:]
    assert table.document()["metadata-log"][-1]["metadata-file"].endswith(was.name)
    assert iceberg_java.read(table) == shown
    assert expiry.forget(RUN), "once more changes nothing"
    assert contents(table) == after
    assert gone(ours.retention.expiry(ExpireRequest(now_ms()))) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda java, table, number: java.refs(table, {"change": "create_tag", "name": "n", "snapshot": number}),
        lambda java, table, number: java.refs(table, {"change": "create_branch", "name": "n", "snapshot": number}),
        lambda java, table, number: java.refs(table, {"change": "set_current", "snapshot": number}),
        lambda java, table, number: java.expire(table, snapshots=[number], retain_last=99, keep_files=True),
    ],
    ids=["tag", "branch", "set_current", "expire"],
)
def test_what_has_to_stay_by_now_stays(
    change: Callable[[IcebergJava, Table, int], object], table: Table, iceberg_java: IcebergJava
) -> None:
    ours = opened(table)
    expiry = ours.retention.expiry(ExpireRequest(now_ms()))
    number = expiry.roots[-1].version
    assert number is not None
    change(iceberg_java, table, number)
    before = contents(table)
    assert not expiry.forget(RUN)
    assert contents(table) == before


def test_an_append_in_between_is_no_obstacle(table: Table, iceberg_java: IcebergJava) -> None:
    ours = opened(table)
    expiry = ours.retention.expiry(ExpireRequest(now_ms()))
    added = iceberg_java.append(table, [row("2026-11-01", 9)])
    assert expiry.forget(RUN)
    there = {each["snapshot-id"] for each in table.document()["snapshots"]}
    assert added in there and not there & set(gone(expiry))


def test_a_race_at_the_catalog_is_lost_without_a_trace(
    table: Table, iceberg_java: IcebergJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = opened(table)
    expiry, swap = ours.retention.expiry(ExpireRequest(now_ms())), SqlPointers.swap

    def late(*arguments: Any, **named: Any) -> bool:
        iceberg_java.append(table, [row("2026-11-01", 9)])
        return swap(*arguments, **named)

    monkeypatch.setattr(SqlPointers, "swap", late)
    assert not expiry.forget(RUN)
    monkeypatch.undo()
    document = table.document()
    assert {*gone(expiry)} <= {each["snapshot-id"] for each in document["snapshots"]}
    names = {Path(entry["metadata-file"]).name for entry in document["metadata-log"]} | {table.metadata.name}
    assert {path.name for path in table.metadata.parent.glob("*.metadata.json")} <= names


@pytest.mark.parametrize("done", [True, False], ids=["done", "not_done"])
def test_a_lost_answer_of_the_catalog(table: Table, monkeypatch: pytest.MonkeyPatch, *, done: bool) -> None:
    ours = opened(table)
    expiry, swap = ours.retention.expiry(ExpireRequest(now_ms())), SqlPointers.swap

    def broken(*arguments: Any, **named: Any) -> bool:
        if done:
            swap(*arguments, **named)
        raise OSError("the line is dead")

    monkeypatch.setattr(SqlPointers, "swap", broken)
    if done:
        assert expiry.forget(RUN)
    else:
        with pytest.raises(UnknownOutcome, match="the line is dead"):
            expiry.forget(RUN)
    with closing(sqlite3.connect(table.warehouse.database)) as connection:
        assert len(connection.execute("SELECT * FROM iceberg_tables").fetchall()) == 1


@pytest.mark.parametrize(
    ("status", "way", "outcome"),
    [
        (None, Way.BEFORE, True),
        (409, Way.BEFORE, False),
        (500, Way.BEFORE, None),
        (503, Way.BEFORE, None),
        (500, Way.AFTER, True),
        (0, Way.AFTER, True),
    ],
)
def test_a_commit_over_rest(
    status: int | None,
    way: Way,
    *,
    outcome: bool | None,
    kept: Kept,
    table: Table,
    iceberg_rest: IcebergRest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server drops statistics of the snapshots, too; main keeps its own retention."""
    prefix = f"PYICEBERG_CATALOG__{kept.table.warehouse.name.upper()}"
    document = table.document()
    with RestFaults(iceberg_rest.serve(table.warehouse)) as faults:
        monkeypatch.delenv(f"{prefix}__WAREHOUSE")
        monkeypatch.setenv(f"{prefix}__TYPE", "rest")
        monkeypatch.setenv(f"{prefix}__URI", faults.endpoint)
        ours = opened(table)
        expiry = ours.retention.expiry(ExpireRequest(now_ms()))
        if status is not None:
            faults.fail(status, request=COMMIT, way=way)
        if outcome is None:
            with pytest.raises(UnknownOutcome):
                expiry.forget(RUN)
        else:
            assert expiry.forget(RUN) is outcome
        after = table.document()
        left = {each["snapshot-id"] for each in after["snapshots"]}
        assert bool(left & {*gone(expiry)}) is (outcome is not True)
        if outcome:
            assert left | {*gone(expiry)} == {each["snapshot-id"] for each in document["snapshots"]}
            assert after["refs"] == document["refs"]
            assert {each["snapshot-id"] for each in after["statistics"]} <= left
            assert expiry.forget(RUN)
