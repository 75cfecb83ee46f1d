"""Versions expired, over a table in a real folder: what only they reached goes, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.retention.toy_table import NOW, Toy, run_of

from nightkeep.errors import CorruptMetadata, EvidenceError
from nightkeep.model import Outcome, Run
from nightkeep.model.sweep_rules import DAY_MS, SweepMode
from nightkeep.protocol.table_files import ExpireRequest, Expiry, Reach, Retention, Root, Unproven
from nightkeep.retention.expire_versions import ExpireOrder, ExpiryResult, expire_versions
from nightkeep.retention.orphans.lease import Clock, wall_ms
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sets import FileTotals
from nightkeep.storage import LocalStorage


@dataclass
class Expiring(Toy):
    """A table that lets all but the last version go, and none of those that are to be kept.

    `first` are what other writers do before each forget; a true one is a lost race.
    """

    first: list[Callable[[], bool]] = field(default_factory=list)
    after: Callable[[], None] = lambda: None
    asked: list[int] = field(default_factory=list)
    """What each look was told is now."""
    files_only: bool = False

    def expiry(self, request: ExpireRequest) -> Expiry[Any]:
        self.asked.append(request.now_ms)
        roots = [replace(root, version=int(root.id[7:-5])) for root in self.roots(Retention(NOW, 0))]
        going = tuple(root for root in roots[:-1] if root.version not in request.keep)
        kept = tuple((root.id, "kept") for root in roots if root not in going)
        return Expiry(going, kept, forget=partial(self._forget, going), files_only=self.files_only)

    def _forget(self, going: Sequence[Root[Any]], run: Run) -> bool:
        if self.first and self.first.pop(0)():
            return False
        for root in going:
            self.storage.delete(root.id)
        self.after()
        return True


@pytest.fixture
def table(tmp_path: Path) -> Expiring:
    found = Expiring.at(tmp_path / "toy")
    found.write("data/1.dat", "data/12.dat", "data/23.dat", "data/3.dat", "data/young.dat")
    found.commit(1, "data/1.dat", "data/12.dat")
    found.commit(2, "data/12.dat", "data/23.dat")
    found.commit(3, "data/23.dat", "data/3.dat")
    return found


def expired(
    table: Toy,
    mode: SweepMode = SweepMode.DELETE,
    *,
    keep: frozenset[int] = frozenset(),
    before: Callable[[], None] = lambda: None,
    removing: Callable[[], None] = lambda: None,
    clock: Clock = wall_ms,
) -> ExpiryResult:
    order = ExpireOrder(mode, ExpireRequest(NOW, keep), Retention(NOW, 7 * DAY_MS, keep))
    return expire_versions(
        table.retention,
        order,
        run_of("night"),
        sets=MemorySets,
        before=lambda _: before(),
        removing=lambda _: removing(),
        clock=clock,
    )


HOUR_MS = DAY_MS // 24
LEFT = {"data/23.dat", "data/3.dat", "data/young.dat", "meta/l-3.json", "meta/s-3.json"}
GONE = {"data/1.dat", "data/12.dat", "meta/l-1.json", "meta/l-2.json"}


def test_what_only_they_reached_goes(table: Expiring) -> None:
    found = expired(table)
    assert (found.outcome, found.acted.gone.files, found.acted.failed) == (Outcome.VERIFIED, len(GONE), ())
    assert [root.version for root in found.expiry.roots] == [1, 2]
    assert table.files().keys() == LEFT


def test_a_dry_run_reports_and_changes_nothing(table: Expiring) -> None:
    before = table.files()
    found = expired(table, SweepMode.DRY_RUN, before=lambda: pytest.fail("nothing is about to change"))
    assert (found.outcome, found.acted.gone) == (Outcome.SKIPPED, FileTotals())
    # The snapshots themselves go by the forget, and count among what would.
    assert found.counted is not None
    assert found.reason == f"dry run: 2 versions and {found.counted.orphans.files} files would go, nothing was changed"
    assert found.counted.orphans.files in (len(GONE), len(GONE) + 2)
    assert table.files() == before


def test_versions_to_be_kept_stay_with_their_files(table: Expiring) -> None:
    found = expired(table, keep=frozenset({1}))
    assert [root.version for root in found.expiry.roots] == [2]
    assert table.files().keys() == LEFT | {"data/1.dat", "data/12.dat", "meta/l-1.json", "meta/s-1.json"}


def test_nothing_to_let_go_changes_nothing(table: Expiring) -> None:
    before = table.files()
    found = expired(table, keep=frozenset({1, 2}))
    assert (found.outcome, found.counted, table.files()) == (Outcome.UNCHANGED, None, before)


@pytest.mark.parametrize("mode", SweepMode)
def test_where_files_alone_would_go_and_none_is_left_nothing_is_about_to_change(
    table: Expiring, mode: SweepMode
) -> None:
    """Every root still keeps what it reaches."""
    table.files_only = True
    before = table.files()
    found = expired(table, mode, before=lambda: pytest.fail("nothing is about to change"))
    assert (found.outcome, found.counted, table.files()) == (Outcome.UNCHANGED, None, before)


def test_what_is_quarantined_is_there(table: Expiring) -> None:
    contents = [table.files()[name] for name in sorted(GONE)]
    assert expired(table, SweepMode.QUARANTINE).acted.folder is not None
    assert sorted(table.aside()) == sorted(contents)


def test_another_writer_that_was_first_is_planned_around(table: Expiring) -> None:
    def tags() -> bool:
        table.commit(4, "data/12.dat", "data/3.dat")
        return True

    table.first = [tags]
    found = expired(table)
    assert (found.outcome, [root.version for root in found.expiry.roots]) == (Outcome.VERIFIED, [1, 2, 3])
    assert table.files().keys() == {"data/12.dat", "data/3.dat", "data/young.dat", "meta/l-4.json", "meta/s-4.json"}


def test_who_is_always_second_gives_up_and_changes_nothing(table: Expiring) -> None:
    before = table.files()
    table.first = [lambda: True] * 9
    found = expired(table)
    assert (found.outcome, len(table.first), table.files()) == (Outcome.CONFLICTED, 6, before)


def test_what_is_committed_after_the_forget_keeps_its_files(table: Expiring) -> None:
    table.after = lambda: table.commit(4, "data/1.dat")
    expired(table)
    assert table.files().keys() == LEFT | {"data/1.dat", "meta/l-4.json", "meta/s-4.json"}


def test_a_reason_to_stop_before_anything_changed_stops(table: Expiring) -> None:
    def unreadable() -> None:
        raise CorruptMetadata("data/23.dat", "a footer", "none")

    before = table.files()
    with pytest.raises(CorruptMetadata):
        expired(table, before=unreadable)
    assert table.files() == before


def test_a_reason_to_stop_once_versions_went_keeps_every_file(table: Expiring) -> None:
    def full() -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        expired(table, removing=full)
    assert table.files().keys() == LEFT | GONE


@pytest.mark.parametrize("hours", [-1.1, 1.1])
def test_clocks_far_apart_let_nothing_go(table: Expiring, hours: float) -> None:
    before = table.files()
    found = expired(table, clock=lambda: wall_ms() - int(hours * HOUR_MS), before=lambda: pytest.fail("too late"))
    side = "ahead of" if hours > 0 else "behind"
    assert (found.outcome, found.counted, table.files(), table.asked) == (Outcome.REFUSED, None, before, [])
    assert f"h {side} ours: ages cannot be determined" in str(found.reason)
    dry = expired(table, SweepMode.DRY_RUN, clock=lambda: pytest.fail("a dry run writes nothing"))
    assert dry.outcome is Outcome.SKIPPED


@pytest.mark.parametrize(("minutes", "earlier"), [(-30, 30), (0, 0), (30, 0)])
def test_a_store_whose_clock_is_behind_reports_the_time(table: Expiring, minutes: int, earlier: int) -> None:
    """Otherwise versions would go before their time, and the table would be of a time that other writers have not."""
    assert expired(table, clock=lambda: wall_ms() - minutes * 60_000).outcome is Outcome.VERIFIED
    assert [NOW - asked for asked in table.asked] == [pytest.approx(earlier * 60_000, abs=10_000)]


def test_metadata_that_cannot_be_read_lets_nothing_go(table: Expiring) -> None:
    (table.folder / "meta/l-1.json").write_text("{")
    before = table.files()
    with pytest.raises(EvidenceError):
        expired(table)
    assert table.files() == before


def test_what_remains_and_cannot_be_read_keeps_every_version(table: Expiring) -> None:
    (table.folder / "meta/l-3.json").write_text("{")
    before = table.files().keys()
    with pytest.raises(EvidenceError):
        expired(table)
    assert table.files().keys() == before > LEFT | GONE


def test_no_version_goes_where_nothing_reports_that_lists_are_whole(
    table: Expiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach, before = Expiring.reach, table.files().keys()

    def unproven(self: Expiring, root: Root) -> Reach:
        return replace(reach(self, root), unproven=(Unproven(root.id, "no size is told"),))

    monkeypatch.setattr(Expiring, "reach", unproven)
    done = expired(table)
    assert done.outcome is Outcome.REFUSED and "no evidence" in (done.reason or "")
    assert table.files().keys() == before


def test_a_death_after_the_forget_leaves_what_a_sweep_finds(table: Expiring) -> None:
    def dies() -> None:
        raise KeyboardInterrupt

    table.after = dies
    with pytest.raises(KeyboardInterrupt):
        expired(table)
    assert table.files().keys() == LEFT | GONE
    told, orphans = table.looked()
    assert (told.outcome, {*orphans}) == (Outcome.SKIPPED, GONE | {"data/young.dat"})
    assert table.swept(SweepMode.DELETE).outcome is Outcome.VERIFIED
    assert table.files().keys() == LEFT - {"data/young.dat"}


def test_files_that_cannot_be_removed_are_reported_and_left_for_a_sweep(
    table: Expiring, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(self: LocalStorage, folder: int, last: str, name: str) -> None:
        if name in GONE:
            raise PermissionError("denied")
        removed(self, folder, last, name)

    removed = LocalStorage.removed
    monkeypatch.setattr(LocalStorage, "removed", denied)
    found = expired(table)
    assert (found.outcome, {name for name, _ in found.acted.failed}) == (Outcome.FAILED, GONE)
    assert str(found.reason).startswith("4 of 4 files could not be removed, such as data/1.dat: denied")
