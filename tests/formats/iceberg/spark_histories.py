"""Random lives of tables that Spark writes, alters, compacts and expires beside nights of ours; a dict states the rows.

Of one kind each: tables with a sort order of their own, tables whose files we move to the current partition spec,
tables with a branch, and tables with variants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from pyspark.sql.types import VariantVal
from tests.drivers.iceberg_spark import IcebergSpark
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.breaking import branch_of, breaking
from tests.formats.iceberg.ordered_tables import Key, by, in_order, stored
from tests.support.faulty_store import Fuse, fail

import nightkeep
from nightkeep.admission.order import Order
from nightkeep.formats import open_table
from nightkeep.model import Operation, Outcome
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

KINDS = ("own order", "current spec", "branch", "variants")
MAIN = "main"
COLUMNS = "id BIGINT, small INT, name STRING, at TIMESTAMP_NTZ"
SPECS = ("small", "bucket(3, id)", "truncate(2, name)", "months(at)")
ORDERS: Mapping[str, tuple[Key, ...]] = {
    "small DESC NULLS LAST, id": (by("small", direction="desc", nulls="last"), by("id")),
    "name, id DESC NULLS LAST": (by("name"), by("id", direction="desc", nulls="last")),
    "days(at), id": (by("at", "day"), by("id")),
    "bucket(4, id), name NULLS LAST": (by("id", "bucket[4]"), by("name", nulls="last")),
}
VARIANTS = ('{"a":1,"b":[true,null,"x"]}', '{"b":{"c":2},"z":"y"}', "5", "null", '"a text"', "[]", "1.5", '{"a":"one"}')
"""As Spark prints them."""
_EPOCH = datetime(2026, 1, 1)
Row = tuple[int, int | None, str | None, str | None, str | None]


@dataclass
class SparkHistory:
    spark: IcebergSpark
    table: Table
    kind: str
    seed: int
    rows: dict[str, dict[int, Row]] = field(default_factory=lambda: {MAIN: {}})
    done: list[str] = field(default_factory=list)
    next_id: int = 0
    order: str | None = None
    partition: str | None = None

    def __post_init__(self) -> None:
        self.chance = Random(f"{self.kind} {self.seed}")
        self.has_variants = self.kind == "variants"
        version = 3 if self.has_variants else self.chance.choice([1, 2, 2, 3])
        mode = (
            "copy-on-write" if version == 1 else self.chance.choice(["merge-on-read", "merge-on-read", "copy-on-write"])
        )
        modes = ", ".join(f"'write.{verb}.mode'='{mode}'" for verb in ("delete", "update", "merge"))
        self.partition = self.chance.choice([None, *SPECS])
        partitioned = "" if self.partition is None else f"PARTITIONED BY ({self.partition})"
        # The vectorised reader of 1.12 fails where a table has variants and a query reads none of them.
        shreds = ", 'write.parquet.shred-variants'='true', 'read.parquet.vectorization.enabled'='false'"
        unfit = shreds if self.has_variants else ""
        self.spark.attach(self.table.warehouse)
        self.spark.sql(
            f"CREATE NAMESPACE IF NOT EXISTS {self.table.warehouse.name}.db",
            f"CREATE TABLE {self.table.sql} ({COLUMNS}{', v VARIANT' if self.has_variants else ''}) USING iceberg "
            f"{partitioned} TBLPROPERTIES ('format-version'='{version}', {modes}{unfit})",
        )
        if self.kind == "own order":
            self.reorder()
        self.insert()
        if self.kind == "branch":
            self.spark.sql(f"ALTER TABLE {self.table.sql} CREATE BRANCH dev")
            self.rows["dev"] = dict(self.rows[MAIN])

    # What others do

    def steps(self) -> Sequence[Callable[[], None]]:
        others = {"own order": self.reorder, "branch": self.drop_or_move, "variants": self.shred_or_move}
        own = others.get(self.kind, self.respec)
        return (self.insert, self.insert, self.delete, self.delete, self.update, self.compact, self.expire, own, own)

    def insert(self) -> None:
        branch, count = self.branch(), self.chance.randrange(2, 30)
        new = [self.row(number) for number in range(self.next_id, self.next_id + count)]
        self.next_id += count
        self.spark.sql(f"INSERT INTO {self.at(branch)} VALUES {', '.join(map(self._literal, new))}")
        self.rows[branch] |= {row[0]: row for row in new}

    def row(self, number: int) -> Row:
        chance = self.chance
        moment = _EPOCH + timedelta(hours=chance.randrange(3000), microseconds=chance.randrange(1_000_000))
        return (
            number,
            chance.choice([None, *range(4)]),
            chance.choice([None, "", f"{chance.choice('abc')}{chance.randrange(40)}"]),
            chance.choice([None, moment.isoformat(sep=" ", timespec="microseconds")]),
            chance.choice([None, *VARIANTS]) if self.has_variants else None,
        )

    def delete(self) -> None:
        branch, rest = self.branch(), self.chance.randrange(6)
        self.spark.sql(f"DELETE FROM {self.at(branch)} WHERE id % 6 = {rest}")
        self.rows[branch] = {number: row for number, row in self.rows[branch].items() if number % 6 != rest}

    def update(self) -> None:
        branch, rest = self.branch(), self.chance.randrange(5)
        changed = ", v = parse_json('[9]')" if self.has_variants else ""
        self.spark.sql(f"UPDATE {self.at(branch)} SET small = 9, name = 'updated'{changed} WHERE id % 5 = {rest}")
        for number in [number for number in self.rows[branch] if number % 5 == rest]:
            updated = "[9]" if self.has_variants else None
            self.rows[branch][number] = (number, 9, "updated", self.rows[branch][number][3], updated)

    def compact(self) -> None:
        """Spark's own rewrite, of main: by the table's order if it has one."""
        options = "map('rewrite-all', 'true')"
        strategy = ", strategy => 'sort'" if self.order else ""
        self.call("rewrite_data_files", f"options => {options}{strategy}")

    def expire(self) -> None:
        self.call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")

    def reorder(self) -> None:
        self.order = self.chance.choice([each for each in ORDERS if each != self.order])
        self.spark.sql(f"ALTER TABLE {self.table.sql} WRITE ORDERED BY {self.order}")

    def respec(self) -> None:
        former, self.partition = self.partition, self.chance.choice([e for e in (None, *SPECS) if e != self.partition])
        alter = f"ALTER TABLE {self.table.sql}"
        statements = [] if former is None else [f"{alter} DROP PARTITION FIELD {former}"]
        statements += [] if self.partition is None else [f"{alter} ADD PARTITION FIELD {self.partition}"]
        self.spark.sql(*statements)

    def drop_or_move(self) -> None:
        """The branch begins anew, or main goes to where the branch is if it can."""
        alter = f"ALTER TABLE {self.table.sql}"
        if self.chance.random() < 0.5:
            self.spark.sql(f"{alter} DROP BRANCH dev", f"{alter} CREATE BRANCH dev")
            self.rows["dev"] = dict(self.rows[MAIN])
        else:
            self.respec()

    def shred_or_move(self) -> None:
        """Spark begins to shred variants, or ends it."""
        if self.chance.random() < 0.3:
            self.respec()
        else:
            shreds = self.chance.choice(["true", "false"])
            self.spark.sql(
                f"ALTER TABLE {self.table.sql} SET TBLPROPERTIES ('write.parquet.shred-variants'='{shreds}')"
            )

    def call(self, procedure: str, arguments: str) -> None:
        self.spark.sql(
            f"CALL {self.table.warehouse.name}.system.{procedure}(table => '{self.table.name}', {arguments})"
        )

    def branch(self) -> str:
        return self.chance.choice(list(self.rows))

    def at(self, branch: str) -> str:
        return self.table.sql if branch == MAIN else f"{self.table.sql}.branch_{branch}"

    # Nights of ours

    def night(self) -> None:
        """Whole, or broken at one of its writes and tried again by the same run; perhaps after others went on."""
        branch, number = self.branch(), len(self.done)
        operation = self.chance.choice([Operation.OPTIMIZE, Operation.OPTIMIZE, Operation.PERSIST_DELETES])
        settings: dict[str, Any] = {}
        if operation is Operation.OPTIMIZE:
            settings = {"full": self.chance.random() < 0.4, "target_size": self.chance.choice([2_000, 1 << 20])}
            settings["respec"] = self.kind == "current spec" or self.chance.random() < 0.2
        self.done[-1] += f" of {branch}: {operation} {settings}"
        if self.chance.random() < 0.3:
            with breaking(Fuse(self.chance.randrange(1, 40), fail)):
                self.run(branch, operation, settings, f"night {number}")
            self.check()
            if self.chance.random() < 0.3:
                self.insert()
        outcome = self.run(branch, operation, settings, f"night {number}")
        assert outcome is not Outcome.FAILED
        if settings.get("respec"):
            files = [file for unit in self.opened(branch).snapshot().units for file in unit.files]
            current = self.table.document()["default-spec-id"]
            assert {file.spec_id for file in files} <= {current}, outcome

    def run(self, branch: str, operation: Operation, settings: Mapping[str, Any], run_id: str) -> Outcome:
        policy = EffectivePolicy(self.address(branch), Settings().model_copy(update=dict(settings)), {})
        order = Order(operation, run_id, str(self.table.warehouse.folder / "reports"))
        done = run_operation(policy, order, mapper=lambda: inline)
        self.done[-1] += f" {done.outcome}"
        assert done.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED, Outcome.FAILED), done.reason
        return done.outcome

    def address(self, branch: str) -> Any:
        return branch_of(self.table, "" if branch == MAIN else branch)

    def opened(self, branch: str) -> Any:
        return open_table(self.address(branch))

    # What it is

    def check(self) -> None:
        """Spark and we show every branch as it should be, and files are sorted by the order that they name."""
        for branch, expected in self.rows.items():
            wanted = Counter(map(repr, expected.values()))
            variant = "to_json(v)" if self.has_variants else "NULL"
            shown = self.spark.sql(
                f"SELECT id, small, name, date_format(at, 'yyyy-MM-dd HH:mm:ss.SSSSSS'), {variant} "
                f"FROM {self.at(branch)}"
            ).rows
            assert Counter(repr(tuple(row)) for row in shown) == wanted
            ours = nightkeep.read(str(self.address(branch))).read_all().to_pylist()
            assert Counter(map(_spelled, ours)) == wanted
        if self.order is not None:
            self.require_order(ORDERS[self.order])

    def require_order(self, keys: Sequence[Key]) -> None:
        current = self.table.document()["default-sort-order-id"]
        files = [file for unit in self.opened(MAIN).snapshot().units for file in unit.files]
        for file in files:
            assert file.sort_order_id != current or "-nk-" not in file.path or in_order(stored(file.path), keys), (
                file.path
            )

    def _literal(self, row: Row) -> str:
        number, k, text, at, variant = row
        texts = ["NULL" if text is None else f"'{text}'", "NULL" if at is None else f"TIMESTAMP_NTZ '{at}'"]
        if self.has_variants:
            texts.append("NULL" if variant is None else f"parse_json('{variant}')")
        return f"({number}, {'NULL' if k is None else k}, {', '.join(texts)})"


def check_history(history: SparkHistory, *, steps: int) -> None:
    """Every step, then a last night of each branch; a failure states the steps."""
    try:
        for _ in range(steps):
            step = history.chance.choice([*history.steps(), *[history.night] * 6])
            history.done.append(step.__name__)
            step()
            history.check()
        history.done.append("last night")
        history.night()
        history.check()
    except Exception as failure:
        raise AssertionError(f"{history.kind}, seed {history.seed}: {'; '.join(history.done)}") from failure


def _spelled(row: Mapping[str, Any]) -> str:
    at, variant = row["at"], row.get("v")
    # Spark's own decoder.
    shown = variant and VariantVal(variant["value"], variant["metadata"]).toJson()
    return repr((row["id"], row["small"], row["name"], at and at.isoformat(sep=" ", timespec="microseconds"), shown))
