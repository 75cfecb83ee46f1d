"""Tables that delta-spark wrote, with every feature of the format: an audit of their commits raises no alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from nightkeep.formats.delta.format import open_table
from nightkeep.model import Address
from nightkeep.protocol.past import FileSample

ROOT = Path(__file__).parents[2]
TABLES = sorted(
    log.parent for place in ("tests/golden/delta", "samples/delta") for log in ROOT.glob(f"{place}/**/_delta_log")
)


@pytest.mark.parametrize("folder", TABLES, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_what_engines_commit_is_sound(folder: Path) -> None:
    past = open_table(Address("delta", str(folder), folder.name)).past
    assert past is not None
    commits = past.read(since=None, since_ms=0).commits
    assert commits and {commit.version: commit.faults for commit in commits if commit.faults} == {}
    assert past.file_faults([commit.version for commit in commits], FileSample("every run alike")) == {}
