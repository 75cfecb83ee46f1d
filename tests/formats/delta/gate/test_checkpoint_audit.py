"""The comparison of a checkpoint with the log: multisets of actions, from the newest commit back."""

from pathlib import Path

import pytest
from tests.formats.delta.hand_log import HandLog, add, remove

from nightkeep.errors import EvidenceError
from nightkeep.formats.delta.gate.checkpoint_audit import ActionSums, log_sums, require_same_files
from nightkeep.formats.delta.metadata.checkpoint_state import Expiration
from nightkeep.formats.delta.metadata.log_segment import segment, segment_without
from nightkeep.storage import LocalStorage

ALL = Expiration(0)


def sums(*bodies: tuple[str, dict[str, object]]) -> ActionSums:
    found = ActionSums()
    for kind, body in bodies:
        found.add(kind, body)
    return found


def test_the_order_of_actions_and_of_fields_has_no_meaning() -> None:
    one, other = ("add", {"path": "a", "size": 1}), ("add", {"path": "b", "size": 2})
    swapped = ("add", {"size": 1, "path": "a"})
    sums(one, other).require(sums(other, swapped), subject="it")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([("add", {"path": "a"})], "expected the 2 add actions of the log, found 1"),
        ([("add", {"path": "a"})] * 2, "found as many, of other content"),
        ([("add", {"path": "a"}), ("add", {"path": "b"}), ("txn", {"appId": "x"})], "expected the 0 txn actions"),
    ],
)
def test_a_difference_names_the_kind(found: list[tuple[str, dict[str, object]]], said: str) -> None:
    with pytest.raises(EvidenceError, match=said):
        sums(("add", {"path": "a"}), ("add", {"path": "b"})).require(sums(*found), subject="it")


def test_the_newest_action_of_a_file_counts_also_over_a_checkpoint(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "table")
    storage = LocalStorage(str(log.folder))
    log.commit(0, *log.head, add("a"), add("b"))
    log.commit(1, remove("a"), add("c", size=5))
    log.commit(2, add("a", size=7), remove("b"), remove("c"))
    whole = log_sums(storage, segment(storage), ALL)
    assert {kind: count for kind, (count, _) in whole.sums.items()} == {
        "add": 1,
        "remove": 2,
        "protocol": 1,
        "metaData": 1,
    }
    log.single(1, [*log.head, add("b"), add("c", size=5), remove("a")])
    log_sums(storage, segment(storage), ALL).require(whole, subject="it")
    assert "remove" not in log_sums(storage, segment(storage), Expiration(5)).sums


def test_a_checkpoint_read_again_is_compared_with_older_files_alone(tmp_path: Path) -> None:
    log = HandLog(tmp_path / "table")
    storage = LocalStorage(str(log.folder))
    log.commit(0, *log.head, add("a"))
    log.commit(1, add("b"))
    log.single(1, [*log.head, add("a")])
    kept = segment(storage, 1).checkpoint
    assert kept is not None
    with pytest.raises(EvidenceError, match="expected the 2 add actions of the log, found 1"):
        require_same_files(storage, kept, segment_without(storage, kept))
    require_same_files(storage, kept, None)
