"""Damage between staging and proof: the gate catches each by what is wrong with it, at both of its levels."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.formats.delta import sabotage as sabotage
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.laid_anew import NO_COST, a_run, laid_anew
from tests.formats.delta.sabotage import Act, Staged

from nightkeep.formats.delta.format import DeltaTable, open_table
from nightkeep.formats.delta.gate import gate as delta_gate
from nightkeep.formats.delta.gate.proof_parts import pieces
from nightkeep.formats.delta.metadata import log_state
from nightkeep.formats.delta.metadata.pending_changes import DeltaEdit
from nightkeep.formats.delta.metadata.replay import LogState
from nightkeep.model import (
    Address,
    Candidate,
    Conflicted,
    Intent,
    Mismatch,
    Operation,
    Plan,
    Rewrite,
    UnitKey,
    Verified,
    VerifyLevel,
)
from nightkeep.stages.verify import verify
from nightkeep.tasks import inline

DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")
TOUCHED = [UnitKey(f"day={day}") for day in DAYS[:2]]

REWRITTEN: dict[Act, str] = {
    sabotage.drop_a_row: "rows differ",
    sabotage.repeat_a_row: "rows differ",
    sabotage.repeat_one_row_and_drop_another: "rows differ",
    sabotage.change_a_value: "rows differ",
    sabotage.swap_values_of_two_rows: "rows differ",
    sabotage.write_null_for_empty: "rows differ",
    sabotage.write_empty_for_null: "rows differ",
    sabotage.name_a_column_otherwise: r"missing \['note'\], not of the schema \['remark'\]",
    sabotage.write_a_stray_column: r"missing \[\], not of the schema \['stray'\]",
    sabotage.drop_a_vector_from_a_remove: "vector None, the file has u",
    sabotage.put_another_vector_into_a_remove: "vector u.*, the file has u",
    sabotage.drop_a_remove: "rows differ",
    sabotage.drop_an_add: "rows differ",
    sabotage.remove_what_is_not_there: "gone.parquet: no live file of the parent",
    sabotage.add_a_file_twice: "expected once, found twice",
    sabotage.hide_rows_of_a_new_file: "rows differ",
    sabotage.overrun_a_vector: "1048576",
    sabotage.move_a_file_to_another_partition: "day=2026-11-03: changed, though no unit of it was worked on",
    sabotage.swap_two_partitions: "rows differ",
    sabotage.leave_out_a_partition_value: "day=null: changed, though no unit of it was worked on",
    sabotage.raise_a_minimum: "id has a value below the minimum that statistics state",
    sabotage.lower_a_minimum: "price has no value at an end of the range",
    sabotage.lower_a_maximum: "note has a value above the maximum that statistics state",
    sabotage.keep_the_statistics_of_an_input: "id has a value above the maximum",
    sabotage.miscount_nulls: "note has [0-9]+ nulls, statistics state",
    sabotage.miscount_rows: "rows as the log states",
    sabotage.miscount_bytes: "the log states [0-9]+ bytes, the folder has [0-9]+ bytes",
    sabotage.narrow_a_file_that_stayed: "day=2026-11-03: changed, though no unit of it was worked on",
    sabotage.lose_a_file_of_another_partition: "day=2026-11-03: changed, though no unit of it was worked on",
    sabotage.state_that_data_changed: "dataChange True, expected False",
    sabotage.state_that_rows_were_deleted: "states that it changes rows: True, expected False",
    sabotage.change_a_property: "metadata: changed",
    sabotage.record_a_transaction: "action txn",
    sabotage.forget_when_files_were_removed: "no deletionTimestamp",
    sabotage.state_that_files_were_removed_long_ago: "removed at [0-9]+, in a commit made at",
    sabotage.state_another_partition_of_a_removed_file: "partitionValues .*, the file has",
    sabotage.state_less_of_a_removed_file: "extendedFileMetadata False",
    sabotage.cut_a_file: "expected a Parquet file",
    sabotage.remove_a_file: "no such file",
    sabotage.cut_the_commit: "JSON object",
}
TRACKED: dict[Act, str] = {
    sabotage.repeat_a_base_row_id: "row ids overlap at",
    sabotage.reuse_row_ids_of_others: "row ids 0 to .*, expected above 449",
    sabotage.forget_a_base_row_id: "base row id None of version",
    sabotage.claim_an_older_commit_version: "version 1, expected one of",
    sabotage.forget_the_high_water_mark: "up to the new mark, 449",
    sabotage.lose_the_row_ids_of_rows: "rows differ",
    sabotage.swap_row_ids_of_two_rows: "rows differ",
    sabotage.turn_back_the_time: "in-commit timestamp .*, expected above its parent's",
    sabotage.state_the_time_too_late: "expected commitInfo as its first action",
}
REBUILT: dict[Act, str] = {
    sabotage.hide_other_rows: "rows differ",
    sabotage.show_deleted_rows_again: "rows differ",
    sabotage.hide_one_more_row: "rows differ",
    sabotage.miscount_deleted_rows: "expected [0-9]+ deleted rows, found",
    sabotage.lose_a_vector: "rows differ",
    sabotage.cut_a_vector: "size [0-9]+ as its descriptor states",
    sabotage.narrow_a_file_whose_vector_changed: "stats changed, though its bytes did not",
    sabotage.drop_a_vector_from_a_remove: "vector None, the file has u|one live version of it",
}


def filled(made: HandMade) -> HandMade:
    for day in DAYS:
        made.append(day, range(100))
        made.append(day, range(100, 150))
    made.delete(DAYS[0], range(10, 110))
    return made


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    return filled(HandMade(tmp_path / "table"))


@pytest.fixture
def tracked(tmp_path: Path) -> HandMade:
    return filled(HandMade(tmp_path / "tracked", row_ids=True))


def opened(made: HandMade) -> DeltaTable:
    return open_table(Address("delta", str(made.folder), "shop.events"))


def rewritten(made: HandMade) -> Candidate:
    table, run = opened(made), a_run()
    snapshot = table.snapshot()
    return table.commits.stage(snapshot, [laid_anew(table, snapshot.by_key[key], run) for key in TOUCHED], run)


def rebuilt(made: HandMade) -> Candidate:
    """The vectors of the first day, in a file of their own."""
    table, run = opened(made), a_run()
    unit = table.snapshot().by_key[TOUCHED[0]]
    vectors = made.vectors({file.path: made.deleted(file.raw) for file in unit.files})
    added = tuple({**file.raw, "deletionVector": vectors[file.path], "dataChange": False} for file in unit.files)
    edit = DeltaEdit(unit.files, added, Intent(Operation.PERSIST_DELETES))
    return table.commits.stage(table.snapshot(), [Rewrite(unit.key, edit, (), 0, 0, (), NO_COST)], run)


def judged(made: HandMade, candidate: Candidate, level: VerifyLevel, version: int | None = None) -> Verified | Mismatch:
    planned = candidate.parent if version is None else opened(made).snapshot(version).identity
    plan = Plan(candidate.table, Operation.OPTIMIZE, planned, ())
    return verify(opened(made), plan, (), candidate, level=level, mapper=inline)


def assert_caught(checked: Verified | Mismatch, reason: str) -> None:
    assert isinstance(checked, Mismatch)
    said = [*checked.faults, *(fault for proof in checked.proofs for fault in proof.faults)]
    said += [f"{proof.key}: rows differ" for proof in checked.proofs if proof.base != proof.candidate]
    assert re.search(reason, "\n".join(said), re.S), said


every_level = pytest.mark.parametrize("level", VerifyLevel)


@every_level
def test_what_nobody_damaged_is_proven(made: HandMade, tracked: HandMade, level: VerifyLevel) -> None:
    for table in (made, tracked):
        for candidate in (rewritten(table), rebuilt(table)):
            checked = judged(table, candidate, level)
            assert isinstance(checked, Verified), checked


@pytest.mark.in_turn("level")
@every_level
@pytest.mark.parametrize("act", REWRITTEN, ids=lambda act: act.__name__)
def test_the_gate_catches(act: Act, level: VerifyLevel, made: HandMade) -> None:
    candidate = rewritten(made)
    act(Staged(made, candidate))
    assert_caught(judged(made, candidate, level), REWRITTEN[act])


@every_level
@pytest.mark.parametrize("act", TRACKED, ids=lambda act: act.__name__)
def test_the_gate_catches_of_row_ids_and_times(act: Act, level: VerifyLevel, tracked: HandMade) -> None:
    candidate = rewritten(tracked)
    act(Staged(tracked, candidate))
    assert_caught(judged(tracked, candidate, level), TRACKED[act])


@every_level
@pytest.mark.parametrize("act", REBUILT, ids=lambda act: act.__name__)
def test_the_gate_catches_of_vectors(act: Act, level: VerifyLevel, made: HandMade) -> None:
    candidate = rebuilt(made)
    act(Staged(made, candidate))
    assert_caught(judged(made, candidate, level), REBUILT[act])


@every_level
def test_the_gate_catches_a_proof_against_another_version(made: HandMade, level: VerifyLevel) -> None:
    candidate = rewritten(made)
    checked = judged(made, candidate, level, candidate.parent_version - 1)
    assert_caught(checked, "on top of version 7, expected the planned 6")
    claimed = replace(candidate, parent=opened(made).snapshot(6).identity)
    checked = judged(made, claimed, level, 6)
    assert_caught(checked, "rows differ")


def test_the_gate_catches_a_file_that_the_reader_misses_on_both_sides(
    made: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remove of a file that our reader does not know, or the rows that it then leaves twice, show."""
    candidate = rewritten(made)
    replay = log_state.replay
    (lost, *_) = (path for path in made.live() if DAYS[0] in path)

    def forgetful(*arguments: Any) -> LogState:
        state = replay(*arguments)
        return replace(state, adds=tuple(add for add in state.adds if add["path"] != lost))

    monkeypatch.setattr(log_state, "replay", forgetful)
    # What the reader shows is part of what the version is: nothing is published on another content.
    assert isinstance(judged(made, candidate, VerifyLevel.FULL), Conflicted)


IN_PARTS = (sabotage.drop_a_row, sabotage.drop_a_remove, sabotage.swap_two_partitions, sabotage.miscount_bytes)


@every_level
@pytest.mark.parametrize("act", [None, *IN_PARTS], ids=lambda act: act.__name__ if act else "nothing")
def test_parts_prove_what_the_whole_would(
    act: Act | None, level: VerifyLevel, made: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_gate, "pieces", partial(pieces, part_bytes=1))
    candidate = rewritten(made)
    table = opened(made)
    sides = [side.by_key[TOUCHED[0]] for side in (table.snapshot(), table.staged(candidate))]
    assert len(table.gate.pieces(*sides)) == 3
    if act is None:
        checked = judged(made, candidate, level)
        assert isinstance(checked, Verified)
        assert [proof.base.rows for proof in checked.proofs] == [50, 150]
        return
    act(Staged(made, candidate))
    assert_caught(judged(made, candidate, level), REWRITTEN[act])
