"""A version that work is based on: the same, gone, or another one under its number."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from nightkeep.model import VersionIdentity
from nightkeep.stages.base_version import another, replaced

PLANNED = VersionIdentity(3, "c" * 64, "a" * 64)


@dataclass(frozen=True)
class Digests:
    known: dict[int, str]

    def digest(self, version: int) -> str | None:
        return self.known.get(version)


def why(known: dict[int, str]) -> str | None:
    table: Any = Digests(known)
    return replaced(table, PLANNED)


def test_a_version_with_its_digest_is_the_one() -> None:
    assert why({3: "c" * 64, 4: "d" * 64}) is None


def test_a_version_that_is_gone_is_not_another() -> None:
    assert why({4: "c" * 64}) == "version 3, which was planned on, is gone: expired, rolled back or dropped"


@pytest.mark.parametrize(("digest", "shown"), [("d" * 64, "d" * 12), ("", "of no commit")])
def test_another_version_under_its_number_is_named(digest: str, shown: str) -> None:
    assert why({3: digest}) == (
        f"version 3 is not the one that was planned on, {'c' * 12}: another one has its number now, {shown}"
    )


def test_content_distinguishes_versions_of_one_commit() -> None:
    assert another(PLANNED, replace(PLANNED)) is None
    assert str(another(PLANNED, replace(PLANNED, content="b" * 64))).endswith(f"its number now, {'b' * 12}")
    assert str(another(PLANNED, replace(PLANNED, commit="d" * 64))).endswith(f"its number now, {'d' * 12}")
