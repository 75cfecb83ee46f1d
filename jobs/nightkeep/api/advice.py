"""nightkeep.advise: a table -> the columns to cluster it by, or the advice to do nothing."""

from __future__ import annotations

import time
from pathlib import Path

from nightkeep.api.call_context import find_context
from nightkeep.clustering.advise import Advice
from nightkeep.clustering.advise import advise as advise_on
from nightkeep.errors import RefusedTable, UsageError
from nightkeep.formats import open_table
from nightkeep.model import Operation, Request
from nightkeep.policy import EffectivePolicy, Overrides
from nightkeep.sql_text.queries import Query, read_queries


def advise(
    table: str, *, queries: str | Path | None = None, target_size: str | None = None, policy: str | Path | None = None
) -> Advice:
    """Advise which columns to cluster by, from the files that queries skip on a sample; or advise to do nothing.

    `queries` is a file of SQL queries or conditions. Without it, ranges of 1 % of each column are used.
    """
    chosen = find_context(policy, None).effective(table, Overrides(target_size=target_size))
    opened = open_table(chosen.address)
    if opened.layout is None:
        feature = f"{chosen.address.format} tables are not clustered"
        raise RefusedTable(chosen.address.name, feature, "delta and iceberg tables are")
    parsed, layout = _queries_of(queries), opened.layout
    snapshot = opened.snapshot()
    target_bytes = layout.target_bytes(snapshot, _request(chosen))
    own = opened.own_clustering(snapshot)
    # Unlike clustering columns, a sort order is no layout to compare others with: whoever asks for one gets it.
    own = None if own is not None and own.order is not None else own
    return advise_on(chosen.address.name, layout, snapshot, parsed, target_bytes=target_bytes, own=own)


def _queries_of(queries: str | Path | None) -> tuple[Query, ...]:
    if queries is None:
        return ()
    try:
        return read_queries(Path(queries).read_text(encoding="utf-8"), subject=str(queries))
    except OSError as failure:
        raise UsageError(f"{queries}: expected a file of queries, found {failure.strerror}") from failure


def _request(chosen: EffectivePolicy) -> Request:
    now_ms = time.time_ns() // 1_000_000
    return Request(Operation.OPTIMIZE, now_ms, target_bytes=chosen.settings.target_size)
