"""Audits of Delta tables whose commits and files expire, and audits that read only what is new."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.auditing.delta_lake import DAY, Lake, commits, two_days

from nightkeep.model import Outcome


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return two_days(tmp_path)


def test_a_base_that_expired_is_not_provable_and_later_commits_are(lake: Lake) -> None:
    first = lake.compact()
    lake.made.checkpoint()
    lake.made.append(DAY, range(60, 65))
    second = lake.compact()
    for version in range(first):
        (lake.log / f"{version:020d}.json").unlink()
    document = lake.audit()
    found = commits(document)
    assert (found[first]["verdict"], found[second]["verdict"]) == ("not provable", "proven"), document.reason
    assert document.outcome is Outcome.VERIFIED
    assert f"version {first} not provable" in str(document.reason)
    assert f"the log begins with version {first}" in str(document.reason)


def test_a_budget_leaves_commits_for_the_next_audit(lake: Lake) -> None:
    versions = []
    for number in range(4):
        lake.made.append(DAY, range(300 + 10 * number, 305 + 10 * number))
        versions.append(lake.compact())
    first = lake.audit(byte_budget="1KB")
    assert first.outcome is Outcome.VERIFIED and "left for the next audit" in str(first.reason), first.reason
    seen = {version for version, each in commits(first).items() if each["verdict"] == "proven"}
    for _ in range(8):
        document = lake.audit(byte_budget="1KB")
        if document.outcome is Outcome.UNCHANGED:
            break
        seen |= {version for version, each in commits(document).items() if each["verdict"] == "proven"}
    assert seen == set(versions)
