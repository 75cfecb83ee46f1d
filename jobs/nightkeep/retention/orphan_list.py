"""Batches of orphans -> a file of JSON Lines beside the document, and a summary for the document."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from nightkeep.model.sweep_rules import AGES
from nightkeep.places import located
from nightkeep.retention.orphans.sets import NO_FILES, FileTotals

SHOWN: Final = 1000
"""How many orphans the document itself names."""


@dataclass
class OrphanList:
    """The summary of what was written: the first files by name, as JSON, and the counts of all files."""

    total: FileTotals = NO_FILES
    first: list[dict[str, object]] = field(default_factory=list)
    by_kind: dict[str, FileTotals] = field(default_factory=dict)
    by_age: dict[str, FileTotals] = field(default_factory=dict)
    hashes: int = 0

    @property
    def digest(self) -> str:
        """The same for the same files in any order."""
        return f"{self.hashes % 2**256:064x}"

    def to_json(self) -> dict[str, object]:
        return {
            "orphans": self.first,
            "orphans_total": self.total.files,
            "orphans_bytes": self.total.bytes,
            "by_kind": {kind: counted(self.by_kind[kind]) for kind in sorted(self.by_kind)},
            "by_age": {age: counted(self.by_age[age]) for age, _ in AGES if age in self.by_age},
        }

    def add(self, batch: pa.RecordBatch, orphans: list[dict[str, object]], now_ms: int) -> None:
        sizes = batch.column("bytes").to_numpy(zero_copy_only=False)
        ages = now_ms - batch.column("modified_ms").to_numpy(zero_copy_only=False)
        places = np.searchsorted([end for _, end in AGES if end is not None], ages, side="right")
        self.total += FileTotals(len(sizes), int(sizes.sum()))
        self.first += orphans[: SHOWN - len(self.first)]
        _count(self.by_age, np.array([age for age, _ in AGES])[places], sizes)
        _count(self.by_kind, np.array(batch.column("kind").to_pylist(), dtype=object), sizes)


def write_orphans(path: str | Path, batches: Iterable[pa.RecordBatch], *, root: str, now_ms: int) -> OrphanList:
    """Write every file of `batches` (schema ORPHANS) as a line of JSON. The file is created or replaced atomically."""
    orphans, (store, name) = OrphanList(), located(path)
    with store.write_stream(name) as sink:
        for batch in batches:
            rows = [_orphan(row, root) for row in batch.to_pylist()]
            lines = [f"{json.dumps(row)}\n".encode("ascii") for row in rows]
            sink.write(b"".join(lines))
            orphans.add(batch, rows, now_ms)
            orphans.hashes += sum(int.from_bytes(hashlib.sha256(line).digest()) for line in lines)
    return orphans


def counted(tally: FileTotals) -> dict[str, int]:
    """File totals as JSON."""
    return {"files": tally.files, "bytes": tally.bytes}


def iso(epoch_ms: int) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _orphan(row: Mapping[str, Any], root: str) -> dict[str, object]:
    return {
        "path": f"{root.rstrip('/')}/{row['name']}",
        "bytes": row["bytes"],
        "modified_at": iso(row["modified_ms"]),
        "kind": row["kind"],
    }


def _count(tallies: dict[str, FileTotals], labels: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]) -> None:
    for label in dict.fromkeys(labels.tolist()):
        chosen = sizes[labels == label]
        tallies[label] = tallies.get(label, NO_FILES) + FileTotals(len(chosen), int(chosen.sum()))
