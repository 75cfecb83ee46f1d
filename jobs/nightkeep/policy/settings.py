"""The keys of tables.yaml: one frozen model per block. A key that is not here is refused.

Every default below is the `balanced` preset.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from nightkeep.model import Operation, VerifyLevel, Writers
from nightkeep.model.check_values import Evidence, ReaderName
from nightkeep.model.own_expectations import ExpectedOn
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.policy.setting_types import (
    Age,
    Budget,
    ClusterBy,
    Conditions,
    Duration,
    Expected,
    Hours,
    Name,
    Receivers,
    Size,
    SparkConf,
    Text,
)
from nightkeep.policy.when import parse_when

_GB = 1 << 30


Nightly = Literal["upgrade", "persist-deletes", "optimize", "audit"]
"""Operations that a policy can ask for. Operations that change rows are only started by hand."""


class Preset(StrEnum):
    """A starting point for a policy of three lines."""

    GENTLE = "gentle"
    BALANCED = "balanced"
    THOROUGH = "thorough"


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Check(_Block):
    """The check of what was published."""

    enabled: StrictBool = Field(default=True, description="Validate the published version after each run.")
    byte_budget: Size = Field(
        default=10 * _GB,
        description="Above this many bytes of touched data, check a rotating sample.",
        json_schema_extra={"default": "10GB"},
    )
    join_budget: Size | None = Field(
        default=None,
        description="Join rows of a rotating share of units, of this many bytes, even where sums of hashes agree. "
        "null: join rows only where they differ.",
    )
    keys_budget: Size = Field(
        default=_GB // 4,
        description="Above this many bytes, count keys in a rotating share of the units. Of the others, the rows are "
        "compared with those of the version before.",
        json_schema_extra={"default": "256MB"},
    )
    keys: tuple[StrictStr, ...] = Field(
        default=(),
        description="Columns that identify a row of a table whose format merges no keys: no two rows of a partition "
        "share them. none: those that the table declares, which are the identifier fields of Iceberg.",
    )
    reader: ReaderName | None = Field(
        default=None, description="One more engine that reads the published version and the one before. null: none."
    )
    evidence: Evidence = Field(
        default=Evidence.KEYS,
        description="What is kept of rows that differ: keys, keyed hashes of their keys and the columns that differ; "
        "rows, also up to 20 rows a side with their values, in a file apart from the document.",
    )
    results_context: Text | None = Field(
        default=None,
        description="A project of Great Expectations where results of the check are stored too: the local folder of "
        "its great_expectations.yml, relative to this file. null: none.",
    )
    expectations_on: ExpectedOn = Field(
        default=ExpectedOn.ALL,
        description="The rows that expectations are asked of: all, or those of the partitions that were changed.",
    )


class Sweep(_Block):
    """What becomes of files that nothing needs any more."""

    mode: SweepMode = Field(
        default=SweepMode.DRY_RUN,
        description="dry-run only reports, quarantine moves to where they can be restored from, delete deletes.",
    )
    older_than: Age = Field(
        default=7 * DAY_MS,
        description="A younger file is left alone. At least 24h, 7d for Delta; lower only with --below-floor.",
        json_schema_extra={"default": "7d"},
    )
    max_share: Annotated[StrictFloat, Field(gt=0, le=1)] = Field(
        default=0.5, description="Where more than 100 files and a larger share of all would go, nothing goes."
    )
    purge_after: Age = Field(
        default=30 * DAY_MS,
        description="How long quarantined files can be restored. At least 24h.",
        json_schema_extra={"default": "30d"},
    )
    list_every: Duration | None = Field(
        default=None,
        description="List the folders of a Delta table only once this time has passed since the last listing, such as "
        "28d. Sweeps in between find what the table's log names as removed. null: each sweep lists them.",
    )
    outside: StrictBool = Field(
        default=False,
        description="Look also into folders outside of the table's own that its properties name: no other table has "
        "files there.",
    )


class Expire(_Block):
    """Old versions that expire, within what the table's own options allow."""

    enabled: StrictBool = Field(default=False, description="Expire before each sweep of the weekly run.")
    older_than: Duration | None = Field(
        default=None,
        description="A younger version stays, also where the table would expire it. null: the table's own option.",
    )
    retain_last: Annotated[StrictInt, Field(ge=1)] | None = Field(
        default=None, description="So many of the latest versions stay, at least. null: the table's own option."
    )


