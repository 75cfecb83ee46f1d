"""Requests -> a long-lived JVM with Iceberg Java 1.12.0 -> its answers. Nothing here reads a table.

A method that writes files commits nothing: what it returns goes to commit, alone or with others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import pathsep
from pathlib import Path
from typing import Any

from tests.drivers.iceberg_tables import Column, Table, schema
from tests.drivers.json_lines import Engine
from tests.drivers.lake_rows import Rows
from tests.drivers.toolchain import SHORT_LIVED, compile_java, fetch_jar, program, spark_jars

ICEBERG = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SQLITE = "org.xerial:sqlite-jdbc:3.46.1.3"

Row = Sequence[Any] | Mapping[str, Any]
"""Canonical values in the order of the columns, or by name, in which what is absent is null."""


@dataclass(frozen=True, slots=True)
class Written:
    """Files that no snapshot has yet; each is a dict by the specification's names of a data file's fields."""

    handle: int
    files: tuple[dict[str, Any], ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file["file_path"] for file in self.files)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A compaction whose outputs are written and not committed; `snapshot` is where it began."""

    handle: int
    snapshot: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is made. `partition` fields are (column, transform) or (column, transform, name); transforms are
    identity, bucket[n], truncate[n], year, month, day, hour and void; `sort` names columns."""

    partition: tuple[tuple[str, ...], ...] = ()
    format_version: int = 2
    properties: Mapping[str, str] | None = None
    sort: tuple[str, ...] = ()
    location: str | None = None


def class_path() -> tuple[str, ...]:
    """Iceberg's jar, SQLite's and Spark's; Spark's bring Hadoop."""
    return (str(fetch_jar(ICEBERG)), str(fetch_jar(SQLITE)), spark_jars())


def java_command(
    main: str, scratch: str, *, memory: str = "1g", java_options: Sequence[str] = SHORT_LIVED
) -> list[str]:
    """Runs a class of java_iceberg."""
    jars = class_path()
    classes = compile_java(Path(__file__).parent / "java_iceberg", jars)
    return [
        program("java", "openjdk-17-jdk-headless"),
        f"-Xmx{memory}",
        *java_options,
        "-Duser.timezone=UTC",
        f"-Djava.io.tmpdir={scratch}",
        "-cp",
        pathsep.join((str(classes), *jars)),
        main,
    ]


class IcebergJava(Engine):
    """One JVM, with a method per verb of IcebergDriver.java. A failure of Java's is an EngineError."""

    def __init__(
        self, *, memory: str = "1g", timeout: float = 120.0, java_options: Sequence[str] = SHORT_LIVED
    ) -> None:
        scratch = self._folder("nightkeep-iceberg-java-")
        command = java_command("IcebergDriver", scratch, memory=memory, java_options=java_options)
        self._start(command, timeout=timeout)

    # Tables

    def create(
        self, table: Table, columns: Sequence[Column] | Mapping[str, Any], layout: Layout | None = None
    ) -> dict[str, Any]:
        """Returns {location, metadata, format_version, schema, spec, snapshot}, as describe does. `columns` may be
        Iceberg's JSON of a schema; Iceberg numbers the fields anew either way, as `schema` does."""
        how = layout or Layout()
        fields = {
            "schema": dict(columns) if isinstance(columns, Mapping) else schema(columns),
            "partition": [list(field) for field in how.partition],
            "properties": {"format-version": str(how.format_version), **(how.properties or {})},
            "sort": list(how.sort),
            "location": how.location,
        }
        return dict(self._ask("create", table, fields))

    def register(self, table: Table, metadata: Path | str) -> dict[str, Any]:
        """Gives the table of a metadata file a place in the catalog."""
        return dict(self._ask("register", table, {"metadata": str(metadata)}))

    def drop(self, table: Table) -> None:
        """Out of the catalog; no file is deleted."""
        self._ask("drop", table)

    def describe(self, table: Table) -> dict[str, Any]:
        return dict(self._ask("describe", table))

    def alter(self, table: Table, *changes: Mapping[str, Any]) -> dict[str, Any]:
        """Each change is a commit: {change: add_column, name, type, parent?, required?, default?},
        {change: rename_column, name, to}, {change: drop_column|optional|require|first, name},
        {change: change_type, name, type}, {change: identifier, name: "a,b"},
        {change: set_properties, properties: {name: text or None}}, {change: sort, columns},
        {change: add_partition_field, column, transform, name?} or {change: remove_partition_field, name}.
        """
        return dict(self._ask("alter", table, {"changes": [dict(change) for change in changes]}))

    def refs(self, table: Table, *changes: Mapping[str, Any]) -> dict[str, Any]:
        """Each change is {change: create_branch|create_tag, name, snapshot}, {change: remove_branch|remove_tag, name},
        {change: rollback|set_current|cherry_pick, snapshot} or {change: fast_forward, name, to}."""
        return dict(self._ask("refs", table, {"changes": [dict(change) for change in changes]}))

    def statistics(self, table: Table, *, kind: str = "table") -> str:
        """Registers a file of "table" or of "partition" statistics of the current snapshot; returns its path."""
        return str(self._ask("statistics", table, {"kind": kind})["path"])

    # Writes

    def append(
        self, table: Table, rows: Iterable[Row], *, rows_per_file: int | None = None, branch: str | None = None
    ) -> int:
        """One commit; returns the id of its snapshot, as every commit does."""
        return self.commit(table, self.rows(table, rows, rows_per_file=rows_per_file), kind="append", branch=branch)

    def cdc(
        self,
        table: Table,
        changes: Iterable[tuple[str, Row]],
        *,
        keys: Sequence[str],
        upsert: bool = True,
        branch: str | None = None,
    ) -> int:
        """One commit of one checkpoint of changes, as Flink writes it."""
        return self.commit(table, self.checkpoint(table, changes, keys=keys, upsert=upsert), branch=branch)

    def generate(
        self,
        table: Table,
        rows: int,
        *,
        keys: Sequence[str],
        keyspace: int | None = None,
        delete_every: int = 0,
        seed: int = 0,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """One commit of rows made by the JVM: {snapshot, write_seconds, commit_seconds}.

        Keys, the first column, are 0, 1, .. in order; of `keyspace` at random they are a checkpoint of upserts.
        """
        fields = {"rows": rows, "keys": list(keys), "delete_every": delete_every, "seed": seed, "keyspace": keyspace}
        return dict(self._ask("generate", table, fields, timeout=timeout))

    def rows(
        self,
        table: Table,
        rows: Iterable[Row],
        *,
        rows_per_file: int | None = None,
        spec_id: int | None = None,
        schema_id: int | None = None,
    ) -> Written:
        """Data files, at least one for each partition, in the order of the rows."""
        fields = {"rows": list(rows), "rows_per_file": rows_per_file, "spec_id": spec_id, "schema_id": schema_id}
        return self._written("write_rows", table, fields)

    def checkpoint(
        self,
        table: Table,
        changes: Iterable[tuple[str, Row]],
        *,
        keys: Sequence[str],
        upsert: bool = True,
        target_bytes: int | None = None,
    ) -> Written:
        """Changes are (kind, row) with kinds +I, -U, +U and -D. Data files, equality deletes of older rows, and for
        rows of this checkpoint position deletes of the granularity of files, or deletion vectors from v3 on."""
        fields = {
            "changes": [list(change) for change in changes],
            "keys": list(keys),
            "upsert": upsert,
            "target_bytes": target_bytes,
        }
        return self._written("write_cdc", table, fields)

    def equality_deletes(
        self,
        table: Table,
        rows: Iterable[Row],
        *,
        keys: Sequence[str],
        full: bool = False,
        partition: Sequence[Any] = (),
        spec_id: int | None = None,
        schema_id: int | None = None,
    ) -> Written:
        """One file. Its rows have the key columns in the order of the table, or with `full` all columns. Under an
        unpartitioned spec it deletes in all partitions; `partition` has the values of the transforms."""
        fields = {
            "rows": list(rows),
            "keys": list(keys),
            "full": full,
            "partition": list(partition),
            "spec_id": spec_id,
            "schema_id": schema_id,
        }
        return self._written("write_equality_deletes", table, fields)

    def position_deletes(
        self,
        table: Table,
        positions: Iterable[tuple[str, int]],
        *,
        granularity: str = "partition",
        of: Sequence[Written] = (),
    ) -> Written:
        """Positions (path, position), in the order of both; one file for each "partition" or each data "file". Data
        files are of the current snapshot or of what is in `of`."""
        fields = {"positions": [list(p) for p in positions], "granularity": granularity, "of": _handles(of)}
        return self._written("write_position_deletes", table, fields)

    def vectors(
        self,
        table: Table,
        positions: Iterable[tuple[str, int]],
        *,
        merge: bool = True,
        flink_name: bool = False,
        of: Sequence[Written] = (),
    ) -> Written:
        """One Puffin file with a vector for each data file. With `merge` they cover earlier position deletes, and the
        commit removes the delete files that are in them whole; without, a second vector of a file is a broken table.
        With `flink_name` the file's name ends with .parquet."""
        fields = {"positions": [list(p) for p in positions], "merge": merge, "flink_name": flink_name}
        return self._written("write_vectors", table, {**fields, "of": _handles(of)})

    def adopt(
        self,
        table: Table,
        file: Path | str,
        *,
        partition: Sequence[Any] = (),
        spec_id: int | None = None,
        rows: int | None = None,
    ) -> Written:
        """A file without field ids; the table gets a name mapping if it has none. `rows` of one that is not Parquet."""
        fields = {"path": str(file), "partition": list(partition), "spec_id": spec_id, "rows": rows}
        return self._written("adopt", table, fields)

    def commit(
        self,
        table: Table,
        *written: Written,
        kind: str = "delta",
        remove: Iterable[str] = (),
        base: int | None = None,
        sequence: int | None = None,
        branch: str | None = None,
        summary: Mapping[str, str] | None = None,
    ) -> int:
        """One snapshot of everything written. Kinds are "append", "delta" (RowDelta), "rewrite" (RewriteFiles) and
        "overwrite" (OverwriteFiles); `remove` has paths of live files, `base` is validated from, `sequence` is the
        data sequence number that a rewrite keeps."""
        fields = {
            "handles": _handles(written),
            "kind": kind,
            "remove": list(remove),
            "base": base,
            "sequence": sequence,
            "branch": branch,
            "summary": dict(summary or {}),
        }
        return int(self._ask("commit", table, fields)["snapshot"])

    # Upkeep

    def begin_rewrite(
        self,
        table: Table,
        *,
        where: Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
        rows_per_file: int | None = None,
    ) -> Rewriting:
        """Iceberg's planner picks files with its `options` (such as {"rewrite-all": "true"}); they are written anew,
        with their rows' lineage from v3 on."""
        fields = {"where": where, "options": dict(options or {}), "rows_per_file": rows_per_file}
        found = self._ask("begin_rewrite", table, fields)
        return Rewriting(found["handle"], found["snapshot"], tuple(found["inputs"]), tuple(found["outputs"]))

    def commit_rewrite(self, table: Table, rewriting: Rewriting, *, starting_sequence: bool = True) -> int:
        """By Iceberg's commit manager; outputs keep the sequence number of the start unless told otherwise."""
        fields = {"handle": rewriting.handle, "starting_sequence": starting_sequence}
        return int(self._ask("commit_rewrite", table, fields)["snapshot"])

    def rewrite_manifests(self, table: Table) -> int:
        return int(self._ask("rewrite_manifests", table)["snapshot"])

    def expire(
        self,
        table: Table,
        *,
        older_than_millis: int | None = None,
        retain_last: int | None = None,
        snapshots: Iterable[int] = (),
        keep_files: bool = False,
    ) -> tuple[str, ...]:
        """The paths that Iceberg deleted, or would have without `keep_files`."""
        fields = {
            "older_than_millis": older_than_millis,
            "retain_last": retain_last,
            "snapshots": list(snapshots),
            "keep_files": keep_files,
        }
        return tuple(self._ask("expire", table, fields))

    # Reads

    def read(
        self,
        table: Table,
        *,
        where: Mapping[str, Any] | None = None,
        snapshot: int | None = None,
        ref: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Rows:
        """Rows in the order of their JSON, by Iceberg's generic reader, with the table's current schema. `where` is
        Iceberg's JSON of an expression: {"type": "eq", "term": "id", "value": 5}. `columns` are of the top level or
        "_file", "_pos", "_row_id", "_last_updated_sequence_number"."""
        fields = {"where": where, **_at(snapshot, ref), "columns": None if columns is None else list(columns)}
        return Rows.of(self._ask("read", table, fields)).ordered()

    def tasks(
        self,
        table: Table,
        *,
        where: Mapping[str, Any] | None = None,
        snapshot: int | None = None,
        ref: str | None = None,
    ) -> list[dict[str, Any]]:
        """The data files that a scan opens, as in entries, each with the `deletes` that it applies to them."""
        return list(self._ask("tasks", table, {"where": where, **_at(snapshot, ref)}))

    def manifests(self, table: Table, *, snapshot: int | None = None, ref: str | None = None) -> list[dict[str, Any]]:
        """The manifest list's entries by the specification's names; bounds are hex."""
        return list(self._ask("manifests", table, _at(snapshot, ref)))

    def entries(self, table: Table, *, snapshot: int | None = None, ref: str | None = None) -> list[dict[str, Any]]:
        """Manifest entries, deleted ones too, with what they inherit: the fields of the entry and of its data file in
        one dict by the specification's names; maps by field id as text, bounds hex, the partition a list."""
        return list(self._ask("entries", table, _at(snapshot, ref)))

    def metadata(self, table: Table) -> dict[str, Any]:
        """Table metadata as Java parsed it and would write it."""
        return dict(self._ask("metadata", table))

    def _written(self, verb: str, table: Table, fields: Mapping[str, Any]) -> Written:
        found = self._ask(verb, table, fields)
        return Written(found["handle"], tuple(found["files"]))

    def _ask(
        self, verb: str, table: Table, fields: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> Any:
        given = {name: value for name, value in (fields or {}).items() if value is not None}
        request = {"catalog": table.warehouse.java(), "table": table.name, **given}
        return self._lines.request(verb, request, timeout=timeout)


def _at(snapshot: int | None, ref: str | None) -> dict[str, Any]:
    return {"snapshot": snapshot, "ref": ref}


def _handles(written: Sequence[Written]) -> list[int]:
    return [one.handle for one in written]
