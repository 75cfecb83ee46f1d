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
from tests.support.extended import some_extended

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_SEEDS", "0:3").split(":"))
# The history of seed 0 has the most rows, of which two at a time take long: `make test` takes those that come first.
CASES = [(kind, seed) for kind in ("merged rows", "changelogs", "without vectors", "whole rows", "other formats")
         for seed in sorted(range(FIRST, LAST), key=lambda seed: seed == 0)]  # fmt: skip


@pytest.mark.parametrize(("kind", "seed"), some_extended(CASES, keep=2))
def test_what_java_does_in_ranges(kind: str, seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    with batches_of(2):
        check_history(paimon_java, seed, tmp_path, *KINDS[kind])
