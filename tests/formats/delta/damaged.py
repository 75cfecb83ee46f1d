"""Golden tables with leftovers, to be damaged: as if it were two months later."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tests.formats.delta.runs import opened
from tests.retention.damage import World

from nightkeep.model.sweep_rules import DAY_MS
from nightkeep.protocol.table_files import OpenFiles

GOLDEN = Path(__file__).parents[2] / "golden" / "delta"
NAMES = (
    "optimize",
    "checkpoint_v1",
    "checkpoint_v1_parts",
    "checkpoint_v2_json",
    "checkpoint_v2_parquet",
    "overwrite",
    "vectors",
    "merge",
    "partition_paths",
    "vacuum",
)
LEFT = "0123abcd-0000-4000-8000-"
"""How the UUIDs of leftovers begin."""
LATER_MS = 60 * DAY_MS


def golden_copy(name: str, at: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / name / "table", at / name))


def leave(table: Path) -> set[str]:
    """A data file beside each one, and a vector."""
    left = set[str]()
    for number, path in enumerate(sorted(table.rglob("part-*.parquet"))):
        lost = path.with_name(f"part-00000-{LEFT}{number:012}-c000.snappy.parquet")
        shutil.copyfile(path, lost)
        left.add(str(lost.relative_to(table)))
    (table / f"deletion_vector_{LEFT}000000000099.bin").write_bytes(b"left behind")
    return left | {f"deletion_vector_{LEFT}000000000099.bin"}


def later_ms() -> int:
    return time.time_ns() // 1_000_000 + LATER_MS


def delta_worlds(at: Path) -> list[World]:
    found = []
    for name in NAMES:
        table = golden_copy(name, at)
        leave(table)
        foreign = tuple(path for other in NAMES if other != name for path in log_of(GOLDEN / other / "table"))
        found.append(World(name, opener(table), log_of(table), foreign, later_ms(), 7 * DAY_MS))
    return found


def opener(table: Path) -> Callable[[], OpenFiles]:
    return lambda: opened(table).retention


def log_of(table: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in (table / "_delta_log").rglob("*") if path.is_file() and path.name[0] != "."))
