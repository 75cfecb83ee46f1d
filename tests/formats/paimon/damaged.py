"""Copies of samples with leftovers, a tag and, as older releases would have written them, without sizes of lists."""

import shutil
import time
from pathlib import Path

from tests.formats.paimon.contents import SAMPLES, opened
from tests.formats.paimon.keeping import aged
from tests.retention.damage import World, without_sizes

from nightkeep.model.sweep_rules import DAY_MS

LEFT = "0123abcd-0000-4000-8000-"
"""How the UUIDs of leftovers begin."""


def paimon_worlds(folder: Path) -> list[World]:
    """Samples with a tag and leftovers; each also as an older release would have written it."""
    found = []
    for sample in sorted(path.name for path in SAMPLES.iterdir()):
        # A list without entries looks like one cut short where its snapshot tells no size: that sweep is refused.
        for old in (False, True) if sample != "events_raw" else (False,):
            table = _made(folder / f"{sample}-{'old' if old else 'new'}", sample, old=old)
            if table is not None:
                found.append(table)
    return found


def _made(folder: Path, sample: str, *, old: bool) -> World | None:
    table = sample_copy(folder, sample)
    snapshots = sorted((table / "snapshot").glob("snapshot-*"))
    if not snapshots:
        return None
    (table / "tag").mkdir(exist_ok=True)
    shutil.copyfile(snapshots[len(snapshots) // 2], table / "tag/tag-kept")
    leave(table)
    for path in (*snapshots, table / "tag/tag-kept") if old else ():
        without_sizes(path)
    aged(table)
    metadata = tuple(_metadata(table))
    foreign = tuple(path for other in SAMPLES.iterdir() if other.name != sample for path in _metadata(other))
    return World(
        folder.name, lambda: opened(table).retention, metadata, foreign, time.time_ns() // 1_000_000, 7 * DAY_MS
    )


def _metadata(table: Path) -> list[Path]:
    patterns = ("snapshot/*", "tag/*", "schema/*", "manifest/*", "changelog/*")
    return sorted(path for pattern in patterns for path in table.glob(pattern) if LEFT not in path.name)


def leave(table: Path) -> None:
    """Real leftovers: copies of what the table has, under names of their own."""
    for number, path in enumerate(sorted(table.rglob("*-0*"))):
        prefix = next(
            (
                p
                for p in ("data-", "manifest-list-", "index-manifest-", "manifest-", "index-")
                if path.name.startswith(p)
            ),
            None,
        )
        if prefix and path.is_file() and number % 3 == 0:
            end = path.name[len(prefix) + 36 :]
            shutil.copyfile(path, path.with_name(f"{prefix}{LEFT}{number:012}{end}"))


def sample_copy(folder: Path, sample: str) -> Path:
    return Path(shutil.copytree(SAMPLES / sample, folder))
