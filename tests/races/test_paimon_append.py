"""Java and we on one table without keys, the other one always committing while one of us is between two stages."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.drivers.json_lines import EngineError
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Compaction
from tests.formats.paimon.appended import FIXED, SMALL, VECTORS, Appended, operate
from tests.formats.paimon.contents import files, leftovers
from tests.support.breaking import Ours, pause, paused

from nightkeep.formats.paimon import format as paimon_format
from nightkeep.model import Operation, Outcome, run_token


def optimize_and_pause(pipe: Connection, table: Path, run_id: str, stage: str, settings: dict[str, object]) -> None:
    pause(pipe, lambda: operate(table, Operation.OPTIMIZE, run_id=run_id, **settings), paimon_format, stage)


def delete_and_pause(pipe: Connection, table: Path, run_id: str, stage: str, settings: dict[str, object]) -> None:
    pause(
        pipe, lambda: operate(table, Operation.DELETE, run_id=run_id, rows=str(settings["rows"])), paimon_format, stage
    )


def deleting(table: Appended, rows: str, *, before: str = "publish") -> AbstractContextManager[Ours]:
    return paused(delete_and_pause, table.folder, "ours", before, {"rows": rows})


def update_and_pause(pipe: Connection, table: Path, run_id: str, stage: str, settings: dict[str, object]) -> None:
    rows, sets = str(settings["rows"]), ["text = CAST(id AS STRING)"]
    pause(pipe, lambda: operate(table, Operation.UPDATE, run_id=run_id, rows=rows, sets=sets), paimon_format, stage)


def updating(table: Appended, rows: str, *, before: str = "publish") -> AbstractContextManager[Ours]:
    return paused(update_and_pause, table.folder, "ours", before, {"rows": rows})


def waiting(table: Appended, *, before: str = "publish", **settings: object) -> AbstractContextManager[Ours]:
    return paused(optimize_and_pause, table.folder, "ours", before, settings)


@pytest.fixture
def table(paimon_java: PaimonJava, tmp_path: Path) -> Appended:
    """One partition: three small files, two of them with vectors in one vector file."""
    table = Appended.create(
        paimon_java, tmp_path / "t", {**VECTORS, **SMALL}, columns=(("text", "STRING"),), partitioned=False
    )
    for _ in range(3):
        table.append(20)
    first, second, _ = names(table)
    paimon_java.delete_positions(table.folder, {first: [1, 2], second: [3]})
    return table


def names(table: Appended) -> list[str]:
    return [file.name for file in table.files()]


@pytest.mark.parametrize("before", ["publish", "link"])
def test_an_append_meanwhile_is_kept(table: Appended, before: str) -> None:
    with waiting(table, before=before) as ours:
        table.append(5)
        truth = table.rows()
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert table.rows() == truth and not table.vectors() and len(table.files()) == 2


def delete_of_an_input(table: Appended) -> None:
    table.java.delete_positions(table.folder, {names(table)[0]: [4]})


def first_delete_of_an_input(table: Appended) -> None:
    """No vector of ours is replaced: this file had none."""
    table.java.delete_positions(table.folder, {names(table)[2]: [4]})


def compaction(table: Appended) -> None:
    assert table.java.compact(table.folder).snapshot


def truncation(table: Appended) -> None:
    table.java.truncate(table.folder)


@pytest.mark.parametrize("meanwhile", [delete_of_an_input, first_delete_of_an_input, compaction, truncation])
@pytest.mark.parametrize("before", ["publish", "link"])
@pytest.mark.in_turn("before")
def test_a_change_of_our_inputs_wins(table: Appended, meanwhile: Callable[[Appended], None], before: str) -> None:
    with waiting(table, before=before) as ours:
        at_gate = {name: data for name, data in files(table.folder).items() if "nk-" not in name}
        meanwhile(table)
        truth = table.rows()
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.CONFLICTED, None), document["reason"]
    assert not [name for name in leftovers(table.folder, at_gate) if "nk-" in name]
    assert table.rows() == truth
    assert table.optimize().outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)
    assert table.rows() == truth


def test_a_delete_elsewhere_is_kept(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Of a file that we do not rewrite, in a vector file that we do not replace."""
    options = {**VECTORS, "target-file-size": "1 b"}
    table = Appended.create(paimon_java, tmp_path / "t", options, columns=(("text", "STRING"),), partitioned=False)
    for _ in range(2):
        table.append(20)
    worn, other = names(table)
    paimon_java.delete_positions(table.folder, {worn: range(10)})
    with waiting(table) as ours:
        paimon_java.delete_positions(table.folder, {other: [1]})
        truth = table.rows()
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert table.rows() == truth and table.vectors() == {other: [1]}


