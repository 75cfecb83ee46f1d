"""As tests/mutations/test_mutations.py, for NIGHTKEEP_MUTATIONS seeds of each format."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.mutations.fuzzing import fuzz
from tests.mutations.tables import NAMES

COUNT = int(os.environ.get("NIGHTKEEP_MUTATIONS", "0"))
FIRST = int(os.environ.get("NIGHTKEEP_MUTATIONS_FROM", "1000"))
PROCESSES = max(1, (os.cpu_count() or 1) // 2)


@pytest.mark.soak
@pytest.mark.parametrize("format", NAMES)
def test_mutations_at_length(format: str, tmp_path: Path) -> None:
    """A seed that failed is told with its end: `python -m tests.mutations.fuzzing FORMAT SEED` reads it again."""
    share = -(-COUNT // PROCESSES)
    starts = range(FIRST, FIRST + COUNT, share or 1)
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = list(pool.map(lambda first: fuzz(format, first, min(share, FIRST + COUNT - first)), starts))
    failures = [failure for _, several in found for failure in several]
    (tmp_path / "failures.json").write_text(json.dumps([str(failure) for failure in failures], indent=1))
    print(f"{format}: {COUNT} mutations, {sum(refused for refused, _ in found)} refused, {len(failures)} failed")
    assert not failures, f"{len(failures)} failures, all in {tmp_path}/failures.json; the first: {failures[0]}"
