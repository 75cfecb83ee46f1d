"""Honest histories of Paimon tables, by Java of several releases, pypaimon and Nightkeep: no false alarm.

Each is audited in steps with the mark kept in between, and once whole. NIGHTKEEP_AUDIT_SEEDS=first:last chooses others.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest
from tests.auditing.paimon_audits import audited, require_proven
from tests.drivers.history import Commit, Compact, Expire, History, play
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Writer
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
    told_element_history,
    told_first_row_history,
    told_format_history,
)
from tests.formats.paimon import append_life
from tests.formats.paimon.appended import operate
from tests.formats.paimon.lives import PaimonLife
from tests.formats.paimon.releases import KINDS as RELEASED
from tests.formats.paimon.releases import RELEASES, unpacked
from tests.formats.paimon.upgrade import optimize, upgrade
from tests.support.extended import some_extended

from nightkeep.formats.paimon.metadata.branch import MARK
from nightkeep.model import Operation, Outcome
from nightkeep.model.sweep_rules import DAY_MS

pytestmark = [pytest.mark.slow]

FIRST, LAST = (int(bound) for bound in os.environ.get("NIGHTKEEP_AUDIT_SEEDS", "0:6").split(":"))
EVER_MS = 3650 * DAY_MS
LEAST = 4
"""Compactions of a history that are proven."""
KINDS: Mapping[str, Callable[[int], History]] = {
    "whole rows": random_history,
    "merged rows": merge_history,
    "elements": element_history,
    "elements without vectors": plain_element_history,
    "ordered by snapshot": snapshot_order_history,
    "ordered by snapshot without vectors": plain_snapshot_order_history,
    "first rows": first_row_history,
    "changelogs": changelog_history,
    "changelogs of full compactions": full_changelog_history,
    "changelogs of first rows": told_first_row_history,
    "changelogs of elements": told_element_history,
    "changelogs by lookup without vectors": looked_up_history,
    "changelogs in other formats": told_format_history,
    "without vectors": plain_history,
    "other formats": format_history,
    "other formats without vectors": plain_format_history,
}


class Audits:
    """A table that lives, and its audits."""

    def __init__(self, java: PaimonJava, table: Path, history: History) -> None:
        self.java, self.table, self.history = java, table, history
        self.chance = Random(f"audits {history.seed}")
        self.proven = 0
        java.create(table, history.layout)

    def live(self) -> None:
        for step in self.history.steps:
            if isinstance(step, Compact):
                self.compact(full=step.full)
                continue
            if isinstance(step, Expire) and self.chance.random() < 0.7:
                self.audit()
            play(self.java, self.table, [step])
            if isinstance(step, Commit) and self.chance.random() < 0.6:
                self.compact(full=self.chance.random() < 0.3)
            if self.chance.random() < 0.3:
                self.audit()
        self.audit()
        while self.proven < LEAST and (rows := self.java.read(self.table).rows):
            again = self.chance.sample(rows, min(5, len(rows)))
            self.java.write(self.table, [("+I", *row) for row in again], Writer(user="writer"))
            self.compact(full=True)
            self.audit()

    def compact(self, *, full: bool) -> None:
        if self.chance.random() < 0.7:
            self.java.compact(self.table, Compaction(full=full, user="compactor"))
            return
        options = self.history.layout.options
        plain = "deletion-vectors.enabled" not in options and options.get("merge-engine") != "first-row"
        document = (optimize if plain else upgrade)(self.table, full=full)
        assert document.outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), document.reason

    def audit(self) -> None:
        self.proven += require_proven(audited(self.table))


@pytest.mark.parametrize(
    ("kind", "seed"), some_extended([(kind, seed) for seed in range(FIRST, LAST) for kind in KINDS], keep=5)
)
def test_what_java_and_upgrades_do(kind: str, seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    audits = Audits(paimon_java, tmp_path / "t", KINDS[kind](seed))
    try:
        audits.live()
        assert audits.proven >= LEAST or not paimon_java.read(audits.table).rows
        require_proven(audited(audits.table, mark="whole"))
    except Exception as failure:
        raise AssertionError(f"{kind}, {audits.history}") from failure


@pytest.mark.parametrize("seed", some_extended(range(FIRST, 4 * LAST), keep=1))
def test_lives_with_tags_branches_rollbacks_and_expiry(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Versions that a rollback takes are reported as gone, as Paimon records no rollback, and no other."""
    life = PaimonLife(seed, tmp_path / "t", paimon_java)
    rare = [life.tag, life.delete_tag, life.branch, life.drop_branch, life.consume, life.truncate, life.leave]
    others = [*rare, life.merge_manifests, life.engine_expires, life.engine_expires]
    proven, chance = 0, Random(f"audited life {seed}")
    try:
        for _ in range(24):
            step = chance.choice([*[life.write] * 6, *[life.compact] * 4, *[life.care_whole] * 2, *others])
            if step == life.engine_expires:
                proven += require_proven(audited(life.folder))
            life.told.append(step.__name__)
            step()
            if chance.random() < 0.25:
                proven += require_proven(audited(life.folder))
            if chance.random() < 0.06:
                proven += require_proven(audited(life.folder))
                roll_back(life)
        proven += require_proven(audited(life.folder))
        require_proven(audited(life.folder, mark="whole"))
        for branch in life.branches()[1:]:
            require_proven(audited(Path(f"{life.folder}{MARK}{branch}")))
            life.java.drop_branch(life.folder, branch)
        while life.keyed and proven < 2:
            life.write()
            life.lift(full=True)
            proven += require_proven(audited(life.folder))
    except Exception as failure:
        raise AssertionError(f"seed {seed}: {'; '.join(life.told)}") from failure


