"""nightkeep.check and diff: published versions -> their comparison by Spark SQL; and checks that were left behind."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from nightkeep.api.call_context import find_context, name_run, refuse_others, start_engine
from nightkeep.api.left_checks import check_left
from nightkeep.api.newest_document import newest_commit
from nightkeep.api.notices import notify_of_check
from nightkeep.api.results import RunHistory
from nightkeep.checking import on_spark
from nightkeep.errors import EvidenceError, NightkeepError, RefusedTable, UsageError
from nightkeep.formats import open_table
from nightkeep.model.check_values import READS, CheckRequest
from nightkeep.other_readers.agreement import with_other_reader
from nightkeep.other_readers.reader_process import OtherReader
from nightkeep.policy import EffectivePolicy
from nightkeep.records.check_report import CheckReport, DiffReport
from nightkeep.records.own_report import with_own_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@overload
def check(
    table: str,
    *,
    left: Literal[False] = False,
    last: bool = False,
    version: int | None = None,
    base: int | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    reader: str | None = None,
    master: str = "local[*]",
    spark: SparkSession | None = None,
) -> CheckReport: ...


@overload
def check(
    table: str | None = None,
    *,
    left: Literal[True],
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    master: str = "local[*]",
    spark: SparkSession | None = None,
) -> RunHistory: ...


def check(
    table: str | None = None,
    *,
    left: bool = False,
    last: bool = False,
    version: int | None = None,
    base: int | None = None,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    reader: str | None = None,
    master: str = "local[*]",
    spark: SparkSession | None = None,
) -> CheckReport | RunHistory:
    """Check a published version, by default the latest, with Spark SQL and Great Expectations.

    `left`: check instead every published version of the table, or of all tables, whose check its run left, and add the
    results to the documents of these runs, which are returned. `last`: the version that the newest run published, where
    others may have committed since. `reader` is one more engine that reads the version and
    its parent: the name of its package, `deltalake`, `duckdb`, `pyiceberg` or `pypaimon`, or `NAME=PYTHON` where
    another Python has it. By default the policy's reader.
    """
    context = find_context(policy, reports)
    if left:
        given = {"--version": version, "--base": base, "--reader": reader, "--last": last or None}
        refuse_others("--left", "no other choice of what is checked", given)
        return check_left(context, table, master, spark)
    if table is None:
        raise UsageError("TABLE: expected the name or address of a table, or --left, found neither")
    if last:
        refuse_others("--last", "no other choice of a version", {"--version": version, "--base": base})
        version = newest_commit(context, table).committed_version
    chosen = context.chosen(table)
    other = _other_reader(chosen, reader)
    _require_versions(chosen, {"--version": version, "--base": base})
    _refuse_unread(chosen)
    settings = chosen.settings.check
    request = CheckRequest(
        address=chosen.address,
        version=version,
        base_version=base,
        byte_budget=settings.byte_budget,
        join_budget=settings.join_budget,
        keys_budget=settings.keys_budget,
        evidence=settings.evidence,
        keys=settings.keys,
    )
    with start_engine(chosen, master, spark, checks=True) as engine:
        engine.stored_bytes = _size(chosen, version)
        report = on_spark.check(request, engine)
        asked = chosen.own_request(() if version is None else ((version, None),))
        own = None if asked is None else on_spark.expect_own(asked, engine)
    if other is not None:
        report = with_other_reader(report, chosen.address, other, byte_budget=request.byte_budget)
    report = report if own is None else with_own_report(report, own)
    notify_of_check(chosen, report, context.reports, name_run(None))
    return report


def diff(
    table: str,
    *,
    version: int | None = None,
    other: int | None = None,
    last: bool = False,
    policy: str | Path | None = None,
    reports: str | Path | None = None,
    master: str = "local[*]",
    spark: SparkSession | None = None,
) -> DiffReport:
    """Compare the content of two versions, row by row where it differs: those before and after the `last` run that
    published something, or those that are named."""
    context = find_context(policy, reports)
    if last and version is None and other is None:
        published = newest_commit(context, table)
        version, other, last = published.committed_version, published.base_version, False
    if last or version is None or other is None:
        raise UsageError("--version, --other and --last: expected both versions, or --last alone")
    chosen = context.chosen(table)
    _require_versions(chosen, {"--version": version, "--other": other})
    _refuse_unread(chosen)
    with start_engine(chosen, master, spark) as engine:
        return on_spark.diff(chosen.address, version, other, engine)


def _refuse_unread(chosen: EffectivePolicy) -> None:
    """Raise RefusedTable for a table that nobody here may read, before Spark is started, which takes seconds. Whatever
    else is wrong with the table the check states."""
    with suppress(EvidenceError, OSError):
        open_table(chosen.address).description()


def _size(chosen: EffectivePolicy, version: int | None) -> int | None:
    """The size of the version. None if it cannot be read: the check states why."""
    with suppress(NightkeepError, OSError):
        table = open_table(chosen.address)
        return sum((table.snapshot() if version is None else table.snapshot(version)).sizes.bytes)
    return None


def _other_reader(chosen: EffectivePolicy, choice: str | None) -> OtherReader | None:
    """The engine that the call asks for, else the policy. Raises UsageError for one that reads no such tables."""
    named = choice or chosen.settings.check.reader
    other = None if named is None else OtherReader.parse(named)
    if other is not None and choice is not None and chosen.address.format not in READS[other.name]:
        able = ", ".join(name for name, formats in READS.items() if chosen.address.format in formats) or "none"
        raise UsageError(f"--reader: expected one that reads {chosen.address.format} ({able}), found {other.name}")
    return other


def _require_versions(chosen: EffectivePolicy, versions: Mapping[str, int | None]) -> None:
    """Raise UsageError for a version that does not exist, before Spark is started, which takes seconds."""
    named = {option: number for option, number in versions.items() if number is not None}
    table = open_table(chosen.address) if named else None
    for option, number in named.items():
        try:
            # A refused version exists. The check then states why it cannot be compared.
            with suppress(RefusedTable):
                _ = table and table.snapshot(number)
        except (EvidenceError, FileNotFoundError) as failure:
            name = chosen.address.name
            raise UsageError(f"{option}: expected a version that {name} has, found {number} ({failure})") from failure
