"""Requests -> a long-lived JVM with Paimon Java 2.0.0 -> its answers. Nothing here decodes a table."""

from collections.abc import Iterable, Mapping, Sequence
from os import pathsep
from pathlib import Path
from typing import Any

from tests.drivers.json_lines import Engine
from tests.drivers.paimon_values import (
    Compacted,
    Compaction,
    Digested,
    Followed,
    HiveNamed,
    JavaFile,
    JavaVectors,
    Layout,
    RandomRows,
    Row,
    Scan,
    Scanned,
    Table,
    Writer,
    given,
)
from tests.drivers.toolchain import SHORT_LIVED, compile_java, fetch_jar, program, spark_jars

PAIMON = "org.apache.paimon:paimon-flink-2.0:2.0.0"


class PaimonJava(Engine):
    """One JVM, with a method per verb of PaimonDriver.java. A failure of Java's is an EngineError."""

    def __init__(
        self, *, memory: str = "1500m", timeout: float = 120.0, java_options: Sequence[str] = SHORT_LIVED
    ) -> None:
        java = program("java", "openjdk-17-jdk-headless")
        jar = str(fetch_jar(PAIMON))
        class_path = (jar, spark_jars())
        classes = compile_java(Path(__file__).parent / "java", class_path)
        scratch = self._folder("nightkeep-paimon-java-")
        command = [
            java,
            f"-Xmx{memory}",
            "-Duser.timezone=UTC",
            *java_options,
            f"-Djava.io.tmpdir={scratch}",
            "-cp",
            pathsep.join((str(classes), *class_path)),
            "PaimonDriver",
        ]
        self._start(command, timeout=timeout)

    def create(self, table: Table, layout: Layout) -> dict[str, Any]:
        """Creates the table and returns its schema, as every change of it does."""
        return self._dict("create", table, given(layout))

    def alter(self, table: Table, *changes: Mapping[str, str]) -> dict[str, Any]:
        """Each change is {change: add_column|change_type, name, type}, {change: rename_column, name, to},
        {change: drop_column|remove_option, name} or {change: set_option, name, value}."""
        return self._dict("alter", table, {"changes": [dict(change) for change in changes]})

    def create_in_hive(self, table: HiveNamed, layout: Layout) -> str:
        """Creates the table by its name in a metastore, and its database; returns its folder."""
        return str(self._lines.request("create_in_hive", {**given(table), **given(layout)})["location"])

    def alter_in_hive(self, table: HiveNamed, *changes: Mapping[str, str]) -> int:
        """Returns the id of the new schema. Changes as of `alter`."""
        fields = {**given(table), "changes": [dict(change) for change in changes]}
        return int(self._lines.request("alter_in_hive", fields)["schema"])

    def read_in_hive(self, table: HiveNamed) -> Scanned:
        return Scanned.of(self._lines.request("read", {**given(Scan()), **given(table)}))

    def schema(self, table: Table) -> dict[str, Any]:
        return self._dict("schema", table, {})

    def write(self, table: Table, rows: Iterable[Row], writer: Writer | None = None) -> int:
        """One commit; returns the latest snapshot id."""
        fields = {"rows": [list(row) for row in rows], **given(writer or Writer())}
        return self._snapshot_id("write", table, fields)

    def write_random(
        self, table: Table, rows: RandomRows, writer: Writer | None = None, *, timeout: float | None = None
    ) -> int:
        """One commit of many rows; returns the latest snapshot id."""
        fields = {**given(rows), **given(writer or Writer())}
        return self._snapshot_id("write_random", table, fields, timeout)

    def truncate(self, table: Table, *partitions: Mapping[str, str]) -> int:
        """Drops the rows of some partitions, or of the table; returns the latest snapshot id."""
        specs = {"partitions": [dict(spec) for spec in partitions]} if partitions else {}
        return self._snapshot_id("truncate", table, specs)

    def delete_positions(self, table: Table, positions: Mapping[str, Sequence[int]], *, user: str | None = None) -> int:
        """Hides rows of a table without keys, {data file: ordinals}, in deletion vectors, as Spark's DELETE does."""
        return self._snapshot_id("delete_positions", table, _positions(positions, user))

    def prepare_delete(self, table: Table, positions: Mapping[str, Sequence[int]], *, user: str | None = None) -> str:
        """Writes the vectors and commits nothing: the handle goes to commit_prepared."""
        return str(self._dict("prepare_delete", table, _positions(positions, user))["handle"])

    def compact(self, table: Table, compaction: Compaction | None = None, *, timeout: float | None = None) -> Compacted:
        fields = given(compaction or Compaction())
        return Compacted(**self._dict("compact", table, fields, timeout))

    def prepare_compact(
        self, table: Table, compaction: Compaction | None = None, *, timeout: float | None = None
    ) -> Compacted:
        """Writes the files and commits nothing: the handle goes to commit_prepared or abort_prepared."""
        fields = given(compaction or Compaction())
        return Compacted(**self._dict("prepare_compact", table, fields, timeout))

    def commit_prepared(self, handle: str) -> Compacted:
        return Compacted(**self._lines.request("commit_prepared", {"handle": handle}))

    def abort_prepared(self, handle: str) -> None:
        self._lines.request("abort_prepared", {"handle": handle})

    def pick(
        self, table: Table, options: Mapping[str, str], files: Iterable[Mapping[str, Any]], *, full: bool
    ) -> dict[str, Any] | None:
        """What Java's strategy makes of a bucket with these files: {level, files, steps: [{kind, files}]} or None.

        Files are {name, level, low, high (INT keys), bytes, sequence, deletes, age (milliseconds), vector}. The
        table lends its store and is otherwise not looked at.
        """
        fields = {"options": dict(options), "files": [dict(file) for file in files], "full": full}
        found: dict[str, Any] | None = self._lines.request("pick", {**_at(table, None), **fields})
        return found

    def compact_manifests(self, table: Table) -> int:
        return self._snapshot_id("compact_manifests", table, {})

    def read(self, table: Table, scan: Scan | None = None) -> Scanned:
        return Scanned.of(self._dict("read", table, given(scan or Scan())))

    def read_digest(
        self, table: Table, scan: Scan | None = None, *, threads: int = 1, timeout: float | None = None
    ) -> Digested:
        fields = {**given(scan or Scan()), "threads": threads}
        return Digested(**self._dict("read_digest", table, fields, timeout))

    def files(self, table: Table, *, snapshot: int | None = None) -> tuple[JavaFile, ...]:
        """Live files of a snapshot (default: the latest) by partition, bucket, level, sequence, name."""
        found = self._lines.request("files", _at(table, snapshot))
        return tuple(JavaFile(**file) for file in found)

    def changelog(self, table: Table, *, snapshot: int | None = None) -> tuple[JavaFile, ...]:
        """Changelog files of a snapshot's own commit (default: the latest), in the order of their entries."""
        found = self._lines.request("changelog", _at(table, snapshot))
        return tuple(JavaFile(**file) for file in found)

    def open_stream(self, table: Table, *, next: int | None = None) -> str:
        """A streaming reader; its handle goes to `follow`. It begins with the table's rows, or goes on with the
        changes of snapshot `next`."""
        return str(self._dict("open_stream", table, {} if next is None else {"next": next})["handle"])

    def follow(self, handle: str) -> Followed:
        """What the streaming reader sees from where it is up to now."""
        found = self._lines.request("follow_stream", {"handle": handle})
        return Followed(tuple(tuple(row) for row in found["rows"]), found["next"])

    def close_stream(self, handle: str) -> None:
        self._lines.request("close_stream", {"handle": handle})

    def changes(self, table: Table, *, since: int) -> Followed:
        """What a streaming reader sees that is resumed with snapshot `since`."""
        handle = self.open_stream(table, next=since)
        found = self.follow(handle)
        self.close_stream(handle)
        return found

    def vectors(self, table: Table, *, snapshot: int | None = None, positions: bool = True) -> tuple[JavaVectors, ...]:
        """Deletion vector index files of a snapshot (default: the latest) by partition and bucket."""
        found = self._lines.request("vectors", {**_at(table, snapshot), "positions": positions})
        return tuple(JavaVectors(**entry) for entry in found)

    def snapshot(self, table: Table, *, snapshot: int | None = None) -> dict[str, Any] | None:
        """The snapshot's JSON as Java parses it; None if the table has none."""
        found: dict[str, Any] | None = self._lines.request("snapshot", _at(table, snapshot))
        return found

    def snapshots(self, table: Table) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._lines.request("snapshots", _at(table, None))
        return found

    def options(self) -> list[dict[str, Any]]:
        """Every option of a table: {key, older: [keys], default, values: those of an enumeration or a flag}."""
        found: list[dict[str, Any]] = self._lines.request("options", {})
        return found

    def expire(
        self,
        table: Table,
        *,
        retain_max: int = 1,
        retain_min: int = 1,
        retain_millis: int = 0,
        changelog_retain_max: int | None = None,
    ) -> int:
        """Expires snapshots as Java does; returns how many. Changelogs retained longer become long-lived ones."""
        fields = {"retain_max": retain_max, "retain_min": retain_min, "retain_millis": retain_millis}
        if changelog_retain_max is not None:
            fields["changelog_retain_max"] = changelog_retain_max
        return int(self._dict("expire", table, fields)["expired"])

    def expire_as_configured(self, table: Table) -> int:
        """Expires what the table's own options let go; returns how many."""
        return int(self._dict("expire_as_configured", table, {})["expired"])

    def create_branch(self, table: Table, name: str, *, tag: str | None = None) -> Path:
        """Returns what stands for the branch wherever a table is asked for. Without a tag it is empty."""
        self._dict("create_branch", table, {"name": name} if tag is None else {"name": name, "tag": tag})
        return Path(table) / "branch" / f"branch-{name}"

    def drop_branch(self, table: Table, name: str) -> None:
        self._dict("drop_branch", table, {"name": name})

    def rollback(self, table: Table, *, snapshot: int) -> None:
        self._dict("rollback", table, {"snapshot": snapshot})

    def set_consumer(self, table: Table, name: str, *, snapshot: int) -> None:
        """A streaming reader that will read this snapshot next."""
        self._dict("set_consumer", table, {"name": name, "snapshot": snapshot})

    def create_tag(self, table: Table, name: str, *, snapshot: int) -> None:
        self._dict("create_tag", table, {"name": name, "snapshot": snapshot})

    def delete_tag(self, table: Table, name: str) -> None:
        self._dict("delete_tag", table, {"name": name})

    def delete_orphans(
        self, table: Table, *, older_than_millis: int | None = None, dry_run: bool = True
    ) -> dict[str, Any]:
        """{count, bytes, files}: what orphan cleaning finds before that time and, unless dry, deletes."""
        fields = {"older_than_millis": older_than_millis, "dry_run": dry_run}
        return self._dict("delete_orphans", table, {k: v for k, v in fields.items() if v is not None})

    def _dict(self, verb: str, table: Table, fields: Mapping[str, Any], timeout: float | None = None) -> dict[str, Any]:
        result: dict[str, Any] = self._lines.request(verb, {**_at(table, None), **fields}, timeout=timeout)
        return result

    def _snapshot_id(self, verb: str, table: Table, fields: Mapping[str, Any], timeout: float | None = None) -> int:
        return int(self._dict(verb, table, fields, timeout)["snapshot"])


def _positions(positions: Mapping[str, Sequence[int]], user: str | None) -> dict[str, Any]:
    fields = {"positions": {name: list(ordinals) for name, ordinals in positions.items()}}
    return fields if user is None else {**fields, "user": user}


def _at(table: Table, snapshot: int | None) -> dict[str, Any]:
    path = str(table) if "://" in str(table) else str(Path(table).absolute())
    return {"table": path} if snapshot is None else {"table": path, "snapshot": snapshot}