@pytest.mark.parametrize("before", ["publish", "link"])
def test_rows_appended_while_we_delete_stay(table: Appended, before: str) -> None:
    truth = [row for row in table.rows() if row[0] > 30]
    with deleting(table, "id <= 30", before=before) as ours:
        table.java.write(table.folder, [("+I", 7, "d", "late")])
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert table.rows() == sorted([*truth, (7, "d", "late")], key=repr)


@pytest.mark.parametrize(
    "meanwhile",
    [delete_of_an_input, compaction, truncation, lambda table: table.optimize()],
    ids=["delete", "compaction", "truncation", "optimize"],
)
def test_a_change_of_files_that_we_delete_from_wins(table: Appended, meanwhile: Callable[[Appended], None]) -> None:
    with deleting(table, "id <= 60") as ours:
        meanwhile(table)
        truth = table.rows()
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.CONFLICTED, None), document["reason"]
    assert table.rows() == truth


@pytest.mark.parametrize("before", ["publish", "link"])
def test_rows_appended_while_we_update_stay_as_they_are(table: Appended, before: str) -> None:
    truth = [(*row[:2], str(row[0])) if row[0] <= 30 else row for row in table.rows()]
    with updating(table, "id <= 30", before=before) as ours:
        table.java.write(table.folder, [("+I", 7, "d", "late")])
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert table.rows() == sorted([*truth, (7, "d", "late")], key=repr)


@pytest.mark.parametrize(
    "meanwhile",
    [
        delete_of_an_input,
        compaction,
        truncation,
        lambda table: table.optimize(),
        lambda table: table.update_where("id <= 60", ["text = 'other'"]),
    ],
    ids=["delete", "compaction", "truncation", "optimize", "update"],
)
def test_a_change_of_files_that_we_update_wins(table: Appended, meanwhile: Callable[[Appended], None]) -> None:
    """No row is there twice, old and new, and no row of the other's is lost."""
    with updating(table, "id <= 60") as ours:
        meanwhile(table)
        truth = table.rows()
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.CONFLICTED, None), document["reason"]
    assert table.rows() == truth and not [*table.folder.rglob(f"*nk-{run_token('ours', Operation.UPDATE)}*")]


@pytest.mark.parametrize("what", ["delete", "compaction"])
def test_java_gives_up_what_it_prepared_before_our_update(table: Appended, what: str) -> None:
    """Also a compaction of files of which we hide rows: it would show them again, beside the new ones."""
    java = table.java
    handle = (
        java.prepare_delete(table.folder, {names(table)[0]: [4]})
        if what == "delete"
        else str(java.prepare_compact(table.folder).handle)
    )
    assert table.update_where("id <= 60", ["text = 'new'"]).outcome is Outcome.VERIFIED
    truth = table.rows()
    with pytest.raises(EngineError, match=r"(?i)conflict"):
        java.commit_prepared(handle)
    assert table.rows() == truth


def test_java_appends_what_it_prepared_before_our_update(table: Appended) -> None:
    table.java.compact(table.folder)
    assert table.update_where("id <= 60", ["text = 'new'"]).outcome is Outcome.VERIFIED
    truth = table.rows()
    table.java.write(table.folder, [("+I", 99, "d", "next")])
    assert table.rows() == sorted([*truth, (99, "d", "next")], key=repr)
    assert table.java.compact(table.folder) and table.rows() == sorted([*truth, (99, "d", "next")], key=repr)


