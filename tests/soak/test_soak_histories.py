"""As tests/engines/paimon/test_histories.py, with other seeds and as many of them as NIGHTKEEP_HISTORIES says."""

import os
import shutil
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.random_history import changelog_history, merge_history
from tests.formats.paimon.changelogs import told_seam
from tests.formats.paimon.two_engines import check_history

FIRST = 50
COUNT = int(os.environ.get("NIGHTKEEP_HISTORIES", "0"))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_an_upgrade_does_what_java_does_at_length(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path)
    shutil.rmtree(tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_an_upgrade_merges_rows_as_java_does_at_length(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, merge_history)
    shutil.rmtree(tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_an_upgrade_tells_what_java_tells_at_length(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, changelog_history, told_seam)
    shutil.rmtree(tmp_path)
