"""A copy of the samples -> the same with what writers leave that were killed, or lost a race, before their commit.

`python -m samples.leftovers FOLDER` plants them below FOLDER, where `paimon`, `delta` and `iceberg` are. What a killed
writer leaves is a file like those that were committed, whole or cut short, under a name of its own that no version has;
so every leftover is a copy of a file of the table, named as its engine names them. Some are old, some are a day old and
could still be committed.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DAY = 24 * 60 * 60
YOUNG = 1


@dataclass(frozen=True, slots=True)
class Leftover:
    """One planted file; `kind` is what a sweep calls it, `days` its age. `share`: how much of it was written."""

    table: str
    like: str
    name: str
    kind: str
    days: int
    share: float = 1.0

    def source(self, folder: Path) -> Path:
        """The file of the table that it is a copy of."""
        return min(folder.joinpath(self.table).glob(self.like))

    def plant(self, source: Path, now: float) -> Path:
        """Write it beside `source`, as old as it is to be; its path."""
        content = source.read_bytes()
        path = source.with_name(self.name)
        path.write_bytes(content[: int(len(content) * self.share)])
        os.utime(path, (now - self.days * DAY,) * 2)
        return path


def leftovers() -> Iterator[Leftover]:
    """What `plant` plants, a table of each format."""
    orders, clicks, stream = "paimon/shop.db/orders", "delta/shop.db/clicks", "iceberg/shop/orders"
    yield Leftover(orders, "dt=2026-11-02/bucket-0/data-*.parquet", f"data-{_id(1)}-0.parquet", "data", 12)
    yield Leftover(orders, "dt=2026-11-02/bucket-0/data-*.parquet", f"data-{_id(1)}-1.parquet", "data", 12, 0.4)
    yield Leftover(orders, "dt=2026-11-02/bucket-0/data-*.parquet", f"data-{_id(2)}-0.parquet", "data", YOUNG)
    yield Leftover(orders, "manifest/manifest-[0-9a-f]*", f"manifest-{_id(1)}-0", "manifest", 12)
    yield Leftover(orders, "snapshot/snapshot-1", f".snapshot-9.{_id(1)}.tmp", "temporary", 12, 0.5)
    yield Leftover(clicks, "day=*/*.parquet", f"part-00000-{_id(3)}.c000.snappy.parquet", "data", 45)
    yield Leftover(clicks, "day=*/*.parquet", f"part-00001-{_id(3)}.c000.snappy.parquet", "data", 45, 0.7)
    yield Leftover(clicks, "day=*/*.parquet", f"part-00000-{_id(4)}.c000.snappy.parquet", "data", YOUNG)
    yield Leftover(clicks, "deletion_vector_*.bin", f"deletion_vector_{_id(3)}.bin", "deletion vector", 45)
    yield Leftover(clicks, "_delta_log/*1.json", f".00000000000000000099.json.{_id(3)}.tmp", "log temporary", 45, 0.5)
    yield Leftover(stream, "data/**/*.parquet", f"00000-7-{_id(5)}-00001.parquet", "data", 100)
    yield Leftover(stream, "data/**/*.parquet", f"00000-8-{_id(6)}-00001.parquet", "data", YOUNG)
    yield Leftover(stream, "metadata/*-m0.avro", f"{_id(5)}-m0.avro", "manifest", 100)
    yield Leftover(stream, "metadata/snap-*.avro", f"snap-77-1-{_id(5)}.avro", "manifest-list", 100)


def plant(folder: Path, now: float) -> dict[Path, Leftover]:
    """All of them below `folder`, by path."""
    sources = [(each, each.source(folder)) for each in leftovers()]
    return {each.plant(source, now): each for each, source in sources}


def _id(seed: int) -> uuid.UUID:
    return uuid.UUID(int=seed << 96 | 0x4000_8000_0000_0000_0000)


if __name__ == "__main__":
    found = plant(Path(sys.argv[1]), time.time())
    old = sum(each.days > YOUNG for each in found.values())
    print(f"planted {old} files of writers killed long ago, {len(found) - old} of writers that may be at work")
