"""Audits of what Paimon Java commits: a compaction that was prepared before later deletes, and honest ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.formats.paimon.stale_compactions import latest, race
from tests.support.extended import some_extended

import nightkeep
from nightkeep.model import Outcome


@pytest.mark.parametrize("seed", some_extended(range(60), keep=4))
def test_a_stale_compaction_is_found_if_readers_are_hurt_and_only_then(
    paimon_java: PaimonJava, tmp_path: Path, seed: int
) -> None:
    """Java's committer does not compare deletion vectors: rows that were deleted since come back."""
    ended = race(paimon_java, seed, tmp_path)
    table = tmp_path / "shop.db" / f"race{seed}"
    document = nightkeep.audit(f"paimon:{table}", reports=tmp_path / "reports")
    section: Any = document.extra["audit"]
    found = {each["version"]: each for each in section["commits"]}
    wrong = [version for version, each in found.items() if each["verdict"] in ("differs", "unsound")]
    assert wrong == ([latest(paimon_java, table)] if ended.hurt else []), document.reason
    assert document.outcome is (Outcome.MISMATCH if ended.hurt else Outcome.VERIFIED), document.reason