class Audit(_Block):
    """The audit of commits by whoever. It only reads."""

    hold: StrictBool = Field(default=False, description="Put the table on hold where an audit finds that rows differ.")
    files: Duration | None = Field(
        default=None,
        description="Look for every file of every retained version once this time has passed since the last look, such "
        "as 7d. null: only on request.",
    )
    sample: Annotated[StrictFloat, Field(ge=0, le=1)] | None = Field(
        default=None, description="The share of files whose footers such a look opens. null: 200 files."
    )
    byte_budget: Size = Field(
        default=50 * _GB,
        description="Above this many bytes of files that commits moved, the rest is for the next audit.",
        json_schema_extra={"default": "50GB"},
    )


class On(_Block):
    """Receivers of notifications, by outcome of a table, for holds and for late runs."""

    verified: Receivers = Field(default=(), description="Notified when a version was published and proven.")
    unchanged: Receivers = Field(default=(), description="Notified when there was nothing to do.")
    skipped: Receivers = Field(default=(), description="Notified when the policy or a hold left the table out.")
    refused: Receivers = Field(default=(), description="Notified when the table needs what is not handled.")
    conflicted: Receivers = Field(default=(), description="Notified when a race was lost on every try.")
    mismatch: Receivers = Field(default=(), description="Notified when rows differ.")
    failed: Receivers = Field(default=(), description="Notified when the work on the table failed.")
    hold: Receivers = Field(default=(), description="Notified when the table was put on hold, once for each hold.")
    late: Receivers = Field(
        default=(), description="Notified when a run in Airflow missed its deadline, whichever table names them."
    )


class Settings(_Block):
    """Everything a layer may set for a table. Sizes are bytes, durations milliseconds; None is described per field."""

    preset: Preset = Field(
        default=Preset.BALANCED, description="Values for what no other layer sets: below every explicit value."
    )
    operations: Annotated[tuple[Nightly, ...], Field(min_length=1)] | None = Field(
        default=None, description="What to run, in order. null: what suits the table's format."
    )
    pause: Text | None = Field(default=None, description="Why the table is left alone for now. null: it is not paused.")
    window: Hours | None = Field(
        default=None,
        description="When a run may start: HH:MM-HH:MM and an IANA time zone, or a mapping of operations to such "
        "windows; one that would end later does not start. null: at any time.",
    )
    when: Conditions | None = Field(
        default=None,
        description="On which health of the table a night acts: a comparison such as small_files > 20, any or all with "
        "a list of them, or a mapping of operations to such conditions. null: whenever there is work.",
    )
    where: Text | None = Field(default=None, description="Partition filter; never changes rows. null: every partition.")
    full: StrictBool = Field(default=False, description="Rewrite whole units, not only what needs it.")
    respec: StrictBool = Field(
        default=False, description="optimize moves files of older partition specs to the current one. Iceberg only."
    )
    target_size: Size | None = Field(
        default=None, description="Size of the files written. null: what the table's own options state."
    )
    min_file_size: Size | None = Field(
        default=None,
        description="A file below this is small. null: half the target size, three quarters of it for Iceberg.",
    )
    max_deleted_ratio: Annotated[StrictFloat, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="A file with a larger share of its rows deleted is rewritten. null: 0.05, for Paimon what the "
        "table's own options state.",
    )
    clustering: ClusterBy | None = Field(
        default=None,
        description="Columns that rows are clustered by, and along which curve. null: files are only packed.",
    )
    commit_size: Size = Field(
        default=10 * _GB,
        description="A run commits after about this many bytes of input: what it may lose when it is ended.",
        json_schema_extra={"default": "10GB"},
    )
    task_memory: Size = Field(
        default=2 * _GB,
        description="Memory one task may use before it spills or splits.",
        json_schema_extra={"default": "2GB"},
    )
    exchange_above: Size | None = Field(
        default=None,
        description="A unit with more bytes than this is rewritten through Spark's exchange, on every core. "
        "null: four times task_memory.",
    )
    spark: SparkConf = Field(
        default=(),
        description="Settings of Spark for the sessions that work on the table, above those of the cluster and below "
        "those of a DAG or a connection. A higher layer replaces them as a whole. Tables share a session only with "
        "equal ones.",
    )
    verify: VerifyLevel = Field(
        default=VerifyLevel.FULL, description="full hashes every row of a touched unit, touched those that moved."
    )
    allow_compacting_writers: StrictBool = Field(
        default=False, description="Run although a writer of this table compacts it as well."
    )
    other_managers: Literal["unknown", "known"] = Field(
        default="unknown",
        description="known: a service that compacts or expires this table as well is known of. unknown: a table with a "
        "sign of one is refused.",
    )
    writers: Writers = Field(
        default=Writers.UNKNOWN,
        description="conditional: whoever writes to this table on an object store creates commits by conditional "
        "writes, as we do. unknown: tables there are refused whose writers may not.",
    )
    check: Check = Field(default_factory=Check, description="The check of what was published.")
    expectations: Expected = Field(
        default=(),
        description="What is expected of the rows of a published version: types and arguments of Great Expectations, "
        "as a list or as the path to a suite in its JSON. Of severity critical, the default, a failure holds the "
        "table; warning and info are reported.",
    )
    sweep: Sweep = Field(default_factory=Sweep, description="The sweep of orphan files.")
    expire: Expire = Field(default_factory=Expire, description="The expiry of old versions.")
    audit: Audit = Field(default_factory=Audit, description="The audit of commits by whoever.")
    on: On = Field(
        default_factory=On,
        description="Receivers of notifications: a connection of Airflow's by its name, {webhook: URL}, or {notifier: "
        "IMPORT PATH, kwargs: {...}}. ${NAME} is replaced from the environment when a message is sent.",
    )


