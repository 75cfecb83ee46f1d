"""Credentials that end: when they are renewed, by whom, and what is taken from another process."""

import time
from dataclasses import dataclass, field

import pytest

from nightkeep.storage.objects import renewed
from nightkeep.storage.objects.renewed import ENDS, Options, current


@dataclass(frozen=True)
class Catalog:
    """Gives numbered keys that are valid for `seconds`, or do not say for how long."""

    name: str
    seconds: float | None
    given: list[int] = field(default_factory=list, compare=False, hash=False)

    def __call__(self) -> Options:
        self.given.append(len(self.given))
        key = ("s3.access-key-id", f"key-{self.given[-1]}")
        return (key,) if self.seconds is None else (key, (ENDS[0], str(int((time.time() + self.seconds) * 1000))))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    monkeypatch.setattr(renewed, "_HELD", {})
    now = [1_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


@pytest.mark.parametrize(("seconds", "renewed_after"), [(3600.0, 3540.0), (100.0, 50.0), (2.0, 1.0), (None, 840.0)])
def test_credentials_are_renewed_before_they_end(
    clock: list[float], seconds: float | None, renewed_after: float
) -> None:
    catalog = Catalog("lake", seconds)
    first = catalog()
    assert current(first, catalog) == first
    clock[0] += renewed_after - 0.1
    assert current(first, catalog) == first
    clock[0] += 0.2
    second = current(first, catalog)
    assert dict(second)["s3.access-key-id"] == "key-1"
    assert current(first, catalog) == second
    clock[0] += renewed_after + 0.1
    assert dict(current(first, catalog))["s3.access-key-id"] == "key-2"
    assert catalog.given == [0, 1, 2]


def test_of_two_processes_the_credentials_that_end_later_count(clock: list[float]) -> None:
    """A task may bring newer ones than its process has, and older ones."""
    catalog = Catalog("lake", 3600.0)
    old = catalog()
    clock[0] += 100
    new = catalog()
    assert [current(each, Catalog("lake", 3600.0)) for each in (old, new, old)] == [old, new, new]
    assert current((("s3.region", "r"),), None) == (("s3.region", "r"),)
