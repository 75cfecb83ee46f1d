"""A streaming reader beside races: what is told fits what is shown, whoever commits between our stages."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction, Writer
from tests.formats.paimon.breaking import waiting
from tests.formats.paimon.changelogs import Change, applied
from tests.formats.paimon.contents import SAMPLES, files, leftovers
from tests.formats.paimon.gate.test_changes import with_options
from tests.formats.paimon.upgrade import upgrade

from nightkeep.model import Outcome

KEYS = [0, 1]
"""The day and the number of an order."""


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    table = Path(shutil.copytree(SAMPLES / "orders", tmp_path / "orders"))
    return with_options(table, {"changelog-producer": "lookup"})


def shown(engine: PaimonJava, table: Path) -> dict[tuple[Any, ...], Change]:
    return {tuple(row[i] for i in KEYS): tuple(row) for row in engine.read(table).rows}


@pytest.mark.parametrize("before", ["publish", "link"])
def test_an_append_meanwhile_is_reported_by_the_next_run(paimon_java: PaimonJava, orders: Path, before: str) -> None:
    held = shown(paimon_java, orders)
    with waiting(orders, before=before) as ours:
        late = ["+U", "2026-11-02", 10_001, "C-00001", "late", "1.00", None, "2026-11-04T00:00:00.000000"]
        paimon_java.write(orders, [late], Writer(user="shop-writer"))
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.VERIFIED, 9), document["reason"]
    first = paimon_java.changes(orders, since=8)
    held = applied(held, first.rows, KEYS)
    assert held == shown(paimon_java, orders)
    assert upgrade(orders, run_id="next").outcome is Outcome.VERIFIED
    second = paimon_java.changes(orders, since=first.next or 0)
    assert {row[2] for row in second.rows} == {10_001}
    assert applied(held, second.rows, KEYS) == shown(paimon_java, orders)


def test_a_bucket_that_was_compacted_meanwhile_is_reported_by_the_other_only(
    paimon_java: PaimonJava, orders: Path
) -> None:
    held, before = shown(paimon_java, orders), files(orders)
    with waiting(orders) as ours:
        paimon_java.compact(orders, Compaction(partition=["2026-11-02"], buckets=[1], user="compactor"))
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.CONFLICTED, 9)
    assert not [name for name in leftovers(orders, before) if "nk-" in name]
    told = paimon_java.changes(orders, since=8).rows
    assert applied(held, told, KEYS) == shown(paimon_java, orders)


def test_of_two_of_us_one_reports(paimon_java: PaimonJava, orders: Path) -> None:
    held, at_start = shown(paimon_java, orders), files(orders)
    with waiting(orders) as first, waiting(orders, run_id="another run") as second:
        first.release()
        second.release()
        documents = [first.document(), second.document()]
    assert sorted(document["outcome"] for document in documents) == [Outcome.CONFLICTED, Outcome.VERIFIED]
    assert not [name for name in leftovers(orders, at_start) if "nk-" in name]
    assert applied(held, paimon_java.changes(orders, since=8).rows, KEYS) == shown(paimon_java, orders)
