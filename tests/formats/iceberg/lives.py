"""Random lives of Iceberg tables: Java writes, compacts, names branches and expires beside our upkeep."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg.breaking import breaking
from tests.formats.iceberg.runs import COLUMNS, DAYS, care_for, folder, opened, row
from tests.formats.iceberg.sweeping import named_by, needed_by, records, stored
from tests.retention.lives import OWN, Life, wall_ms
from tests.support.faulty_store import Fuse

from nightkeep.model import Operation, Outcome
from nightkeep.protocol.table_files import ExpireRequest, OpenFiles

_KNOWN = re.compile(
    r"data/(day=[^/]+/)?(\d{5}-\d+-[0-9a-f-]{36}-\d+(-deletes)?|\d{5}-nk-[^/]+)\.(parquet|puffin)"
    r"|metadata/(snap-[^/]+\.avro|[0-9a-f-]{36}-m\d+\.avro|nk-[^/]+-m\d+\.avro|nk-[^/]+\.snapshot\.json"
    r"|\d{5}-[0-9a-f-]{36}\.metadata\.json|[^/]+\.stats|partition-stats-[^/]+\.parquet)"
)


class IcebergLife(Life):
    def __init__(self, seed: int, table: Table, java: IcebergJava) -> None:
        self.table, self.java, self.rows, self.daily = table, java, 0, seed % 2 == 0
        properties = {
            "commit.manifest.min-count-to-merge": str(2 + seed % 3),
            "write.metadata.previous-versions-max": "4",
            "history.expire.max-snapshot-age-ms": "1",
        }
        layout = Layout((("day", "identity"),) if self.daily else (), 2 + seed // 2 % 2, properties)
        java.create(table, COLUMNS, layout)
        super().__init__(seed, folder(table))
        self.append()

    # What the table is

    def opened(self) -> OpenFiles:
        return opened(self.table).retention

    def breaking(self, fuse: Fuse) -> AbstractContextManager[None]:
        return breaking(fuse)

    def care(self, run_id: str) -> Outcome:
        operation = self.random.choice((Operation.PERSIST_DELETES, Operation.OPTIMIZE))
        done = care_for(self.table, run_id=run_id, operation=operation)
        self.told[-1] += f" {operation} {done.outcome}: {done.reason}"
        return done.outcome

    def versions(self) -> Sequence[int]:
        return [snapshot["snapshot-id"] for snapshot in self.table.document()["snapshots"]]

    def read(self, version: int) -> Any:
        return self.java.read(self.table, snapshot=version)

    def needed(self) -> set[str]:
        return {*map(self.own, needed_by(self.table))}

    def protected(self, now_ms: int, age_ms: int) -> set[str]:
        """What the metadata names besides, and what late snapshots removed."""
        found = {*map(self.own, named_by(self.table))}
        for snapshot in self.table.document()["snapshots"]:
            if snapshot["timestamp-ms"] >= now_ms - age_ms:
                for manifest in records(snapshot["manifest-list"]):
                    found |= self.removed_by(manifest["manifest_path"], snapshot["snapshot-id"])
        return found

    def removed_by(self, manifest: str, snapshot: int) -> set[str]:
        gone = (entry for entry in records(manifest) if entry["status"] == 2 and entry["snapshot_id"] == snapshot)
        return {self.own(stored(entry["data_file"]["file_path"])) for entry in gone}

    def own(self, name: str) -> str:
        return name.removeprefix(f"{stored(self.folder)}/")

    def is_known(self, name: str) -> bool:
        return bool(_KNOWN.fullmatch(name))

    def plants(self) -> Sequence[str]:
        day = f"day={self.random.choice((*DAYS, 'gone'))}/" if self.daily else ""
        return [
            f"data/{day}00000-0-{self.uuid()}-00001.parquet",
            f"data/{day}00000-0-{self.uuid()}-00001-deletes.parquet",
            f"data/00000-0-{self.uuid()}-00001-deletes.puffin",
            f"metadata/snap-{self.number()}-1-{self.uuid()}.avro",
            f"metadata/{self.uuid()}-m0.avro",
            f"metadata/00000-{self.uuid()}.metadata.json",
        ]

    def strange(self) -> Sequence[str]:
        return [f"data/export-{self.number()}.parquet", f"notes-{self.number()}.md", f"{OWN}note-{self.number()}"]

    def request(self, now_ms: int, age_ms: int, *, retain_last: int | None) -> ExpireRequest:
        """By today's clock: the commit has it, and Java refuses to commit before it."""
        today_ms = wall_ms()
        return ExpireRequest(today_ms, older_than_ms=max(today_ms - (now_ms - age_ms), 0), retain_last=retain_last)

    # Steps

    def others(self) -> Sequence[Callable[[], object]]:
        rare = [self.compact, self.manifests, self.tag, self.branch, self.drop, self.drop_files, self.statistics]
        return [*[self.append] * 2, *[self.change] * 3, self.roll_back, *rare, self.leave, self.leave, self.plant]

    def append(self) -> None:
        self.java.append(self.table, [self.row(self.new()) for _ in range(self.random.randrange(1, 8))])

    def change(self) -> None:
        """Of rows that are there, and perhaps on a branch."""
        kinds = ("+I", "+U", "-D")
        changes = [(self.random.choice(kinds), self.row(self.random.randrange(1, 1 + self.rows))) for _ in range(4)]
        branches = self.named("branch")
        branch = self.random.choice([None, None, *branches])
        written = self.java.checkpoint(self.table, changes, keys=["id", "day"])
        base = self.table.document()["refs"].get(branch or "main", {}).get("snapshot-id")
        # Without a base Java looks for all history, which expired.
        self.java.commit(self.table, written, base=base, branch=branch)

    def new(self) -> int:
        self.rows += 1
        return self.rows

    def row(self, number: int) -> tuple[Any, ...]:
        return row(DAYS[number % 2], number, f"note {self.number()}")

    def compact(self) -> None:
        begun = self.java.begin_rewrite(self.table, options={"rewrite-all": "true"})
        if begun.inputs:
            self.java.commit_rewrite(self.table, begun)

    def manifests(self) -> None:
        self.java.rewrite_manifests(self.table)

    def leave(self) -> None:
        """What writers of Java's leave that die before they commit."""
        key = [("+U", self.row(1)), ("+U", self.row(1))]
        self.random.choice(
            (
                lambda: self.java.rows(self.table, [self.row(7), self.row(8)]),
                lambda: self.java.checkpoint(self.table, key, keys=["id", "day"]),
                lambda: self.java.begin_rewrite(self.table, options={"rewrite-all": "true"}),
            )
        )()

    def statistics(self) -> None:
        """Java's file of a snapshot's has one name, even where it was quarantined meanwhile."""
        if not (self.folder / f"metadata/stats-{self.table.document()['current-snapshot-id']}.stats").exists():
            self.java.statistics(self.table, kind="table")
        elif self.daily:
            self.java.statistics(self.table, kind="partition")

    def named(self, kind: str) -> list[str]:
        refs = self.table.document()["refs"]
        return sorted(name for name, ref in refs.items() if ref["type"] == kind and name != "main")

    def tag(self) -> None:
        self.refer("create_tag")

    def branch(self) -> None:
        self.refer("create_branch")

    def refer(self, change: str) -> None:
        snapshot = self.random.choice(self.versions())
        self.java.refs(self.table, {"change": change, "name": f"r{self.number()}", "snapshot": snapshot})

    def drop(self) -> None:
        kind = self.random.choice(("tag", "branch"))
        if names := self.named(kind):
            self.java.refs(self.table, {"change": f"remove_{kind}", "name": self.random.choice(names)})

    def drop_files(self) -> None:
        """All data files of one day, or of all, before others come; older deletes are left to themselves."""
        live = [each for each in self.java.entries(self.table) if each["content"] == 0 and each["status"] != 2]
        if live:
            place = self.random.choice(live)["partition"]
            paths = [each["file_path"] for each in live if each["partition"] == place]
            self.java.commit(self.table, kind="overwrite", remove=paths)
            self.java.append(self.table, [self.row(self.new()), self.row(self.new())])

    def roll_back(self) -> None:
        document = self.table.document()
        parents = {each["snapshot-id"]: each.get("parent-snapshot-id") for each in document["snapshots"]}
        to = parents[document["current-snapshot-id"]]
        if to in parents:
            self.java.refs(self.table, {"change": "rollback", "snapshot": to})

    def engine_expires(self) -> None:
        """Perhaps it dies, or its files could not be deleted."""
        at_ms = self.moment()[0]
        keep = self.random.random() < 0.5
        retain = self.random.randrange(1, 4)
        self.java.expire(self.table, older_than_millis=at_ms, retain_last=retain, keep_files=keep)
