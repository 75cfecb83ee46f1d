"""nightkeep advise: what a table would be best clustered by, or that nothing should be done."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, cast

import typer

from nightkeep.clustering.advise import advise as advise_on
from nightkeep.clustering.layout import OpenAdvisable
from nightkeep.commands import options
from nightkeep.commands.policy_place import find_place, put
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats import open_table
from nightkeep.model import Operation, Request
from nightkeep.policy import EffectivePolicy, Overrides
from nightkeep.sql_text.queries import Query, read_queries


def advise(
    table: options.Table,
    queries: Annotated[
        Path | None, typer.Option("--queries", help="SQL queries or conditions; else 1 % ranges of every column")
    ] = None,
    target_size: options.TargetSize = None,
    policy: options.Policy = None, as_json: options.AsJson = False,
) -> None:  # fmt: skip
    """Which columns to cluster by, judged by the files that queries skip on a sample; it may say to do nothing."""
    chosen = find_place(policy, None).effective(table, Overrides(target_size=target_size))
    opened = open_table(chosen.address)
    if Operation.OPTIMIZE not in opened.operations:
        feature = f"{chosen.address.format} tables are not clustered"
        raise RefusedTable(chosen.address.name, feature, "delta and iceberg tables are")
    asked, judged = _asked(queries), cast(OpenAdvisable, opened)
    snapshot = opened.snapshot()
    advice = advise_on(judged, snapshot, asked, target_bytes=judged.target_bytes(snapshot, _request(chosen)))
    put(advice.to_json() if as_json else str(advice), as_json=as_json)


def _asked(queries: Path | None) -> tuple[Query, ...]:
    if queries is None:
        return ()
    try:
        return read_queries(queries.read_text(encoding="utf-8"), subject=str(queries))
    except OSError as failure:
        raise UsageError(f"{queries}: expected a file of queries, found {failure.strerror}") from failure


def _request(chosen: EffectivePolicy) -> Request:
    now_ms = time.time_ns() // 1_000_000
    return Request(Operation.OPTIMIZE, now_ms, target_bytes=chosen.settings.target_size)
