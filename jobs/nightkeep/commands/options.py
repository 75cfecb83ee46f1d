"""The options of all commands, a row for each: type, group in the help, value, help and default.

A command's parameters are those of its function in `nightkeep.api`; a row has how one is written and explained. A row
such as `check.version` is for that command alone. A new option is a row here and a parameter of the function.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nightkeep.model import RUN_OPERATIONS, VerifyLevel, Writers


@dataclass(frozen=True, slots=True)
class OptionRow:
    """How a parameter is written. `value` names its value in the help, none for a switch. `default` states in words
    what holds without the option."""

    kind: Any
    group: str
    value: str
    help: str
    default: str | None = None


_TEXT, _TEXTS, _PATH, _SHARE, _NUMBER = str | None, list[str] | None, Path | None, float | None, int | None
_WHAT: Final = "What to do"
_LAYOUT: Final = "Layout"
_PROOF: Final = "Proof"
_PLACES: Final = "Where things are"
_OUTPUT: Final = "Output"
_ARGUMENTS: Final = "Arguments"
_OF_POLICY: Final = "the policy's"
_ONLY_LISTS: Final = "listed only"

# The help shows groups, and options within a group, in the order of these rows.
OPTIONS: Final[dict[str, OptionRow]] = {
    "table": OptionRow(str, _ARGUMENTS, "TABLE", "Name in tables.yaml, or an address such as paimon:/path/to/table"),
    "check.table": OptionRow(_TEXT, _ARGUMENTS, "TABLE", "Name or address of a table", "all tables, with --left"),
    "status.table": OptionRow(_TEXT, _ARGUMENTS, "TABLE", "Name or address of a table", "all tables"),
    "history.table": OptionRow(_TEXT, _ARGUMENTS, "TABLE", "Name or address of a table", "all tables"),
    "sweep.table": OptionRow(_TEXT, _ARGUMENTS, "TABLE", "Name or address of a table", "all tables, with --all"),
    "statement": OptionRow(str, _ARGUMENTS, "STATEMENT", "An OPTIMIZE statement as Delta Lake has it"),
    "restore.run_id": OptionRow(
        _TEXT, _ARGUMENTS, "RUN_ID", "Run that moved the files to quarantine", "none, with --last"
    ),
    "operation": OptionRow(_TEXTS, _WHAT, "NAME", f"One of {', '.join(RUN_OPERATIONS)}; may be repeated", _OF_POLICY),
    "history.operation": OptionRow(_TEXT, _WHAT, "NAME", "Only this operation", "all"),
    "history.since": OptionRow(_TEXT, _WHAT, "DATE|AGE", "Only what ended since, such as 2026-11-20 or 7d", "all"),
    "check.last": OptionRow(bool, _WHAT, "", "The version that the newest run published"),
    "diff.last": OptionRow(bool, _WHAT, "", "The versions before and after the newest run that published one"),
    "restore.last": OptionRow(bool, _WHAT, "", "The newest run that moved files to quarantine"),
    "last": OptionRow(_NUMBER, _WHAT, "N", "Only so many of the newest runs", "all"),
    "failed": OptionRow(bool, _WHAT, "", "Only what ended in mismatch, failed or conflicted, or with a failed check"),
    "where": OptionRow(_TEXT, _WHAT, "EXPR", "Partition filter; never changes rows", _OF_POLICY),
    "full": OptionRow(bool, _WHAT, "", "Rewrite all files, not only new ones"),
    "spec": OptionRow(
        _TEXT, _WHAT, "current", "Move files of older partition specs to the current one (Iceberg)", "they stay"
    ),
    "rows_where": OptionRow(_TEXT, _WHAT, "EXPR", "Condition in Spark SQL; rows for which it is NULL stay"),
    "keys": OptionRow(
        _PATH, _WHAT, "FILE", "Parquet, JSON Lines or CSV file of keys in columns of the table; null matches null"
    ),
    "set": OptionRow(_TEXTS, _WHAT, "TEXT", '"column = expression" in Spark SQL of the old row; may be repeated'),
    "all": OptionRow(bool, _WHAT, "", "Every table of the policy, each as the policy states: what the weekly DAG does"),
    "delete": OptionRow(bool, _WHAT, "", "Delete the files; they cannot be restored", _ONLY_LISTS),
    "expire.delete": OptionRow(bool, _WHAT, "", "Expire the versions, and delete their files", _ONLY_LISTS),
    "quarantine": OptionRow(
        bool, _WHAT, "", "Move the files to quarantine, to be restored or deleted later", _ONLY_LISTS
    ),
    "dry_run": OptionRow(bool, _WHAT, "", "Count the rows; change nothing"),
    "expire.dry_run": OptionRow(bool, _WHAT, "", "List the versions, which is the default"),
    "restore.dry_run": OptionRow(bool, _WHAT, "", "Count the files; restore none"),
    "older_than": OptionRow(_TEXT, _WHAT, "AGE", "Keep what is younger, such as 7d, 36h or 90m", _OF_POLICY),
    "retain_last": OptionRow(_NUMBER, _WHAT, "N", "Keep at least this many of the latest versions", _OF_POLICY),
    "below_floor": OptionRow(bool, _WHAT, "", "Allow an age at which writers may still be at work"),
    "max_share": OptionRow(
        _SHARE, _WHAT, "SHARE", "Remove nothing if more than this share of all files would go, 0 to 1", _OF_POLICY
    ),
    "expect_plan": OptionRow(
        _TEXT, _WHAT, "DIGEST", "Do nothing unless the plan is the one whose document has this plan_digest"
    ),
    "run": OptionRow(_TEXT, _WHAT, "RUN_ID", "Only files that this run left", "files of any run"),
    "find": OptionRow(
        _TEXT, _WHAT, "HOW", "listing of all folders, or log: what a Delta table's log names as removed", _OF_POLICY
    ),
    "version": OptionRow(_NUMBER, _WHAT, "N", "One version"),
    "check.version": OptionRow(_NUMBER, _WHAT, "N", "The published version", "the latest"),
    "other": OptionRow(_NUMBER, _WHAT, "N", "The version to compare it with"),
    "since": OptionRow(
        _TEXT, _WHAT, "VERSION|AGE", "Commits after a version, or of an age such as 7d", "the last audit"
    ),
    "files": OptionRow(bool, _WHAT, "", "Look for every file that a retained version needs"),
    "byte_budget": OptionRow(_TEXT, _WHAT, "SIZE", "Bytes of moved files to read, such as 50GB", _OF_POLICY),
    "left": OptionRow(bool, _WHAT, "", "Check the published versions whose check was left behind"),
    "base": OptionRow(_NUMBER, _WHAT, "N", "The version that it must equal", "the version before"),
    "queries": OptionRow(_PATH, _WHAT, "FILE", "SQL queries or conditions", "1 % ranges of every column"),
    "reason": OptionRow(_TEXT, _WHAT, "TEXT", "Why, which the history keeps"),
    "tables": OptionRow(bool, _WHAT, "", "Open the tables too: columns, filters, metrics"),
    "forget": OptionRow(_TEXT, _WHAT, "AGE", "Remove results of Great Expectations older than this, such as 90d"),
    "run_id": OptionRow(_TEXT, _WHAT, "ID", "Name of the run, the same in every retry", "a new one"),
    "zorder": OptionRow(_TEXT, _LAYOUT, "COLUMNS", "Cluster along a Z curve by columns such as a,b", _OF_POLICY),
    "hilbert": OptionRow(_TEXT, _LAYOUT, "COLUMNS", "Cluster along a Hilbert curve by columns such as a,b", _OF_POLICY),
    "target_size": OptionRow(_TEXT, _LAYOUT, "SIZE", "Size of files written, such as 256MB", _OF_POLICY),
    "min_file_size": OptionRow(_TEXT, _LAYOUT, "SIZE", "A file below this is small, such as 128MB", _OF_POLICY),
    "max_deleted_ratio": OptionRow(
        _SHARE, _LAYOUT, "SHARE", "Rewrite files with more of their rows deleted, 0 to 1", _OF_POLICY
    ),
    "task_memory": OptionRow(_TEXT, _LAYOUT, "SIZE", "Memory of a task, such as 2GB", _OF_POLICY),
    "verify": OptionRow(
        _TEXT, _PROOF, "LEVEL", f"{' or '.join(VerifyLevel)}: hash every row, or those that moved", _OF_POLICY
    ),
    "no_check": OptionRow(bool, _PROOF, "", "Leave out the check after publishing"),
    "reader": OptionRow(
        _TEXT,
        _PROOF,
        "NAME",
        "One more engine: deltalake, duckdb, pyiceberg or pypaimon; NAME=PYTHON if elsewhere",
        _OF_POLICY,
    ),
    "allow_compacting_writers": OptionRow(bool, _PROOF, "", "Run beside a writer that compacts"),
    "writers": OptionRow(
        _TEXT, _PROOF, "HOW", f"{' or '.join(Writers)}: others commit by conditional writes as well", _OF_POLICY
    ),
    "policy": OptionRow(
        _TEXT, _PLACES, "FILE", "The policy, a file or its address in a bucket", "$NIGHTKEEP_POLICY or ./tables.yaml"
    ),
    "reports": OptionRow(
        _TEXT, _PLACES, "FOLDER", "Folder of documents, or an address in a bucket", "reports/ beside the policy"
    ),
    "metrics.out": OptionRow(_PATH, _PLACES, "FILE", "A file ending in .prom, which is replaced at once", "stdout"),
    "out": OptionRow(_TEXT, _PLACES, "FOLDER", "Where pages go", "beside the documents"),
    "master": OptionRow(str, _PLACES, "URL", "Spark master"),
    "data_docs": OptionRow(bool, _OUTPUT, "", "Write the Data Docs of Great Expectations too, which load nothing"),
    "json": OptionRow(bool, _OUTPUT, "", "Print one JSON document on stdout"),
    "verbose": OptionRow(bool, _OUTPUT, "", "Print the log, too, on stderr"),
    "quiet": OptionRow(bool, _OUTPUT, "", "Print nothing on stderr but what ends the command"),
}
