"""Random lives of tables: Java, our writer and our nights change one in any order, and a list of rows says what it is.

A delete by keys reaches rows of its own partition and spec, or all rows where its spec has no partitions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from tests.drivers.iceberg_java import Rewriting
from tests.drivers.iceberg_python import pyiceberg_read
from tests.drivers.json_lines import EngineError
from tests.formats.iceberg import runs
from tests.formats.iceberg.breaking import breaking
from tests.formats.iceberg.nights import Nights
from tests.support.faulty_store import Fuse, fail

from nightkeep.errors import EvidenceError, RefusedTable
from nightkeep.formats.iceberg.catalog.catalog import TableHandle
from nightkeep.formats.iceberg.upsert.batch import ChangeMode
from nightkeep.model import Clustering, Curve, Operation, Outcome
from nightkeep.running.rewrites import run_operation

STEPS = 12
_OURS = ("parquet", "orc")
_BOTH = (Operation.PERSIST_DELETES, Operation.OPTIMIZE)


@dataclass(eq=False, slots=True)
class Row:
    """`number` is nobody else's; `spec` is the partition spec that its file is of."""

    number: int
    id: int | None
    k: int
    note: str | None
    spec: int
    late: int | None = None


@dataclass
class History:
    lake: Nights
    seed: int
    rows: list[Row] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    numbers: int = 0
    runs: int = 0
    formats: Sequence[str] = ()
    """What others write in, by turns; we write in Parquet or ORC then. Empty: all is Parquet."""
    images: bool = False
    """Whether deletes by keys came with other values than those of the rows they reach: Java takes no notice of such
    deletes where a filter of another column rules them out."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.names = {"number": "number", "id": "id", "k": "k", "note": "note"}
        self.lake.create(
            [("number", "long"), ("id", "int"), ("k", "int"), ("note", "string")],
            format_version=self.random.choice([2, 2, 3]),
            partition=(("k", "identity"),) if self.random.random() < 0.5 else (),
            properties={"commit.manifest.min-count-to-merge": self.random.choice(["2", "100"])},
        )

    # What the table is

    @property
    def version(self) -> int:
        found: int = self.lake.table.document()["format-version"]
        return found

    @property
    def spec(self) -> tuple[int, bool]:
        """The current one, and whether it has partitions."""
        document = self.lake.table.document()
        number: int = document["default-spec-id"]
        return number, bool(self._fields(number))

    def _fields(self, spec: int) -> Sequence[Mapping[str, Any]]:
        (found,) = (each for each in self.lake.table.document()["partition-specs"] if each["spec-id"] == spec)
        fields: Sequence[Mapping[str, Any]] = found["fields"]
        return [each for each in fields if each["transform"] != "void"]

    def new(self, **more: Any) -> Row:
        self.numbers += 1
        chance = self.random
        row = Row(self.numbers, chance.choice([None, *range(8)]), chance.randrange(3), None, self.spec[0])
        row.note = chance.choice([None, "", "same", f"note {row.number}"])
        row.late = chance.choice([None, 1, 2]) if "late" in self.names else None
        for name, value in more.items():
            setattr(row, name, value)
        return row

    def named(self, row: Row) -> dict[str, Any]:
        return {name: getattr(row, own) for own, name in self.names.items()}

    def hide(self, keys: Mapping[str, Any], spec: int, k: int | None, *, older: Sequence[Row] | None = None) -> None:
        """An equality delete of `keys`, under the spec and in its partition k, or everywhere."""
        everywhere = not self._fields(spec)
        for row in list(self.rows if older is None else older):
            in_scope = everywhere or (row.spec == spec and row.k == k)
            if in_scope and all(getattr(row, name) == value for name, value in keys.items()) and row in self.rows:
                self.rows.remove(row)

    def check(self) -> None:
        names = list(self.names.values())
        expected = sorted(([getattr(row, own) for own in self.names] for row in self.rows), key=json.dumps)
        found = [list(row) for row in self.lake.java.read(self.lake.table, columns=names).rows]
        assert found == expected, f"expected {expected}, found {found}"
        others = [] if self.images else [("number", self.numbers // 2), ("note", "same")]
        own, value = self.random.choice([("id", 3), ("k", 1), *others])
        # Of "less" there is none: Java's reader takes nulls for less in files that its planner does not skip.
        kind = self.random.choice(["eq", "gt", "gt-eq"])
        holds: Callable[[Any], bool] = {
            "eq": lambda it: it == value,
            "gt": lambda it: it > value,
            "gt-eq": lambda it: it >= value,
        }[kind]
        where = {"type": kind, "term": self.names[own], "value": value}
        some = [row for row in expected if (it := row[list(self.names).index(own)]) is not None and holds(it)]
        filtered = [list(row) for row in self.lake.java.read(self.lake.table, columns=names, where=where).rows]
        assert filtered == some, (where, filtered, some)

    def in_some_format(self, formats: Sequence[str]) -> None:
        if self.formats:
            kind = self.random.choice(formats)
            self.told[-1] += f" in {kind}"
            self.lake.alter({"change": "set_properties", "properties": {"write.format.default": kind}})

    # Others

    def append(self) -> None:
        rows = [self.new() for _ in range(self.random.randrange(1, 14))]
        self.lake.append([self.named(row) for row in rows], rows_per_file=self.random.randrange(2, 14))
        self.rows += rows

    def changes(self) -> list[tuple[str, Row]]:
        kinds = ["+I", "+U", "-D", "-U"]
        return [(self.random.choice(kinds), self.new()) for _ in range(self.random.randrange(1, 10))]

    def applied(self, changes: Sequence[tuple[str, Row]], *, upsert: bool) -> None:
        """Flink's writer: a key of this batch goes by position, any other by equality, of older rows only."""
        older, fresh, self.images = list(self.rows), dict[tuple[Any, Any], Row](), self.images or not upsert
        spec = self.spec[0]

        def delete(row: Row) -> None:
            key = (row.id, row.k)
            if key in fresh:
                self.rows.remove(fresh.pop(key))
            else:
                self.hide({"id": row.id, "k": row.k}, spec, row.k, older=older)

        for kind, row in changes:
            if kind == "-D" or (kind == "-U" and not upsert):
                delete(row)
            elif kind != "-U":
                if upsert:
                    delete(row)
                elif (row.id, row.k) in fresh:
                    self.rows.remove(fresh[row.id, row.k])
                fresh[row.id, row.k] = row
                self.rows.append(row)

    def java_changes(self) -> None:
        changes, upsert = self.changes(), self.random.random() < 0.7
        keys = [self.names["id"], self.names["k"]]
        self.lake.java.cdc(
            self.lake.table, [(kind, self.named(row)) for kind, row in changes], keys=keys, upsert=upsert
        )
        self.applied(changes, upsert=upsert)

    def our_changes(self) -> None:
        """By our writer; perhaps its first try fails, or its answer is lost, and the batch is sent again."""
        changes, mode = self.changes(), self.random.choice([ChangeMode.UPSERT, ChangeMode.CHANGES])
        named = [(kind, self.named(row)) for kind, row in changes]
        how: Any = {"mode": mode, "batch_id": f"history {self.numbers}"}
        keys = (self.names["id"], self.names["k"])
        number, partitioned = self.spec
        if partitioned and {row.spec for row in self.rows} - {number}:
            # A spec without visible rows may have files yet.
            with pytest.raises(RefusedTable, match="do not reach"):
                self.lake.apply(named, *keys, **how)
            return
        try:
            if self.random.random() < 0.5:
                # A batch of nothing but before-images has nothing to commit.
                with self.unlucky(), suppress(EvidenceError):
                    assert not self.lake.apply(named, *keys, **how).files
            self.lake.apply(named, *keys, **how)
        except RefusedTable as refusal:
            assert "do not reach" in str(refusal)
            return
        self.applied(changes, upsert=mode is ChangeMode.UPSERT)

    @contextmanager
    def unlucky(self) -> Iterator[None]:
        """The catalog is not reached."""

        def lost(self: TableHandle, snapshot: Any, parent: int | None, *, table_uuid: str | None = None) -> bool:
            raise OSError("no answer")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TableHandle, "commit", lost)
            yield

    def delete_keys(self) -> None:
        """One equality delete file by any set of columns, under any spec."""
        sets = [["id"], ["id", "k"], ["k", "note"], *([["late"], ["id", "late"]] if "late" in self.names else [])]
        keys, like = self.random.choice(sets), self.random.choice([*self.rows, self.new()])
        specs = [each["spec-id"] for each in self.lake.table.document()["partition-specs"]]
        spec = self.random.choice(specs)
        values = {name: getattr(like, name) for name in keys}
        partition = [like.k] if self._fields(spec) else []
        self.lake.delete(
            [{self.names[name]: value for name, value in values.items()}],
            *(self.names[name] for name in keys),
            partition=partition,
            spec_id=spec,
        )
        self.hide(values, spec, like.k)

    def delete_positions(self) -> None:
        java, table = self.lake.java, self.lake.table
        found = java.read(table, columns=[self.names["number"], "_file", "_pos"]).rows
        chosen = self.random.sample(found, min(len(found), 3))
        if not chosen:
            return
        places = sorted((path, at) for _, path, at in chosen)
        if self.version == 3:
            self.lake.commit(java.vectors(table, places, flink_name=self.random.random() < 0.5))
        else:
            granularity = self.random.choice(["file", "partition"])
            self.lake.commit(java.position_deletes(table, places, granularity=granularity))
        gone = {number for number, *_ in chosen}
        self.rows = [row for row in self.rows if row.number not in gone]

    def drop_partition(self) -> None:
        """All files of a partition, its deletes are left to themselves."""
        entries = self.lake.live(0)
        if not entries:
            return
        chosen = self.random.choice(entries)
        place = (chosen["spec_id"], chosen["partition"])
        if not place[1]:
            return
        paths = [each["file_path"] for each in entries if (each["spec_id"], each["partition"]) == place]
        self.lake.commit(kind="overwrite", remove=paths)
        self.rows = [row for row in self.rows if (row.spec, row.k) != (place[0], place[1][0])]

    def compact(self) -> None:
        """Java's: rows of every spec go to the current one."""
        if not self.rows:
            return
        begun = self.lake.java.begin_rewrite(self.lake.table, options={"rewrite-all": "true"}, rows_per_file=9)
        self.lake.java.commit_rewrite(self.lake.table, begun)
        for row in self.rows:
            row.spec = self.spec[0]

    def begin_compaction(self) -> Rewriting | None:
        return self.lake.java.begin_rewrite(self.lake.table, options={"rewrite-all": "true"}) if self.rows else None

    def expire(self) -> None:
        """Not in version 3: Java's row deltas look for vectors in all history, and fail where some is gone."""
        if self.version == 2:
            self.lake.java.expire(self.lake.table, older_than_millis=2**45, retain_last=1)

    def manifests(self) -> None:
        self.lake.java.rewrite_manifests(self.lake.table)

    def evolve(self) -> None:
        self.random.choice([self.rename, self.widen, self.add_column, self.respec, self.respec, self.upgrade])()

    def rename(self) -> None:
        own = self.random.choice(["id", "note"])
        self.lake.alter({"change": "rename_column", "name": self.names[own], "to": f"{self.names[own]}x"})
        self.names[own] += "x"

    def widen(self) -> None:
        self.lake.alter({"change": "change_type", "name": self.names["id"], "type": "long"})

    def add_column(self) -> None:
        if "late" not in self.names:
            self.lake.alter({"change": "add_column", "name": "late", "type": "int"})
            self.names["late"] = "late"

    def respec(self) -> None:
        name = next((each["name"] for each in self._fields(self.spec[0])), None)
        added = {"change": "add_partition_field", "column": "k", "transform": "identity"}
        self.lake.alter({"change": "remove_partition_field", "name": name} if name else added)

    def upgrade(self) -> None:
        """Rows get their ids with the next commit, whoever makes it."""
        self.lake.upgrade()
        self.append()

    # Ours

    def night(self) -> None:
        """A run of either kind: whole, overtaken by others, broken at any of its writes, beside Java's compaction."""
        operation, settings = self.random.choice(_BOTH), dict[str, Any]()
        if operation is Operation.OPTIMIZE:
            settings = self.random.choice([{}, {"full": True}, {"clustering": self.curve()}, {"target_size": 3000}])
        if self.random.random() < 0.3:
            settings["commit_size"] = 1
        if self.random.random() < 0.2 and self.rows and all(self._fields(each.spec) for each in self.rows):
            settings["where"] = "k = 1"
        how = self.random.choice([self.plain, self.plain, self.overtaken, self.broken, self.racing])
        self.told[-1] += f" {how.__name__} {operation} {settings}"
        how(operation, settings)

    def curve(self) -> Clustering:
        return Clustering(("number", self.names["id"]), self.random.choice([Curve.Z, Curve.HILBERT]))

    def run(self, operation: Operation, settings: Mapping[str, Any], *, run_id: str | None = None) -> Outcome:
        self.runs += run_id is None
        done = runs.care_for(self.lake.table, run_id=run_id or f"run {self.runs}", operation=operation, **settings)
        allowed = {Outcome.VERIFIED, Outcome.UNCHANGED, Outcome.CONFLICTED, Outcome.FAILED}
        if done.outcome is Outcome.REFUSED:
            assert "where" in settings or "clustering" in settings, done.reason
        else:
            assert done.outcome in allowed, done.reason
        return done.outcome

    def plain(self, operation: Operation, settings: Mapping[str, Any]) -> None:
        assert self.run(operation, settings) not in (Outcome.CONFLICTED, Outcome.FAILED)

    def overtaken(self, operation: Operation, settings: Mapping[str, Any]) -> None:
        published = run_operation.publish
        others = [self.append, self.java_changes, self.delete_keys, self.delete_positions, self.manifests, self.compact]
        pending = [self.random.choice(others)]

        def late(*arguments: Any, **named: Any) -> Any:
            for step in (pending.pop() for _ in range(len(pending))):
                self.told[-1] += f", {step.__name__}"
                step()
            return published(*arguments, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_operation, "publish", late)
            assert self.run(operation, settings) is not Outcome.FAILED

    def broken(self, operation: Operation, settings: Mapping[str, Any]) -> None:
        """The retry is the same run; sometimes others come first, sometimes nobody retries."""
        with breaking(Fuse(self.random.randrange(1, 40), fail)):
            self.run(operation, settings, run_id=f"broken {self.numbers}")
        self.check()
        if self.random.random() < 0.5:
            self.java_changes()
        if self.random.random() < 0.8:
            assert self.run(operation, settings, run_id=f"broken {self.numbers}") is not Outcome.FAILED

    def racing(self, operation: Operation, settings: Mapping[str, Any]) -> None:
        """Java's compaction begins before our run and ends after it, if it still can."""
        begun = self.begin_compaction()
        assert self.run(operation, settings) is not Outcome.FAILED
        if begun is None:
            return
        try:
            self.lake.java.commit_rewrite(self.lake.table, begun)
        except EngineError:
            return
        for row in self.rows:
            row.spec = self.spec[0]

    def end(self) -> None:
        """Nothing but positions is left, then nothing but data; pyiceberg agrees with Java."""
        self.in_some_format(_OURS)
        self.lake.persist()
        self.lake.require_positions_only()
        self.agree()
        self.lake.night(full=True)
        assert self.lake.live(1, 2) == []
        self.agree()

    def agree(self) -> None:
        self.check()
        if "avro" in {each["file_format"].lower() for each in self.lake.live()}:
            # pyiceberg reads none.
            return
        assert pyiceberg_read(self.lake.table.metadata) == self.lake.rows


def check_history(lake: Nights, seed: int, *, steps: int = STEPS, formats: Sequence[str] = ()) -> None:
    """Every step, then the end; a failure tells the steps."""
    history = History(lake, seed, formats=formats)
    chance = history.random
    others = [history.append, history.java_changes, history.our_changes, history.delete_keys, history.delete_positions]
    rare = [history.drop_partition, history.compact, history.manifests, history.evolve, history.evolve]
    rare += [history.expire] if formats else []
    try:
        for step in [
            history.append,
            *(chance.choice([*others * 2, *rare, *[history.night] * 5]) for _ in range(steps)),
        ]:
            history.told.append(step.__name__)
            history.in_some_format(_OURS if step in (history.night, history.our_changes) else formats)
            step()
            history.check()
        history.told.append("end")
        history.end()
    except Exception as failure:
        raise AssertionError(f"seed {seed}: {'; '.join(history.told)}") from failure
