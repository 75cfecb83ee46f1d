"""Random lives of tables: whatever Java would have made of a bucket, Nightkeep makes of it too.

NIGHTKEEP_SEEDS=first:last (last excluded) chooses other histories than the first fifty, or fourteen of a kind that
differs in part only. `make soak` takes as many of each as it is told.
"""

import os
from pathlib import Path

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.random_history import (
    changelog_history,
    element_history,
    first_row_history,
    format_history,
    full_changelog_history,
    looked_up_history,
    merge_history,
    plain_element_history,
    plain_format_history,
    plain_history,
    plain_snapshot_order_history,
    snapshot_order_history,
    told_element_history,
    told_first_row_history,
    told_format_history,
)
from tests.formats.paimon.changelogs import told_by_full_seam, told_seam
from tests.formats.paimon.two_compactions import compaction_seam
from tests.formats.paimon.two_engines import check_history
from tests.support.extended import some_extended

CHOSEN = os.environ.get("NIGHTKEEP_SEEDS")
FIRST, LAST = (int(bound) for bound in (CHOSEN or "0:50").split(":"))
FEWER = range(FIRST, LAST if CHOSEN else 14)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=2))
def test_an_upgrade_does_what_java_does(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=2))
def test_an_upgrade_merges_rows_as_java_does(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, merge_history)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(FEWER, keep=2))
def test_an_upgrade_joins_elements_as_java_does(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, element_history)


@pytest.mark.parametrize("seed", some_extended(FEWER, keep=1))
def test_a_compaction_without_vectors_joins_elements(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, plain_element_history, compaction_seam)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(FEWER, keep=2))
def test_an_upgrade_orders_rows_by_snapshot(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, snapshot_order_history)


@pytest.mark.parametrize("seed", some_extended(FEWER, keep=1))
def test_a_compaction_without_vectors_orders_rows_by_snapshot(
    seed: int, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    check_history(paimon_java, seed, tmp_path, plain_snapshot_order_history, compaction_seam)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(FEWER, keep=2))
def test_an_upgrade_keeps_first_rows_as_java_does(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, first_row_history)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(FEWER, keep=2))
def test_a_compaction_without_vectors_does_what_java_does(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, plain_history, compaction_seam)


@pytest.mark.parametrize("seed", some_extended(FEWER, keep=2))
def test_an_upgrade_reads_and_writes_files_of_other_formats_as_java_does(
    seed: int, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    check_history(paimon_java, seed, tmp_path, format_history)


@pytest.mark.parametrize("seed", some_extended(FEWER, keep=1))
def test_a_compaction_without_vectors_reads_and_writes_files_of_other_formats(
    seed: int, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    check_history(paimon_java, seed, tmp_path, plain_format_history, compaction_seam)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(FEWER, keep=2))
def test_an_upgrade_reports_to_streaming_readers_what_java_reports(
    seed: int, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    check_history(paimon_java, seed, tmp_path, changelog_history, told_seam)


@pytest.mark.extended
@pytest.mark.parametrize("seed", some_extended(FEWER, keep=1))
def test_full_compactions_report_to_streaming_readers_what_java_reports(
    seed: int, paimon_java: PaimonJava, tmp_path: Path
) -> None:
    check_history(paimon_java, seed, tmp_path, full_changelog_history, told_by_full_seam)


@pytest.mark.extended
@pytest.mark.parametrize("seed", some_extended(range(FIRST, LAST), keep=2))
def test_changelogs_by_lookup_without_vectors(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, looked_up_history, told_by_full_seam)


@pytest.mark.extended
@pytest.mark.parametrize("seed", some_extended(FEWER, keep=1))
def test_changelogs_of_first_rows(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    check_history(paimon_java, seed, tmp_path, told_first_row_history, told_seam)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(FEWER, keep=2))
def test_changelogs_in_files_of_other_formats(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    seam = told_seam if seed % 2 else told_by_full_seam
    check_history(paimon_java, seed, tmp_path, told_format_history, seam)


@pytest.mark.parametrize("seed", some_extended(FEWER, keep=1))
def test_changelogs_of_nested_columns(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    seam = told_seam if seed % 2 else told_by_full_seam
    check_history(paimon_java, seed, tmp_path, told_element_history, seam)
