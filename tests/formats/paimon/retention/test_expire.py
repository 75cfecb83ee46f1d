"""Snapshots that may go, as Java lets them go; afterwards the same files are left, and engines go on."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain, count
from pathlib import Path

import pytest
from tests.drivers.history import play
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Scan
from tests.drivers.pypaimon_oracle import PyPaimon
from tests.drivers.random_history import random_history
from tests.formats.paimon.breaking import breaking
from tests.formats.paimon.contents import SAMPLES, opened
from tests.formats.paimon.keeping import (
    DAYS,
    KEYLESS,
    VECTORS,
    aged,
    busy,
    expired,
    live_names,
    names,
    reads,
    retention,
    rows,
    run,
    swept,
)
from tests.support.faulty_store import Fuse, fail
from tests.support.table_storage import storage_of

from nightkeep.errors import CorruptMetadata, RefusedTable
from nightkeep.formats.paimon.metadata.entries import read_list
from nightkeep.model import Operation, Outcome
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.protocol.table_files import ExpireRequest
from nightkeep.retention.orphans.sweep_request import SweepOrder

NOW = {"snapshot.num-retained.min": "1", "snapshot.time-retained": "0 ms"}
Prepared = Callable[[PaimonJava, Path], object]


def _tagged(java: PaimonJava, table: Path) -> None:
    java.create_tag(table, "early", snapshot=2)
    java.create_tag(table, "late", snapshot=5)


def _consumed(java: PaimonJava, table: Path) -> None:
    java.set_consumer(table, "stream", snapshot=4)


def _untouched(java: PaimonJava, table: Path) -> None:
    pass


CASES: Mapping[str, tuple[Mapping[str, str], Prepared]] = {
    "all but one": (NOW, _untouched),
    "at least four": ({**NOW, "snapshot.num-retained.min": "4"}, _untouched),
    "at most three": ({"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "3"}, _untouched),
    "two a time": ({**NOW, "snapshot.expire.limit": "2"}, _untouched),
    "too young": ({"snapshot.num-retained.min": "1", "snapshot.time-retained": "1 h"}, _untouched),
    "tagged": (NOW, _tagged),
    "consumed": (NOW, _consumed),
    "consumed changelog": ({**NOW, "consumer.changelog-only": "true"}, _consumed),
}


@pytest.mark.few(2)
@pytest.mark.in_turn("producer")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
def test_what_is_left_is_what_java_leaves(case: str, producer: str, paimon_java: PaimonJava, tmp_path: Path) -> None:
    options, prepare = CASES[case]
    ours = busy(paimon_java, tmp_path / "ours", options={**VECTORS, "changelog-producer": producer})
    prepare(paimon_java, ours)
    _set(paimon_java, ours, options)
    theirs = tmp_path / "theirs"
    shutil.copytree(ours, theirs)

    dry = expired(ours, mode=SweepMode.DRY_RUN)
    done = expired(ours)
    count = paimon_java.expire_as_configured(theirs)

    assert len(done.expiry.roots) == count
    assert _without_hints(ours) == _without_hints(theirs) | _kept_changelogs(ours, case, producer)
    assert (dry.counted and dry.counted.orphans) == (done.counted and done.counted.orphans)
    assert reads(paimon_java, ours) == reads(paimon_java, theirs)


def _set(java: PaimonJava, table: Path, options: Mapping[str, str]) -> None:
    """Once all is written: Java's writers let snapshots go as soon as they may."""
    java.alter(table, *({"change": "set_option", "name": name, "value": value} for name, value in options.items()))


def _without_hints(table: Path) -> set[str]:
    return {name for name in names(table) if not name.startswith("snapshot/E")}


def _kept_changelogs(table: Path, case: str, producer: str) -> set[str]:
    """Java takes the changelog of a tagged snapshot with it; here it stays as long as the tag."""
    if (case, producer) != ("tagged", "input"):
        return set()
    tags = [root.task.raw.get("changelogManifestList") for root in opened(table).retention.roots(retention())]
    lists = [read_list(storage_of(opened(table)), str(name)) for name in tags if name is not None]
    manifests = [meta["_FILE_NAME"] for found in lists for meta in found.records]
    return {
        name for name in live_names(table) if name.rpartition("/")[2] in {*manifests, *tags} or "/changelog-" in name
    }