class Defaults(Settings):
    """The lowest explicit layer, and what holds for a night as a whole."""

    tables_per_session: Annotated[StrictInt, Field(ge=1)] = Field(
        default=4, description="Tables that share one Spark session."
    )


class PatternEntry(Settings):
    """A layer for every table whose name matches a glob."""

    match: Text = Field(description="Glob on table names: * any text, ? one character, [ab] one of these.")
    budget: Budget | None = Field(default=None, description="What these tables may cost together. null: no limit.")


class TableEntry(Settings):
    """One table and its own layer, the highest."""

    name: Name = Field(description="What the table is called in commands and reports.")
    table: Text = Field(
        description="paimon:URI, delta:URI or iceberg:CATALOG/NAMESPACE.TABLE. ${NAME} and ${NAME:-default} "
        "are replaced from the environment; a relative path starts at the policy file's folder."
    )


_GENTLE = (
    "small_files >= 20",
    "deleted_ratio >= 10%",
    "equality_deletes > 0",
    "level0_age_ms >= 1d",
    "sorted_runs >= 5",
)
"""What the gentlest preset waits for: each costs readers more than a commit costs writers."""


PRESETS: Mapping[Preset, Mapping[str, object]] = MappingProxyType(
    {
        Preset.GENTLE: {
            "verify": VerifyLevel.TOUCHED,
            "task_memory": _GB,
            "check.byte_budget": _GB,
            "when": parse_when({"any": [*_GENTLE]}),
        },
        Preset.BALANCED: {},
        Preset.THOROUGH: {
            "full": True,
            "check.byte_budget": 1024 * _GB,
            "check.join_budget": _GB,
            "check.keys_budget": 1024 * _GB,
        },
    }
)


OPERATIONS: Mapping[str, tuple[Operation, ...]] = MappingProxyType(
    {
        "paimon": (Operation.UPGRADE, Operation.OPTIMIZE),
        "delta": (Operation.OPTIMIZE,),
        "iceberg": (Operation.PERSIST_DELETES, Operation.OPTIMIZE),
    }
)
"""The default operations of each format, for tables without any in their policy. Known without opening the table."""
OF_KINDS: frozenset[str] = frozenset({"paimon"})
"""Formats with several kinds of tables. Each of the default operations suits some kinds only."""


def suited(table_format: str) -> tuple[Operation, ...]:
    """The default operations of a format, also of an unknown one."""
    return OPERATIONS.get(table_format, (Operation.OPTIMIZE,))


def depends_on_table(table_format: str) -> bool:
    """Whether only the table itself decides which of the default operations suit it."""
    return table_format in OF_KINDS
