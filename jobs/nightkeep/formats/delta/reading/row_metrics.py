"""Counts of rows that a commit states in `operationMetrics`, against the counts of the files that it adds and removes.

Metrics of delta-spark and deltalake alone, as both write them. PROTOCOL.md, "Commit Provenance Information",
"Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from nightkeep.formats.delta.metadata.actions import Raw, vector_id
from nightkeep.formats.delta.reading.commit_faults import LoggedCommit, file_of, rows_of
from nightkeep.formats.delta.reading.stated_totals import RUST, SPARK, WRITES, known_sum, of_engine, stated_number


@dataclass(frozen=True, slots=True)
class _Counts:
    """Metrics whose sum is the rows of files without vectors that a commit adds, since a file with a vector is one that
    was there; and those by which the rows of the table grow and shrink. None where the engine does not state it."""

    written: tuple[str, ...] = ()
    more: tuple[str, ...] | None = None
    fewer: tuple[str, ...] = ()


_COUNTS: Final = {
    SPARK: {
        "DELETE": _Counts(("numCopiedRows",), (), ("numDeletedRows",)),
        "UPDATE": _Counts(("numCopiedRows", "numUpdatedRows"), ()),
        "MERGE": _Counts(("numOutputRows",), ("numTargetRowsInserted",), ("numTargetRowsDeleted",)),
    },
    RUST: {
        "DELETE": _Counts(("num_copied_rows",), (), ("num_deleted_rows",)),
        "UPDATE": _Counts(("num_copied_rows", "num_updated_rows"), ()),
        "MERGE": _Counts(("num_output_rows",), ("num_target_rows_inserted",), ("num_target_rows_deleted",)),
    },
}


def row_faults(commit: LoggedCommit, live: Mapping[str, Raw]) -> Iterator[str]:
    """What the counts of a commit contradict. `live`: files of the version before by path, those that are known."""
    metrics, adds = commit.info.get("operationMetrics"), commit.of("add")
    if not isinstance(metrics, Mapping):
        return
    shown = known_sum(map(_live_rows, adds))
    if commit.info.get("operation") in WRITES:
        # deltalake's `num_added_rows` leaves out rows that a write by predicate copies.
        stated = stated_number(metrics.get("numOutputRows"))
        if SPARK.fullmatch(str(commit.info.get("engineInfo"))) and None not in (stated, shown) and stated != shown:
            yield f"its metrics state numOutputRows {stated}, and the files that it adds have {shown} rows"
        return
    counts = of_engine(commit, _COUNTS, _Counts())
    yield from _written_faults(counts, metrics, known_sum(rows_of(add) for add in adds if vector_id(add) is None))
    before = known_sum(_live_before(remove, live) for remove in commit.of("remove"))
    if counts.more is None or shown is None or before is None:
        return
    more, fewer = _stated(metrics, counts.more), _stated(metrics, counts.fewer)
    if more is not None and fewer is not None and shown != before + more - fewer:
        yield (
            f"it replaces {before} rows by {shown}, and its metrics state {more} more and {fewer} fewer"
            f" ({', '.join((*counts.more, *counts.fewer)) or commit.info.get('operation')})"
        )


def _written_faults(counts: _Counts, metrics: Mapping[str, object], found: int | None) -> Iterator[str]:
    stated = _stated(metrics, counts.written)
    if counts.written and None not in (stated, found) and stated != found:
        names = " and ".join(counts.written)
        yield f"its metrics state {names} {stated}, and the files that it wrote have {found} rows"


def _stated(metrics: Mapping[str, object], names: Iterable[str]) -> int | None:
    return known_sum(stated_number(metrics.get(name)) for name in names)


def _live_before(remove: Raw, live: Mapping[str, Raw]) -> int | None:
    """The rows that readers saw of a removed file, None where its add is not known."""
    add = live.get(str(remove["path"]))
    return _live_rows(add) if add is not None and file_of(add) == file_of(remove) else None


def _live_rows(add: Raw) -> int | None:
    """The rows that readers of the file see, None without a count in its statistics."""
    rows, vector = rows_of(add), add.get("deletionVector")
    gone = stated_number(vector.get("cardinality")) if isinstance(vector, Mapping) else 0
    return None if rows is None or gone is None else rows - gone
