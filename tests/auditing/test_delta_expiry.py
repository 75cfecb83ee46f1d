"""Audits of Delta tables whose commits and files expire, and audits that read only what is new."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.auditing.delta_lake import DAY, OTHER, Lake, commits, two_days

from nightkeep.errors import MissingFile
from nightkeep.formats.delta.reading.past import read_past
from nightkeep.model import Outcome
from nightkeep.storage import LocalStorage


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


def test_files_that_vacuum_deleted_are_not_provable(lake: Lake) -> None:
    """The log keeps versions for longer than VACUUM keeps files that only those need."""
    gone = [unquote(add["path"]) for add in lake.live()]
    first = lake.compact()
    lake.made.append(DAY, range(60, 65))
    second = lake.compact()
    for name in gone:
        (lake.made.folder / name).unlink()
    document = lake.audit()
    found = commits(document)
    assert (found[first]["verdict"], found[second]["verdict"]) == ("not provable", "proven"), document.reason
    assert document.outcome is Outcome.VERIFIED


def test_a_chain_without_its_first_files_is_proven_in_part(lake: Lake) -> None:
    gone = [unquote(add["path"]) for add in lake.live()]
    chain = [lake.compact(), lake.compact(day=OTHER), lake.compact()]
    for name in gone:
        (lake.made.folder / name).unlink()
    document = lake.audit()
    found = commits(document)
    assert [found[version]["verdict"] for version in chain] == ["not provable", "proven", "proven"], document.reason


@dataclass(frozen=True)
class _Counting(LocalStorage):
    """A store that lists what is read of it, and loses some files after the listing."""

    taken: list[str]
    lost: frozenset[str] = frozenset()

    def read(self, name: str) -> bytes:
        self.taken.append(name)
        if name in self.lost:
            raise MissingFile(name, "a file that metadata names", "no such file")
        return LocalStorage.read(self, name)


def _log(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def test_a_commit_that_goes_while_it_is_read_ends_the_range(lake: Lake) -> None:
    newest = lake.compact()
    storage = _Counting(str(lake.made.folder), [], frozenset({_log(3)}))
    past = read_past(storage, since=None, since_ms=0)
    assert [commit.version for commit in past.commits] == list(range(4, newest + 1))
    assert past.cut == "the log begins with version 4"
    assert read_past(storage, since=1, since_ms=None).cut == "the log has no commits of versions 2 to 3 any more"


def test_a_table_without_a_new_commit_costs_one_version(lake: Lake) -> None:
    newest = lake.compact()
    storage = _Counting(str(lake.made.folder), [])
    past = read_past(storage, since=newest, since_ms=None)
    assert [commit.version for commit in past.commits] == [newest]
    assert storage.taken == [_log(newest)]


def test_a_gap_in_the_log_is_unsound_unless_a_checkpoint_has_it(lake: Lake) -> None:
    newest = lake.compact()
    lake.made.append(OTHER, range(500, 503))
    (lake.log / f"{newest:020d}.json").unlink()
    past = read_past(LocalStorage(str(lake.made.folder)), since=2, since_ms=None)
    assert past.commits[-1].faults == (
        f"the log has no commit of version {newest}, and no checkpoint that stands for it",
    )
    lake.made.checkpoint()
    past = read_past(LocalStorage(str(lake.made.folder)), since=2, since_ms=None)
    assert past.commits[-1].faults == ()
