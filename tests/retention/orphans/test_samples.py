"""The samples that real engines wrote: every file of theirs survives a sweep that takes all that was planted."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.retention.toy_table import run_of

from nightkeep.formats import open_table
from nightkeep.model import Address, Outcome
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import OpenFiles
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.quarantine import restore
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table

SAMPLES = Path(__file__).parents[3] / "samples"
TABLES = sorted(path.relative_to(SAMPLES) for name in ("paimon", "delta") for path in (SAMPLES / name).glob("*.db/*"))
each_sample = pytest.mark.parametrize("sample", TABLES, ids=str)


@pytest.fixture
def table(sample: Path, tmp_path: Path) -> OpenFiles:
    """A copy of the sample."""
    folder = shutil.copytree(SAMPLES / sample, tmp_path / sample.name)
    return _opened(sample, folder)


def _opened(sample: Path, folder: Path) -> OpenFiles:
    table = open_table(Address(sample.parts[0], str(folder), sample.name)).retention
    assert table is not None
    return table


def _swept(table: OpenFiles, mode: SweepMode, *, days: int) -> tuple[SweepResult, list[str]]:
    """As if it were so many days later."""
    sets, order = MemorySets(), SweepOrder(mode, max_share=1)
    told = sweep_table(table, order, run_of("run-1", now_ms=time.time_ns() // 1_000_000 + days * DAY_MS), sets=sets)
    return told, [name for batch in sets.orphans() for name in batch["name"].to_pylist()]


def _files(table: OpenFiles) -> dict[str, tuple[bytes, int]]:
    folder = Path(table.table_files().storage.root)
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and "_nightkeep" not in path.parts
    }


@pytest.mark.few(5)
@each_sample
def test_no_file_of_a_sample_is_an_orphan_of_a_week(table: OpenFiles) -> None:
    told, orphans = _swept(table, SweepMode.DRY_RUN, days=0)
    assert (told.outcome, orphans) == (Outcome.UNCHANGED, [])
    assert told.counted is not None and told.counted.live.files and not told.counted.missing


@pytest.mark.few(5)
@each_sample
def test_data_that_nobody_committed_goes_and_comes_back(sample: Path, table: OpenFiles) -> None:
    found, aged = _swept(table, SweepMode.DRY_RUN, days=10)
    planted = [*_planted(sample, table)]
    before = _files(table)
    told, orphans = _swept(table, SweepMode.QUARANTINE, days=10)
    assert sorted(orphans) == sorted([*aged, *planted])
    assert told.counted is not None and found.counted is not None and told.counted.live == found.counted.live
    after = _files(table)
    assert {name: file for name, file in before.items() if name not in orphans}.items() <= after.items()
    assert not after.keys() & set(orphans)
    if orphans:
        assert restore(table.table_files(), "run-1", now_ms=0).files == len(orphans)
    assert before.items() <= _files(table).items()


def _planted(sample: Path, table: OpenFiles) -> Iterator[str]:
    """Beside each data file of the sample one with another id in its name."""
    folder = Path(table.table_files().storage.root)
    for n, path in enumerate(sorted(folder.rglob("*.parquet"))):
        if "_delta_log" in path.parts:
            continue
        start = "part-00000-" if sample.parts[0] == "delta" else "data-"
        tail = "-c000.snappy.parquet" if sample.parts[0] == "delta" else "-0.parquet"
        lost = path.with_name(f"{start}{UUID(int=n)}{tail}")
        shutil.copyfile(path, lost)
        yield str(lost.relative_to(folder))
