"""Buckets -> what batch readers of a table with deletion vectors do not see before an upgrade of level 0."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from nightkeep.formats.paimon.metadata.schema import hides_level0
from nightkeep.formats.paimon.metadata.snapshot import Bucket, PaimonSnapshot
from nightkeep.formats.paimon.rewrite.writer_clock import clock_shift, find_clock_shift, writer_time
from nightkeep.model import UnitKey
from nightkeep.storage import Storage


def lag(buckets: Iterable[Bucket], now_ms: int, *, shift_ms: int | None) -> Mapping[str, int | None]:
    """JSON of the level-0 files of `buckets`: their number, their rows, and milliseconds since the oldest was written,
    None without files. Of the time a row waits, only the part since its file was written is recorded. `shift_ms` is how
    far the writer's clock is ahead of UTC."""
    waiting = [file for bucket in buckets for file in bucket.files if file.level == 0]
    oldest = min((file.created_ms for file in waiting), default=None)
    return {
        "level0_files": len(waiting),
        "level0_rows": sum(file.rows for file in waiting),
        "level0_age_ms": None if oldest is None else max(0, writer_time(now_ms, shift_ms) - oldest),
    }


def layout_metrics(before: PaimonSnapshot, after: PaimonSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, object]:
    """Files of the touched buckets by level. Where level 0 is hidden from readers, also `lag`: of all buckets of either
    version, at the time when `after` was committed."""
    sides = {"before": before, "after": after}
    levels = {f"levels_{name}": _levels(side, touched) for name, side in sides.items()}
    if not hides_level0(after.schema):
        return levels
    now_ms = int(str(after.raw["timeMillis"]))
    shift = clock_shift(after, before)
    return {**levels, "lag": {name: lag(side.units, now_ms, shift_ms=shift) for name, side in sides.items()}}


def _levels(snapshot: PaimonSnapshot, touched: Sequence[UnitKey]) -> Mapping[str, int]:
    buckets = (snapshot.by_key.get(key) for key in touched)
    counts = Counter(file.level for bucket in buckets if bucket is not None for file in bucket.files)
    return {str(level): counts[level] for level in sorted(counts)}


def waiting_rows(storage: Storage, snapshot: PaimonSnapshot) -> str | None:
    """The sentence for the operator about all rows of a table that its batch readers do not see; None without any."""
    if not hides_level0(snapshot.schema):
        return None
    now_ms = int(str(snapshot.raw["timeMillis"]))
    found = lag(snapshot.units, now_ms, shift_ms=find_clock_shift(storage, snapshot))
    if not found["level0_files"]:
        return None
    return (
        f"batch readers do not see {found['level0_rows']:,} rows of {found['level0_files']:,} level-0 files yet; the "
        f"oldest was written {(found['level0_age_ms'] or 0) / 1000:,.0f} s before this version"
    )
