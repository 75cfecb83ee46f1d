"""Random lives of tables whose tasks hold two rows of each sorted run at a time: Java makes the same of them.

NIGHTKEEP_SEEDS=first:last (last excluded) chooses histories.
"""

import os
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.small_ranges import batches_of
from tests.formats.paimon.two_engines import check_history
from tests.soak.test_soak_histories import KINDS

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_SEEDS", "0:3").split(":"))
SHORT = {("merged rows", 1), ("without vectors", 1)}
"""What `make test` takes: histories of few rows. Two rows at a time of the others take up to five times as long."""
CASES = [
    pytest.param(kind, seed, marks=[] if (kind, seed) in SHORT else [pytest.mark.extended])
    for kind in ("merged rows", "changelogs", "without vectors", "whole rows", "other formats")
    for seed in range(FIRST, LAST)
]


@pytest.mark.extended
@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_what_java_does_in_ranges(kind: str, seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    with batches_of(2):
        check_history(paimon_java, seed, tmp_path, *KINDS[kind])
