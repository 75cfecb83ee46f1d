"""An update or delete of ours beside Java on a partitioned table: every row is changed once, or none is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction
from tests.formats.paimon.appended import DAYS, FIXED, VECTORS, Appended, operate
from tests.formats.paimon.contents import files, leftovers
from tests.races.test_paimon_append import delete_and_pause
from tests.support.breaking import pause, paused
from tests.support.extended import some_extended

from nightkeep.formats.paimon import format as paimon_format
from nightkeep.model import Operation, Outcome, run_token

ROWS = "id <= 60"
RAISE = ["price = price + 1"]
"""Seen in the rows if it is done twice."""
PRICE = ("price", "INT")


def update_and_pause(pipe: Any, table: Path, run_id: str, stage: str, settings: dict[str, object]) -> None:
    rows = str(settings["rows"])
    pause(pipe, lambda: operate(table, Operation.UPDATE, run_id=run_id, rows=rows, sets=RAISE), paimon_format, stage)


@pytest.fixture(params=["no buckets", "fixed buckets"])
def table(request: pytest.FixtureRequest, paimon_java: PaimonJava, tmp_path: Path) -> Appended:
    """Two partitions of three files each, the first file of each with a vector."""
    buckets = {} if request.param == "no buckets" else FIXED
    options = {**VECTORS, **buckets, "compaction.min.file-num": "2"}
    made = Appended.create(paimon_java, tmp_path / "t", options, columns=(PRICE,))
    for _ in range(3):
        made.append(40)
    by_day = made.files_by_day()
    paimon_java.delete_positions(made.folder, {found[0].name: [1] for found in by_day.values()})
    return made


def delete_in_one(table: Appended) -> None:
    """Of a file of the first append, all of whose rows are ours to change."""
    day = sorted(table.files_by_day())[0]
    first = min(table.files_by_day()[day], key=lambda file: repr(file.value_stats["id"]))
    table.java.delete_positions(table.folder, {first.name: [3]})


def compaction(table: Appended) -> None:
    """One pick: with fixed buckets the second would replace files of the first in one commit, which Java refuses."""
    assert table.java.compact(table.folder, Compaction(single_pick=True)).snapshot


def truncation(table: Appended) -> None:
    table.java.truncate(table.folder)


def ours_packs_one(table: Appended) -> None:
    assert table.optimize(where=f"day = '{DAYS[0]}'").outcome is Outcome.VERIFIED


def ours_deletes_in_one(table: Appended) -> None:
    assert table.delete_where(f"day = '{DAYS[0]}' AND id <= 30").outcome is Outcome.VERIFIED


def ours_updates_in_one(table: Appended) -> None:
    assert table.update_where(f"day = '{DAYS[0]}' AND id <= 30", ["price = 7"]).outcome is Outcome.VERIFIED


MEANWHILE = [delete_in_one, compaction, truncation, ours_packs_one, ours_deletes_in_one, ours_updates_in_one]
CHANGES = {Operation.UPDATE: update_and_pause, Operation.DELETE: delete_and_pause}


def changed(operation: Operation, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows as the operation leaves them."""
    if operation is Operation.DELETE:
        return [row for row in rows if row[0] > 60]
    return sorted((_raised(row) if row[0] <= 60 else row for row in rows), key=repr)


def _raised(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*row[:-1], None if row[-1] is None else row[-1] + 1)


def again(table: Appended, operation: Operation, run_id: str) -> Any:
    sets = RAISE if operation is Operation.UPDATE else []
    return operate(table.folder, operation, run_id=run_id, rows=ROWS, sets=sets)


@pytest.mark.few(4)
@pytest.mark.parametrize("meanwhile", some_extended(MEANWHILE, keep=3), ids=lambda each: each.__name__)
@pytest.mark.parametrize("operation", CHANGES)
@pytest.mark.parametrize("before", some_extended(["link", "publish", "verify", "execute"], keep=1))
def test_a_lost_unit_takes_all_of_the_change(
    table: Appended, meanwhile: Callable[[Appended], None], operation: Operation, before: str
) -> None:
    with paused(CHANGES[operation], table.folder, "ours", before, {"rows": ROWS}) as ours:
        at_gate = {name: data for name, data in files(table.folder).items() if run_token("ours", operation) not in name}
        meanwhile(table)
        truth = table.rows()
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.CONFLICTED, None), document["reason"]
    assert "no row was changed" in document["reason"]
    assert {unit["outcome"] for unit in document["units"]} == {Outcome.CONFLICTED}
    assert not [name for name in leftovers(table.folder, at_gate) if run_token("ours", operation) in name]
    assert table.rows() == truth
    retried = again(table, operation, "ours")
    expected = changed(operation, truth)
    assert retried.outcome is (Outcome.UNCHANGED if expected == truth else Outcome.VERIFIED), retried.reason
    assert table.rows() == expected
    if retried.committed_version is not None:
        assert again(table, operation, "ours").committed_version == retried.committed_version
        assert table.rows() == expected


@pytest.mark.parametrize("operation", CHANGES)
def test_an_append_meanwhile_takes_nothing(table: Appended, operation: Operation) -> None:
    if table.buckets > 0 and operation is Operation.UPDATE:
        pytest.skip("appended rows would come after updated ones: test_paimon_append.py")
    truth = table.rows()
    with paused(CHANGES[operation], table.folder, "ours", "link", {"rows": ROWS}) as ours:
        table.append(5)
        late = [row for row in table.rows() if row not in truth]
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert table.rows() == sorted([*changed(operation, truth), *late], key=repr)
