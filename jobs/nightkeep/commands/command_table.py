"""The commands of `nightkeep`: the function of the API that each calls, who prints its answer, and its help."""

from __future__ import annotations

from typing import Final

from nightkeep.commands.answers import (
    put_check,
    put_diagnosis,
    put_diff,
    put_result,
    put_statuses,
    put_stored,
    put_validation,
    show_audit,
    show_document,
    show_removal,
    show_runs,
    show_sweep,
    show_whole_run,
)
from nightkeep.commands.from_signature import Command

COMMANDS: Final = (
    Command(
        "plan",
        show_runs,
        "Show what a run would do, and why. Reads metadata only.",
        "plan shop.orders --full",
        reads=True,
    ),
    Command(
        "run",
        show_runs,
        "Plan, rewrite, prove, publish and check a table.",
        "run shop.orders --operation optimize --zorder customer,day",
    ),
    Command(
        "sql",
        show_document,
        "Run an OPTIMIZE statement.\n\nThe filter and the clustering come from the statement "
        "alone, the rest from options and the policy.",
        """sql "OPTIMIZE delta.`/path` WHERE day >= '2026-11-01' ZORDER BY (a, b)\"""",
    ),
    Command(
        "delete",
        show_document,
        "Delete rows by a condition or by keys.\n\n"
        "Hides them in deletion vectors, proves that no other row is deleted, publishes and checks.",
        'delete lake.clicks --rows-where "user_id = 7" --dry-run',
    ),
    Command(
        "update",
        show_document,
        "Set columns of the rows for which a condition is true.\n\nWrites these rows anew, "
        "proves that no other row is changed, publishes and checks.",
        """update lake.clicks --set "page = '/'" --rows-where "page IS NULL\"""",
    ),
    Command(
        "night",
        show_whole_run,
        "Maintain every table of the policy, as the nightly DAG does, in one process.\n\n"
        "Finds the tables, orders them, works within the budget, checks what is published, writes the page, sends "
        "messages. Exits as the worst table ended. With the --run-id of a night that ended midway, that one goes on.",
        "night --policy tables.yaml",
    ),
    Command(
        "sweep",
        show_sweep,
        "List files that no retained version needs; quarantine or delete them on request."
        "\n\nOnly lists them unless --quarantine or --delete is given. With --all, expires and sweeps every "
        "table as its policy states, as the weekly DAG does.",
        "sweep shop.orders --quarantine",
    ),
    Command(
        "restore",
        show_removal,
        "Restore files that a run moved to quarantine. Overwrites nothing.",
        "restore shop.orders manual-20261122T040000-1a2b3c",
    ),
    Command(
        "expire",
        show_removal,
        "Expire versions past the table's retention, and delete the files only they need."
        "\n\nOnly lists them unless --quarantine or --delete is given.",
        "expire shop.orders --retain-last 20 --delete",
    ),
    Command(
        "advise",
        put_result,
        "Advise which columns to cluster by, or to do nothing.\n\nJudges by the files that queries skip on a sample.",
        "advise lake.clicks --queries queries.sql",
        reads=True,
    ),
    Command(
        "check",
        put_check,
        "Check a published version by Spark SQL and Great Expectations.\n\n"
        "With --left, every version whose run ended before its check: the result is added to the run's document.",
        "check shop.orders --version 12",
    ),
    Command(
        "audit",
        show_audit,
        "Prove what others committed: compactions keep rows, metadata agrees, no version is lost.\n\n"
        "Reads the table and writes nothing to it. Goes on after the last audit; the first one goes back seven days.",
        "audit shop.orders --since 7d --files",
        reads=True,
    ),
    Command(
        "diff", put_diff, "Compare the rows of two versions.", "diff shop.orders --version 12 --other 11", reads=True
    ),
    Command(
        "explain",
        put_result,
        "Show the policy of a table, the line each value is from, and what is refused.",
        "explain shop.orders",
        reads=True,
    ),
    Command(
        "tables",
        put_result,
        "List every table that the policy names or discovers, and what covers it.",
        "tables --json",
        reads=True,
    ),
    Command(
        "status",
        put_statuses,
        "List tables by health, the worst first.\n\n"
        "Reads metadata only, and estimates what maintenance would bring and cost.",
        "status shop.orders",
        reads=True,
    ),
    Command(
        "history",
        put_stored,
        "List what was done, oldest first.\n\nOf all tables the newest 20 runs, unless others are asked for. "
        "With --json, all documents.",
        "history shop.orders --since 7d",
        reads=True,
        shown="shown_history",
    ),
    Command(
        "release", put_result, "Release a table from the hold that a failed check put on it.", "release shop.orders"
    ),
    Command(
        "metrics",
        put_result,
        "Print outcomes, times, sizes and holds of all tables for Prometheus, from their documents.",
        "metrics --out /var/lib/node_exporter/nightkeep.prom",
        reads=True,
    ),
    Command("report", put_stored, "Write the page of every run, and the index of them.", "report --out pages"),
    Command(
        "validate",
        put_validation,
        "Check the policy and the files that it imports. Exits with 2 if there is a fault.",
        "validate --tables",
        reads=True,
    ),
    Command(
        "doctor",
        put_diagnosis,
        "List what is missing here to run, before any Spark starts. Exits with 1 if something is.\n\n"
        "Asks Python, packages, Java, Spark, the policy, its places, the place of reports, and Airflow where it is set "
        "up. Writes and removes a small file in the place of reports and in buckets of tables.",
        "doctor --policy tables.yaml",
    ),
)