def roll_back(life: PaimonLife) -> None:
    before = set(life.main())
    life.told.append("roll_back")
    life.roll_back()
    gone = before - set(life.main())
    found = audited(life.folder)
    assert not found.wrong
    assert {each["version"] for each in found.section["vanished"]} == gone
    assert found.outcome is (Outcome.MISMATCH if gone else Outcome.UNCHANGED), found.document.reason


@pytest.mark.parametrize("seed", some_extended(range(FIRST, 4 * LAST), keep=1))
def test_lives_of_tables_without_keys(seed: int, paimon_java: PaimonJava, tmp_path: Path) -> None:
    life = append_life.Life(paimon_java, tmp_path / "t", seed)
    proven, chance = 0, Random(f"audited rows {seed}")
    life.append()
    events = [event for event in append_life.EVENTS if event is not append_life.Life.expire]
    try:
        for _ in range(14):
            event = chance.choice([*events, append_life.Life.compact])
            life.told.append(event.__name__)
            event(life)
            if chance.random() < 0.3:
                proven += require_proven(audited(life.table.folder))
        proven += require_proven(audited(life.table.folder))
        while proven < 2:
            life.append()
            life.table.optimize()
            proven += require_proven(audited(life.table.folder))
        assert require_proven(audited(life.table.folder, mark="whole")) == proven
    except Exception as failure:
        raise AssertionError(f"history {seed}: {'; '.join(life.told)}") from failure


@pytest.mark.in_turn("release")
@pytest.mark.parametrize("kind", RELEASED)
@pytest.mark.parametrize("release", RELEASES)
def test_tables_of_older_releases(release: str, kind: str, tmp_path: Path) -> None:
    """As that release left them, and after a compaction of ours."""
    table = unpacked(release, kind, tmp_path)
    require_proven(audited(table, since_ms=EVER_MS))
    document = operate(table, Operation.OPTIMIZE) if kind.startswith(("append", "ordered")) else upgrade(table)
    require_proven(audited(table))
    if document.outcome is Outcome.VERIFIED:
        assert audited(table, mark="whole", since_ms=EVER_MS).commits[-1]["verdict"] == "proven"
