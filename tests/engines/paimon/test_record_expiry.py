"""Tables whose rows expire by age: Java writes, we compact, Java's readers see the rows before, less the old ones."""

import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Compaction, Layout, Scan, Writer
from tests.formats.paimon.contents import opened
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.formats.paimon.gate import expired_rows as gate_rule
from nightkeep.formats.paimon.metadata.own_commits import expiry_clock
from nightkeep.formats.paimon.rewrite import rewrite as compaction
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import RunDocument
from nightkeep.records.document import CheckStatus
from nightkeep.stages import verify as proof

DAY = 86400
KINDS = ("INT", "BIGINT", "BIGINT in milliseconds", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE")
ENGINES: Sequence[Mapping[str, str]] = (
    {},
    {"sequence.field": "n"},
    {"merge-engine": "partial-update"},
    {"merge-engine": "aggregation", "fields.n.aggregate-function": "max", "fields.t.aggregate-function": "max"},
)
SEEDS = some_extended(range(24), keep=6)


@dataclass
class Aged:
    """A table of one bucket with keys, and what of its content is old: `t` is at least a day from where rows expire."""

    engine: PaimonJava
    table: Path
    kind: str
    options: Mapping[str, str]
    chance: random.Random
    now: int

    def create(self, **more: str) -> None:
        columns = [("k", "INT NOT NULL"), ("n", "INT"), ("t", self.kind.partition(" in ")[0]), ("v", "STRING")]
        options = {
            "bucket": "1",
            "write-only": "true",
            "record-level.expire-time": "3 d",
            "record-level.time-field": "t",
            "num-sorted-run.compaction-trigger": "3",
            **self.options,
            **more,
        }
        self.engine.create(self.table, Layout(columns, ["k"], [], options))

    @property
    def has_vectors(self) -> bool:
        return self.options.get("deletion-vectors.enabled") == "true"

    def time(self, seconds: int | None) -> Any:
        if seconds is None or self.kind == "INT" or self.kind == "BIGINT":
            return seconds
        if self.kind.startswith("BIGINT"):
            return seconds * 1000 + 7
        digits = "milliseconds" if "(3)" in self.kind else "microseconds"
        text = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(timespec=digits)
        return f"{text}Z" if "ZONE" in self.kind else text

    def is_old(self, shown: Any) -> bool:
        limit = self.time(self.now - 3 * DAY)
        return shown is not None and bool(shown < limit)

    def write(self, *, deletes: bool) -> None:
        rows = []
        for key in sorted(self.chance.sample(range(60), self.chance.randrange(1, 30))):
            at = self.chance.choice((None, self.now - 100 * DAY, self.now - 4 * DAY, self.now - 2 * DAY, self.now))
            at = None if at is None else at - self.chance.randrange(1000)
            kind = "-D" if deletes and self.chance.random() < 0.15 else "+I"
            number = self.chance.choice((None, self.chance.randrange(5)))
            rows.append([kind, key, number, self.time(at), self.chance.choice((None, "a", "b"))])
        self.engine.write(self.table, rows, Writer(user="writer"))

    def merged(self) -> list[Any]:
        return sorted(self.engine.read(self.table, Scan(options=MERGE_ON_READ)).rows, key=str)

    def visible(self) -> list[Any]:
        return sorted(self.engine.read(self.table).rows, key=str)

    def staying(self) -> list[Any]:
        return [row for row in self.merged() if not self.is_old(row[2])]

    def care(self, **settings: Any) -> RunDocument:
        operation = Operation.UPGRADE if self.has_vectors else Operation.OPTIMIZE
        return upgrade(self.table, operation=operation, **settings)


def aged(engine: PaimonJava, seed: int, folder: Path) -> Aged:
    chance = random.Random(seed)
    options = {**ENGINES[seed % 4], **({"deletion-vectors.enabled": "true"} if seed // 4 % 2 else {})}
    if chance.random() < 0.2:
        options["metadata.stats-mode"] = "none"
    made = Aged(engine, folder / "table", KINDS[seed % 6], options, chance, int(time.time()))
    made.create()
    return made


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", SEEDS)
def test_readers_see_what_was_there_less_what_is_old(
    paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    made = aged(paimon_java, seed, tmp_path)
    cared = 0
    for _ in range(6):
        made.write(deletes="merge-engine" not in made.options)
        if made.chance.random() < 0.3:
            continue
        before, staying = made.merged(), made.staying()
        document = made.care(full=made.chance.random() < 0.4)
        assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), document.reason
        if document.outcome is Outcome.UNCHANGED:
            assert made.merged() == before
            continue
        cared += 1
        assert document.plan.clock_ms is not None
        assert made.visible() == made.merged() == staying
        assert document.metrics.extra.get("rows_expired", 0) >= len(before) - len(staying)
        assert_checked(spark, made, document)
        if made.chance.random() < 0.3:
            paimon_java.compact(made.table, Compaction(user="java"))
            assert set(made.merged()) >= set(made.staying())
    assert cared


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("kind", some_extended(KINDS, keep=2))
def test_java_drops_the_same_rows(paimon_java: PaimonJava, tmp_path: Path, kind: str, vectors: str) -> None:
    """In a full compaction of rows that become no older by being replaced."""
    options = {"deletion-vectors.enabled": vectors}
    made = Aged(paimon_java, tmp_path / "table", kind, options, random.Random(5), int(time.time()))
    made.create()
    for days in (100, 4, 2, 0):
        keys = sorted(made.chance.sample(range(400), 200))
        at = made.time(made.now - days * DAY)
        paimon_java.write(made.table, [["+I", key, days, at, "v"] for key in keys], Writer(user="writer"))
    other = Path(shutil.copytree(made.table, tmp_path / "java"))
    staying = made.staying()
    assert staying != made.merged()
    paimon_java.compact(other, Compaction(full=True, user="java"))
    assert made.care(full=True).outcome is Outcome.VERIFIED
    assert sorted(paimon_java.read(other).rows, key=str) == made.visible() == staying


def test_a_full_compaction_drops_rows_that_became_old_on_the_top_level(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = _with_old_rows(paimon_java, tmp_path, "true")
    assert made.care(full=True).outcome is Outcome.VERIFIED
    before = made.visible()
    paimon_java.alter(made.table, {"change": "set_option", "name": "record-level.expire-time", "value": "1 d"})
    assert made.care().outcome is Outcome.UNCHANGED
    assert made.visible() == before
    assert made.care(full=True).outcome is Outcome.VERIFIED
    assert made.visible() == [row for row in before if row[0] < 5] != before


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("level", ["full", "touched"])
def test_the_gate_sees_rows_that_expired_wrongly(
    paimon_java: PaimonJava, tmp_path: Path, vectors: str, level: str
) -> None:
    made = _with_old_rows(paimon_java, tmp_path, vectors)
    before = made.merged()
    for wrong in (_kept, _by_another_clock, _one_more, _stated_otherwise):
        with wrong():
            document = made.care(full=True, verify=level)
        assert (document.outcome, document.committed_version) == (Outcome.MISMATCH, None), (wrong, document.reason)
        assert made.merged() == before
    assert made.care(full=True, verify=level).outcome is Outcome.VERIFIED


@pytest.mark.few(1)
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_the_check_sees_rows_that_expired_wrongly(
    paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path, vectors: str
) -> None:
    """What the gate let through, as it made the same mistake."""
    kept, more = (_with_old_rows(paimon_java, tmp_path / name, vectors) for name in ("kept", "more"))
    with _kept(), _gate_rule(lambda unit, rows, clock_ms: rows):
        assert kept.care(full=True).outcome is Outcome.VERIFIED
    with _by_another_clock(), _gate_rule(lambda unit, rows, clock_ms: RULE(unit, rows, clock_ms + 2 * DAY * 1000)):
        assert more.care(full=True).outcome is Outcome.VERIFIED
    for made in (kept, more):
        assert checked(spark, made).status is CheckStatus.FAILED


def test_a_level0_file_that_came_meanwhile_keeps_old_rows_from_going(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Without vectors: its rows may have been merged with what would be gone."""
    made = _with_old_rows(paimon_java, tmp_path, "false")
    verify = proof.verify

    def late(*values: Any, **options: Any) -> Any:
        checked = verify(*values, **options)
        made.write(deletes=False)
        return checked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nightkeep.running.rewrites.run_operation.verify", late)
        document = made.care(full=True)
    assert document.outcome is Outcome.CONFLICTED, document.reason
    staying = made.staying()
    assert made.care(full=True).outcome is Outcome.VERIFIED
    assert made.merged() == staying


def test_rows_that_wait_are_not_compared(paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path) -> None:
    """With vectors: what came meanwhile is old as well, and goes the next time."""
    made = _with_old_rows(paimon_java, tmp_path, "true")
    staying = made.staying()
    verify = proof.verify

    def late(*values: Any, **options: Any) -> Any:
        checked = verify(*values, **options)
        old = made.time(made.now - 50 * DAY)
        paimon_java.write(made.table, [["+I", key, 1, old, "late"] for key in range(30, 90)], Writer(user="writer"))
        return checked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nightkeep.running.rewrites.run_operation.verify", late)
        document = made.care()
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert made.visible() == staying
    report = check(
        CheckRequest(Address("paimon", str(made.table), "t"), document.committed_version, document.base_version),
        spark=spark,
    )
    assert report.status is CheckStatus.PASSED, report
    assert made.care().outcome is Outcome.VERIFIED
    assert made.visible() == [row for row in staying if row[0] < 30]


def test_a_retry_of_a_run_keeps_the_clock_of_its_commit(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = _with_old_rows(paimon_java, tmp_path, "true")
    first = made.care(full=True, run_id="night")
    clock = expiry_clock(opened(made.table).snapshot().raw)
    again = made.care(full=True, run_id="night")
    assert clock == first.plan.clock_ms
    assert again.committed_version == first.committed_version
    assert expiry_clock(opened(made.table).snapshot().raw) == clock


def test_a_plan_states_the_clock(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = _with_old_rows(paimon_java, tmp_path, "false")
    document = made.care(full=True, dry_run=True)
    assert document.plan.clock_ms is not None
    clock = datetime.fromtimestamp(document.plan.clock_ms / 1000, UTC).isoformat(timespec="milliseconds")
    assert any(clock in note for note in document.plan.notes)


def assert_checked(spark: SparkSession, made: Aged, document: RunDocument) -> None:
    report = checked(spark, made)
    assert report.status is CheckStatus.PASSED, (document.run_id, report)


def checked(spark: SparkSession, made: Aged) -> Any:
    return check(CheckRequest(Address("paimon", str(made.table), "t")), spark=spark)


def _with_old_rows(engine: PaimonJava, folder: Path, vectors: str) -> Aged:
    """Keys of 0 to 59: a third is old, and lies on the top level."""
    made = Aged(
        engine,
        folder / "table",
        "TIMESTAMP(3)",
        {"deletion-vectors.enabled": vectors},
        random.Random(1),
        int(time.time()),
    )
    made.create(**{"record-level.expire-time": "1000 d"})
    for keys, days in ((range(40), 2), (range(40, 60), 5)):
        at = made.time(made.now - days * DAY)
        engine.write(made.table, [["+I", key, 1, at, "v"] for key in keys], Writer(user="writer"))
    engine.compact(made.table, Compaction(full=True, user="java"))
    engine.alter(made.table, {"change": "set_option", "name": "record-level.expire-time", "value": "3 d"})
    now = made.time(made.now)
    engine.write(made.table, [["+I", key, 1, now, "w"] for key in range(5)], Writer(user="writer"))
    return made


RULE = gate_rule.unexpired


@contextmanager
def _gate_rule(rule: Callable[..., pa.RecordBatch]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate_rule, "unexpired", rule)
        yield


@contextmanager
def _rules(rows: Callable[..., pa.Table], positions: Callable[..., Any]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "without_expired", rows)
        patch.setattr(compaction, "expired_positions", positions)
        yield


def _kept() -> Any:
    return _rules(lambda rows, schema, clock_ms: rows, lambda *values, clock_ms: {})


def _by_another_clock() -> Any:
    rows, positions = compaction.without_expired, compaction.expired_positions
    later = 2 * DAY * 1000
    return _rules(
        lambda table, schema, clock_ms: rows(table, schema, clock_ms + later),
        lambda *values, clock_ms: positions(*values, clock_ms=clock_ms + later),
    )


def _one_more() -> Any:
    rows = compaction.without_expired
    return _rules(lambda table, schema, clock_ms: rows(table, schema, clock_ms)[1:], lambda *values, clock_ms: {})


@contextmanager
def _stated_otherwise() -> Iterator[None]:
    made = compaction.Intent
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "Intent", lambda clock_ms: replace(made(), clock_ms=clock_ms + 1))
        yield