def test_a_request_only_makes_it_gentler(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table")
    _set(paimon_java, table, {**NOW, "snapshot.num-retained.min": "5"})
    at = {int(snapshot["id"]): int(snapshot["timeMillis"]) for snapshot in paimon_java.snapshots(table)}
    assert sorted(at) == [*range(1, 10)]

    def going(**request: object) -> list[int | None]:
        return [root.version for root in expired(table, mode=SweepMode.DRY_RUN, **request).expiry.roots]

    assert going() == [1, 2, 3, 4]
    assert going(retain_last=2) == [1, 2, 3, 4]
    assert going(retain_last=7) == [1, 2]
    assert going(keep=frozenset({3, 8})) == [1, 2]
    assert going(keep=frozenset({1})) == []
    assert going(older_than_ms=0, now_ms=at[3] + 1) == [1, 2]
    assert going(older_than_ms=0, now_ms=at[3]) == [1]
    assert going(older_than_ms=3_600_000) == []


def test_every_kept_version_has_a_reason(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table", rounds=1)
    paimon_java.set_consumer(table, "stream", snapshot=2)
    _set(paimon_java, table, NOW)

    found = expired(table, mode=SweepMode.DRY_RUN).expiry

    assert [root.version for root in found.roots] == [1]
    assert {*found.kept} == {
        ("snapshot/snapshot-2", "consumer/consumer-stream reads it next"),
        ("snapshot/snapshot-3", "consumer/consumer-stream reads it next"),
    }


@pytest.mark.few(1)
@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
def test_engines_go_on_after_an_expiry(
    producer: str, paimon_java: PaimonJava, pypaimon: PyPaimon, tmp_path: Path
) -> None:
    table = busy(paimon_java, tmp_path / "table", options={**VECTORS, "changelog-producer": producer})
    _tagged(paimon_java, table)
    branch = paimon_java.create_branch(table, "dev", tag="early")
    paimon_java.delete_tag(table, "early")
    paimon_java.write(branch, [("+I", 1, DAYS[0], "branch")])
    before, of_branch = reads(paimon_java, table), reads(paimon_java, branch)
    tag = rows(paimon_java, table, scan_tag__name="late")
    _set(paimon_java, table, {**NOW, "snapshot.num-retained.min": "2"})

    done = expired(table)

    assert done.outcome is Outcome.VERIFIED and len(done.expiry.roots) == 7
    assert reads(paimon_java, table) == {number: before[number] for number in (8, 9)}
    assert reads(paimon_java, branch) == of_branch
    assert rows(paimon_java, table, scan_tag__name="late") == tag
    assert sorted(pypaimon.read(table, Scan(options={"deletion-vectors.merge-on-read": "true"})).rows) == before[9]
    paimon_java.write(table, [("+I", 1, DAYS[0], "after")])
    paimon_java.compact(table, Compaction(full=True))
    assert (1, DAYS[0], "after") in rows(paimon_java, table)
    paimon_java.expire(table)
    assert reads(paimon_java, branch) == of_branch
    paimon_java.delete_tag(table, "late")
    paimon_java.drop_branch(table, "dev")
    aged(table)
    assert swept(table, SweepOrder(SweepMode.DELETE))[0].outcome is Outcome.VERIFIED
    assert (1, DAYS[0], "after") in rows(paimon_java, table)
    assert {name for name in names(table) if name.startswith("day=")} <= {*live_names(table)}


def test_a_table_without_keys(paimon_java: PaimonJava, tmp_path: Path) -> None:
    ours = busy(paimon_java, tmp_path / "ours", options=KEYLESS, keys=())
    paimon_java.truncate(ours, {"day": DAYS[1]})
    theirs = tmp_path / "theirs"
    shutil.copytree(ours, theirs)

    for table in (ours, theirs):
        _set(paimon_java, table, NOW)
    paimon_java.expire_as_configured(theirs)

    assert expired(ours).outcome is Outcome.VERIFIED
    assert _without_hints(ours) == _without_hints(theirs)
    assert reads(paimon_java, ours) == reads(paimon_java, theirs)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", [3, 13, 37, 42, 49])
def test_random_histories_are_left_as_java_leaves_them(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    ours, theirs, history = tmp_path / "ours", tmp_path / "theirs", random_history(seed)
    paimon_java.create(ours, history.layout)
    play(paimon_java, ours, history.steps)
    versions = paimon_java.snapshots(ours)
    paimon_java.create_tag(ours, "t", snapshot=versions[len(versions) // 3]["id"])
    _set(paimon_java, ours, {**NOW, "snapshot.num-retained.min": "2"})
    shutil.copytree(ours, theirs)

    done, count = expired(ours), paimon_java.expire_as_configured(theirs)

    assert len(done.expiry.roots) == count > 0
    tagged = {name for name in live_names(ours) if name not in names(theirs)}
    assert _without_hints(ours) == _without_hints(theirs) | tagged
    assert not any("/data-" in name for name in tagged)


def test_killed_at_any_step_it_leaves_what_can_be_read(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = busy(paimon_java, tmp_path / "made", rounds=2)
    _set(paimon_java, made, NOW)
    before, burnt, last = reads(paimon_java, made), 0, tmp_path / "0"
    # Snapshots go first, each by two points; of the files that follow one is as good as another.
    for at in chain(range(1, 20), count(20, 9)):
        table, fuse = tmp_path / str(at), Fuse(at, fail)
        shutil.copytree(made, table)
        try:
            with breaking(fuse):
                expired(table)
        except OSError:
            burnt += 1
        left = reads(paimon_java, table)
        assert left == {number: before[number] for number in left} and 6 in left
        aged(table)
        assert expired(table).outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
        aged(table)
        swept(table, SweepOrder(SweepMode.DELETE))
        assert reads(paimon_java, table) == {6: before[6]}
        assert _counted(table) == _counted(last) or at == 1
        last = table
        if len(fuse.passed) < at:
            break
    assert burnt > 10


def _counted(table: Path) -> Counter[str]:
    return Counter(name.split("-")[0] for name in names(table))


def test_another_version_of_the_same_number_does_not_go(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table", rounds=1)
    _set(paimon_java, table, NOW)
    found, request = opened(table), ExpireRequest(time.time_ns() // 1_000_000)
    planned = found.retention.expiry(request)
    assert [root.version for root in planned.roots] == [1, 2]
    paimon_java.rollback(table, snapshot=1)
    paimon_java.write(table, [("+I", 1, DAYS[0], "again")])
    before = names(table)

    assert not planned.forget(run("weekly", Operation.EXPIRE))

    assert names(table) == before
    assert [root.version for root in found.retention.expiry(ExpireRequest(time.time_ns() // 1_000_000)).roots] == [1]


def test_to_forget_again_is_safe(paimon_java: PaimonJava, tmp_path: Path) -> None:
    table = busy(paimon_java, tmp_path / "table", rounds=1)
    _set(paimon_java, table, NOW)
    found = opened(table)
    planned = found.retention.expiry(ExpireRequest(time.time_ns() // 1_000_000))
    (table / "snapshot/snapshot-1").unlink()

    assert planned.forget(run("weekly", Operation.EXPIRE))
    assert planned.forget(run("weekly", Operation.EXPIRE))

    assert {name for name in names(table) if name.startswith("snapshot/")} == {
        "snapshot/EARLIEST",
        "snapshot/LATEST",
        "snapshot/snapshot-3",
    }
    assert (table / "snapshot/EARLIEST").read_text() == "3"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"changelog.num-retained.max": "30", "snapshot.num-retained.max": "20"}, "changelogs retained longer"),
        ({"changelog.time-retained": "2 h"}, "changelogs retained longer"),
        ({"changelog.num-retained.min": "11"}, "changelogs retained longer"),
        ({"tag.callbacks": "org.example.Tell"}, "option tag.callbacks"),
    ],
)
def test_what_is_not_handled_is_refused_by_name(options: dict[str, str], said: str, tmp_path: Path) -> None:
    table = _sample_with(tmp_path, options)
    with pytest.raises(RefusedTable, match=said):
        opened(table).retention.expiry(ExpireRequest(0))


def test_metadata_in_doubt_lets_nothing_go(tmp_path: Path) -> None:
    table = _sample_with(tmp_path, {"snapshot.num-retained.min": "0"})
    with pytest.raises(CorruptMetadata, match="snapshots to retain"):
        opened(table).retention.expiry(ExpireRequest(0))
    table = _sample_with(tmp_path / "b", {})
    (table / "consumer").mkdir()
    (table / "consumer/consumer-a").write_text('{"nextSnapshot":')
    with pytest.raises(CorruptMetadata, match="consumer-a"):
        opened(table).retention.expiry(ExpireRequest(0))
    table = _sample_with(tmp_path / "c", {})
    (table / "snapshot/snapshot-3").unlink()
    with pytest.raises(CorruptMetadata, match="without a gap"):
        opened(table).retention.expiry(ExpireRequest(0))


def _sample_with(folder: Path, options: Mapping[str, str]) -> Path:
    table = folder / "orders"
    shutil.copytree(SAMPLES / "orders", table)
    schema = json.loads((table / "schema/schema-0").read_bytes())
    schema["options"] |= options
    (table / "schema/schema-0").write_text(json.dumps(schema))
    return table
