"""Random lives of tables: whatever Java would have made of a bucket, Nightkeep makes of it too.

NIGHTKEEP_SEEDS=first:last (last excluded) chooses other histories than the first fifty.
"""

import os
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.random_history import (
    changelog_history,
    first_row_history,
    format_history,
    merge_history,
    plain_format_history,
    plain_history,
)
from tests.formats.paimon.changelogs import told_seam
from tests.formats.paimon.two_compactions import compaction_seam
from tests.formats.paimon.two_engines import check_history
from tests.support.extended import some_extended

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_SEEDS", "0:50").split(":"))


@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=4))
def test_an_upgrade_does_what_java_does(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path)


@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=4))
def test_an_upgrade_merges_rows_as_java_does(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, merge_history)


@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=2))
def test_an_upgrade_keeps_first_rows_as_java_does(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, first_row_history)


@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=5))
def test_a_compaction_without_vectors_does_what_java_does(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, plain_history, compaction_seam)


@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=4))
def test_an_upgrade_reads_and_writes_files_of_other_formats_as_java_does(
    seed: int, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    check_history(paimon_java, seed, tmp_path, format_history)


@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=2))
def test_a_compaction_without_vectors_reads_and_writes_files_of_other_formats(
    seed: int, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    check_history(paimon_java, seed, tmp_path, plain_format_history, compaction_seam)


@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=4))
def test_an_upgrade_tells_streaming_readers_what_java_tells(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, changelog_history, told_seam)