@pytest.mark.parametrize("what", ["delete", "compaction"])
def test_java_gives_up_what_it_prepared_before_our_commit(table: Appended, what: str) -> None:
    """Its vectors would be of files that are gone, or its compaction of files that we replaced."""
    java = table.java
    handle = (
        java.prepare_delete(table.folder, {names(table)[0]: [4]})
        if what == "delete"
        else str(java.prepare_compact(table.folder).handle)
    )
    assert table.optimize().outcome is Outcome.VERIFIED
    truth = table.rows()
    with pytest.raises(EngineError, match=r"(?i)conflict"):
        java.commit_prepared(handle)
    assert table.rows() == truth


@pytest.fixture
def fixed(paimon_java: PaimonJava, tmp_path: Path) -> Appended:
    """One bucket that keeps the order of its rows: three small files, two of them with vectors."""
    options = {**VECTORS, **SMALL, **FIXED, "bucket": "1"}
    table = Appended.create(paimon_java, tmp_path / "t", options, columns=(("text", "STRING"),), partitioned=False)
    for _ in range(3):
        table.append(20)
    first, second, _ = names(table)
    paimon_java.delete_positions(table.folder, {first: [1, 2], second: [3]})
    return table


@pytest.mark.parametrize("before", ["publish", "link"])
@pytest.mark.in_turn("before")
def test_rows_appended_to_a_fixed_bucket_come_last(fixed: Appended, before: str) -> None:
    with waiting(fixed, before=before) as ours:
        fixed.append(5)
        truth = fixed.ordered()
        document = ours.go_on()
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert fixed.ordered() == truth and len(fixed.files()) == 2


@pytest.mark.parametrize("meanwhile", [delete_of_an_input, first_delete_of_an_input, truncation])
def test_a_change_of_our_inputs_in_a_fixed_bucket_wins(fixed: Appended, meanwhile: Callable[[Appended], None]) -> None:
    with waiting(fixed) as ours:
        meanwhile(fixed)
        truth = fixed.ordered()
        document = ours.go_on()
    assert (document["outcome"], document["committed_version"]) == (Outcome.CONFLICTED, None), document["reason"]
    assert fixed.ordered() == truth


@pytest.mark.parametrize("appends", [1, 2])
def test_updated_rows_of_a_fixed_bucket_stay_behind_all_others(fixed: Appended, appends: int) -> None:
    """Also those of one append meanwhile; behind two, their numbers are too low."""
    with updating(fixed, "id <= 30") as ours:
        for _ in range(appends):
            fixed.append(5)
        truth = fixed.ordered()["", 0]
        document = ours.go_on()
    if appends == 2:
        assert document["outcome"] == Outcome.CONFLICTED and "updated ones" in str(document["units"])
        assert fixed.ordered()["", 0] == truth
        return
    behind = [(*row[:3], str(row[0])) for row in truth if row[0] <= 30]
    assert document["outcome"] == Outcome.VERIFIED, document["reason"]
    assert fixed.ordered()["", 0] == [*(row for row in truth if row[0] > 30), *behind]


@pytest.mark.parametrize("what", ["delete", "compaction"])
def test_what_java_commits_late_to_a_fixed_bucket_is_found(fixed: Appended, what: str) -> None:
    """Its committer compares no vectors there: prepared before a delete of ours, it shows our rows again."""
    java = fixed.java
    handle = (
        java.prepare_delete(fixed.folder, {names(fixed)[2]: [4]})
        if what == "delete"
        else str(java.prepare_compact(fixed.folder, Compaction(full=True, single_pick=True)).handle)
    )
    assert fixed.delete_where("id = 50").outcome is Outcome.VERIFIED
    truth = fixed.rows()
    java.commit_prepared(handle)
    assert fixed.rows() != truth
    document = fixed.optimize()
    assert document.outcome is Outcome.MISMATCH, document.reason
