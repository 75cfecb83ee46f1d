"""As tests/engines/paimon/test_histories.py, with other seeds and as many of them as NIGHTKEEP_HISTORIES says."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.history import History
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
    random_history,
    snapshot_order_history,
    told_first_row_history,
    told_format_history,
)
from tests.formats.paimon.changelogs import told_by_full_seam, told_seam
from tests.formats.paimon.two_compactions import compaction_seam
from tests.formats.paimon.two_engines import check_history

FIRST = 50
COUNT = int(os.environ.get("NIGHTKEEP_HISTORIES", "0"))
KINDS: Mapping[str, tuple[Callable[[int], History], *tuple[Any, ...]]] = {
    "whole rows": (random_history,),
    "merged rows": (merge_history,),
    "elements": (element_history,),
    "elements without vectors": (plain_element_history, compaction_seam),
    "ordered by snapshot": (snapshot_order_history,),
    "ordered by snapshot without vectors": (plain_snapshot_order_history, compaction_seam),
    "first rows": (first_row_history,),
    "changelogs": (changelog_history, told_seam),
    "changelogs of full compactions": (full_changelog_history, told_by_full_seam),
    "changelogs of first rows": (told_first_row_history, told_seam),
    "changelogs by lookup without vectors": (looked_up_history, told_by_full_seam),
    "changelogs in other formats": (told_format_history, told_by_full_seam, told_seam),
    "without vectors": (plain_history, compaction_seam),
    "other formats": (format_history,),
    "other formats without vectors": (plain_format_history, compaction_seam),
}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
@pytest.mark.parametrize("kind", KINDS)
def test_what_java_does_at_length(kind: str, seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    history, *seams = KINDS[kind]
    # Where there are two seams, tables of even seeds have no vectors.
    check_history(paimon_java, seed, tmp_path, history, *seams[seed % max(1, len(seams)) :][:1])
    shutil.rmtree(tmp_path)
