"""What commits of Delta state in metrics and checksum files, forged in logs of delta-spark: an audit finds each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.auditing.delta_lake import commits

import nightkeep
from nightkeep.model import Outcome

GOLDEN = Path(__file__).parents[1] / "golden" / "delta"
Change = Callable[[dict[str, Any]], object]


def of_commit(table: Path, version: int, change: Change) -> None:
    path = table / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            change(action["commitInfo"])
    path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def of_checksum(table: Path, version: int, change: Change) -> None:
    path = table / "_delta_log" / f"{version:020d}.crc"
    stated = json.loads(path.read_text())
    change(stated)
    path.write_text(json.dumps(stated))


def of_metric(name: str) -> Change:
    return lambda info: info["operationMetrics"].update({name: "77"})


def as_delete(info: dict[str, Any]) -> None:
    info["operation"] = "DELETE"


WRITE, OPTIMIZE = 1, 4
UPDATE, DELETE = 1, 2
MERGE = 1
FORGED: dict[str, tuple[str, int, Callable[[Path, int, Change], None], Change]] = {
    "files of a write": ("optimize", WRITE, of_commit, of_metric("numFiles")),
    "bytes of a write": ("optimize", WRITE, of_commit, of_metric("numOutputBytes")),
    "rows of a write": ("optimize", WRITE, of_commit, of_metric("numOutputRows")),
    "rows that a merge writes": ("merge", MERGE, of_commit, of_metric("numOutputRows")),
    "rows that a merge inserts": ("merge", MERGE, of_commit, of_metric("numTargetRowsInserted")),
    "rows that a delete deletes": ("vectors", DELETE, of_commit, of_metric("numDeletedRows")),
    "rows that an update updates": ("change_feed", UPDATE, of_commit, of_metric("numUpdatedRows")),
    "an update in the name of a delete": (
        "change_feed",
        UPDATE,
        of_commit,
        lambda info: info.update(operation="DELETE"),
    ),
    "rows that a delete copies": ("change_feed", DELETE, of_commit, of_metric("numCopiedRows")),
    "files that a compaction adds": ("optimize", OPTIMIZE, of_commit, of_metric("numAddedFiles")),
    "files that a compaction removes": ("optimize", OPTIMIZE, of_commit, of_metric("numRemovedFiles")),
    "bytes that a compaction adds": ("optimize_vectors", 7, of_commit, of_metric("numAddedBytes")),
    "bytes that a compaction removes": ("optimize", OPTIMIZE, of_commit, of_metric("numRemovedBytes")),
    "files of a version": ("optimize", OPTIMIZE, of_checksum, lambda stated: stated.update(numFiles=9)),
    "bytes of a version": ("optimize", OPTIMIZE, of_checksum, lambda stated: stated.update(tableSizeBytes=9)),
    "a transaction": ("optimize", OPTIMIZE, of_checksum, lambda stated: stated.update(txnId="another")),
}


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / name / "table", folder / name))


def first_optimize(table: Path) -> int:
    for path in sorted((table / "_delta_log").glob("0*.json")):
        if '"operation":"OPTIMIZE"' in path.read_text():
            return int(path.stem)
    raise LookupError(table)


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_total_is_unsound(kind: str, tmp_path: Path) -> None:
    name, version, forge, change = FORGED[kind]
    table = copied(name, tmp_path)
    if "compaction" in kind:
        version = first_optimize(table)
    forge(table, version, change)
    document = nightkeep.audit(f"delta:{table}", since="9999d", reports=tmp_path / "reports")
    assert document.outcome is Outcome.MISMATCH, document.reason
    unsound = [number for number, each in sorted(commits(document).items()) if each["verdict"] == "unsound"]
    assert unsound[0] == version, document.reason


def test_another_in_commit_timestamp_is_unsound(tmp_path: Path) -> None:
    table = copied("optimize", tmp_path)
    of_commit(table, OPTIMIZE, lambda info: info.update(inCommitTimestamp=info["timestamp"]))
    of_checksum(table, OPTIMIZE, lambda stated: stated.update(inCommitTimestampOpt=7))
    document = nightkeep.audit(f"delta:{table}", since=0, reports=tmp_path / "reports")
    assert commits(document)[OPTIMIZE]["verdict"] == "unsound", document.reason


def test_a_checksum_that_is_no_json_is_unsound(tmp_path: Path) -> None:
    table = copied("optimize", tmp_path)
    (table / "_delta_log" / f"{OPTIMIZE:020d}.crc").write_bytes(b"\xff{")
    document = nightkeep.audit(f"delta:{table}", since=0, reports=tmp_path / "reports")
    assert commits(document)[OPTIMIZE]["verdict"] == "unsound", document.reason


def test_a_version_without_a_checksum_is_sound(tmp_path: Path) -> None:
    table = copied("optimize", tmp_path)
    (table / "_delta_log" / f"{OPTIMIZE:020d}.crc").unlink()
    document = nightkeep.audit(f"delta:{table}", since=0, reports=tmp_path / "reports")
    assert document.outcome is Outcome.VERIFIED, document.reason
