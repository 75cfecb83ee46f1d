"""Delta tables whose log was damaged: no sweep calls a live file an orphan, whatever it was."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.formats.delta.damaged import delta_worlds, golden_copy, later_ms, leave
from tests.formats.delta.runs import opened
from tests.formats.delta.sweeping import run_of
from tests.retention.damage import fuzz, pieces
from tests.support.extended import some_extended

from nightkeep.errors import EvidenceError
from nightkeep.model import Outcome, Run
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.retention.orphans.memory_sets import MemorySets
from nightkeep.retention.orphans.sweep_request import SweepOrder, SweepResult
from nightkeep.retention.orphans.sweep_table import sweep_table

COMMIT = "_delta_log/{:020d}.json"


def swept(table: Path, mode: SweepMode = SweepMode.DRY_RUN) -> tuple[SweepResult, set[str]]:
    """Two months later, by a store's clock that is the same."""
    run = run_of()
    late = Run(run.run_id, run.token, run.attempt, later_ms())
    with closing(MemorySets()) as sets:
        told = sweep_table(
            opened(table).retention, SweepOrder(mode, max_share=1.0), late, sets=sets, clock=lambda: now_ms(table)
        )
        return told, {name for batch in sets.orphans() for name in batch["name"].to_pylist()}


def now_ms(table: Path) -> int:
    probe = table / "_delta_log/.now"
    probe.touch()
    try:
        return probe.stat().st_mtime_ns // 1_000_000
    finally:
        probe.unlink()


def cut(path: Path, *, lines: int = 1) -> None:
    """The last lines of a commit go."""
    head, parts = pieces(path.read_bytes())
    path.write_bytes(head + b"".join(parts[:-lines]))


def rewritten(path: Path, **info: object) -> None:
    """A commit that says other things of itself; None takes them away."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"] = {k: v for k, v in {**line["commitInfo"], **info}.items() if v is not None}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("mode", [SweepMode.DRY_RUN, SweepMode.QUARANTINE, SweepMode.DELETE])
@pytest.mark.parametrize("name", ["optimize", "partition_paths"], ids=["checksums", "metrics alone"])
def test_a_commit_that_lost_a_file_ends_the_sweep(name: str, mode: SweepMode, tmp_path: Path) -> None:
    table = golden_copy(name, tmp_path)
    left = leave(table)
    cut(table / COMMIT.format(1))
    with pytest.raises(EvidenceError):
        swept(table, mode)
    assert all((table / each).exists() for each in left)


def test_a_checkpoint_that_lost_a_sidecar_ends_the_sweep(tmp_path: Path) -> None:
    table = golden_copy("checkpoint_v2_json", tmp_path)
    (checkpoint,) = (table / "_delta_log").glob("*.checkpoint.*.json")
    lines = checkpoint.read_bytes().splitlines(keepends=True)
    kept = [
        line for line in lines if b'"sidecar"' not in line or line is not max(lines, key=lambda x: b'"sidecar"' in x)
    ]
    checkpoint.write_bytes(b"".join(kept))
    with pytest.raises(EvidenceError, match="_last_checkpoint states"):
        swept(table)


def test_a_part_of_a_checkpoint_in_another_ones_place_ends_the_sweep(tmp_path: Path) -> None:
    table = golden_copy("checkpoint_v1_parts", tmp_path)
    first, second, third = sorted((table / "_delta_log").glob("*.checkpoint.*.parquet"))
    for one, other in ((first, second), (second, third), (third, first)):
        whole = other.read_bytes()
        shutil.copyfile(one, other)
        with pytest.raises(EvidenceError):
            swept(table)
        other.write_bytes(whole)


def test_a_commit_in_another_ones_place_ends_the_sweep(tmp_path: Path) -> None:
    table = golden_copy("partition_paths", tmp_path)
    shutil.copyfile(table / COMMIT.format(1), table / COMMIT.format(2))
    with pytest.raises(EvidenceError, match="content of its own"):
        swept(table)


def test_a_commit_of_another_table_in_its_place_is_no_evidence(tmp_path: Path) -> None:
    table = golden_copy("merge", tmp_path)
    leave(table)
    other = golden_copy("checkpoint_v1", tmp_path)
    donor = next(path for path in sorted(other.glob("_delta_log/*.json")) if b"SET TBLPROPERTIES" in path.read_bytes())
    rewritten(donor, readVersion=0)
    shutil.copyfile(donor, table / COMMIT.format(1))
    done, _ = swept(table, SweepMode.DELETE)
    assert done.outcome is Outcome.REFUSED and "it is of table" in done.reason


@pytest.mark.parametrize(
    ("name", "version"), [("checkpoint_v2_parquet", 4), ("partition_paths", 2)], ids=["after a checkpoint", "alone"]
)
def test_a_commit_that_removes_files_of_another_table_is_no_evidence(name: str, version: int, tmp_path: Path) -> None:
    """It adds no file, as it says, was begun on the version before, and changes no metadata."""
    table = golden_copy(name, tmp_path)
    left = leave(table)
    for path in table.glob("_delta_log/*.crc"):
        path.unlink()
    other = golden_copy("vectors", tmp_path)
    donor = next(
        path for path in sorted(other.glob("_delta_log/*.json")) if b'"numAddedFiles":"0"' in path.read_bytes()
    )
    lines = [line for line in donor.read_text().splitlines() if '"add"' not in line]
    assert any('"remove"' in line for line in lines)
    donor.write_text("\n".join(lines))
    rewritten(donor, readVersion=version - 1, operationMetrics={"numAddedFiles": "0", "numDeletionVectorsAdded": "0"})
    shutil.copyfile(donor, table / COMMIT.format(version))
    done, _ = swept(table, SweepMode.DELETE)
    assert done.outcome is Outcome.REFUSED and "files that it removes" in done.reason
    assert all((table / each).exists() for each in left)


@pytest.mark.parametrize(("early_ms", "evident"), [(59_000, True), (61_000, False)])
def test_a_commit_that_is_older_than_the_one_before_it_is_no_evidence(
    early_ms: int, evident: bool, tmp_path: Path
) -> None:
    """Clocks of writers differ by less. It may be another table's, whose operation adds no file."""
    table = golden_copy("vectors", tmp_path)
    leave(table)
    path = table / COMMIT.format(2)
    before = json.loads((table / COMMIT.format(1)).read_text().splitlines()[0])["commitInfo"]["timestamp"]
    rewritten(path, timestamp=before - early_ms)
    done, _ = swept(table, SweepMode.DELETE)
    assert (done.outcome is Outcome.VERIFIED) is evident and ("it was made at" in str(done.reason)) is not evident


def test_a_remove_of_a_file_that_is_gone_is_no_evidence(tmp_path: Path) -> None:
    """Of a file of the checkpoint, which an earlier commit removed."""
    table = golden_copy("checkpoint_v2_parquet", tmp_path)
    leave(table)
    log = table / "_delta_log"
    live = {file.name for unit in opened(table).snapshot().units for file in unit.files}
    sidecars = [pq.read_table(path, columns=["add"]) for path in sorted((log / "_sidecars").glob("*.parquet"))]
    added = [row["add"]["path"] for sidecar in sidecars for row in sidecar.to_pylist() if row["add"] is not None]
    path = next(each for each in added if each in live)
    for number in (5, 6):
        told = {"operation": "DELETE", "readVersion": number - 1, "operationMetrics": {"numAddedFiles": "0"}}
        gone = {"path": path, "dataChange": True, "deletionTimestamp": later_ms()}
        lines = ({"commitInfo": {**told, "txnId": f"of {number}"}}, {"remove": gone})
        (table / COMMIT.format(number)).write_text("".join(json.dumps(line) + "\n" for line in lines))
        done, _ = swept(table, SweepMode.DRY_RUN)
        assert ("files that it removes" in done.reason) is (number == 6)


@pytest.mark.parametrize("checksums", [False, True])
def test_commits_that_report_no_metrics_need_a_checksum(checksums: bool, tmp_path: Path) -> None:
    """As those of Trino."""
    table = golden_copy("optimize", tmp_path)
    left = leave(table)
    for path in sorted((table / "_delta_log").glob("*.json")):
        rewritten(path, operationMetrics=None)
    for path in () if checksums else sorted((table / "_delta_log").glob("*.crc")):
        path.unlink()

    dry, orphans = swept(table)
    done, _ = swept(table, SweepMode.DELETE)

    assert left <= orphans and dry.outcome is Outcome.SKIPPED
    assert ("deleting would be refused" in dry.reason) is not checksums
    assert done.outcome is (Outcome.VERIFIED if checksums else Outcome.REFUSED)
    assert all((table / each).exists() is not checksums for each in left)
    if not checksums:
        assert swept(table, SweepMode.QUARANTINE)[0].outcome is Outcome.VERIFIED


@pytest.mark.parametrize("operation", [{"a": 1}, ["WRITE"], 7])
def test_an_operation_that_is_no_text_is_no_evidence(operation: object, tmp_path: Path) -> None:
    table = golden_copy("partition_paths", tmp_path)
    leave(table)
    rewritten(table / COMMIT.format(1), operation=operation, operationMetrics=None)
    done, _ = swept(table, SweepMode.DELETE)
    assert done.outcome is Outcome.REFUSED and "does not state how many files it adds" in done.reason


@pytest.mark.parametrize("told", [{"numFiles": 7}, {"tableSizeBytes": 1}, {"txnId": "another"}])
def test_a_checksum_that_contradicts_ends_the_sweep(told: dict[str, object], tmp_path: Path) -> None:
    table = golden_copy("optimize", tmp_path)
    newest = max((table / "_delta_log").glob("*.crc"))
    newest.write_text(json.dumps({**json.loads(newest.read_text()), **told}))
    with pytest.raises(EvidenceError):
        swept(table)


def test_trino_creates_a_table_on_the_version_it_creates(tmp_path: Path) -> None:
    table = golden_copy("partition_paths", tmp_path)
    for path in table.glob("_delta_log/*.crc"):
        path.unlink()
    rewritten(table / COMMIT.format(0), readVersion=0, engineInfo="Trino 476")
    done, _ = swept(table)
    assert done.outcome in (Outcome.SKIPPED, Outcome.UNCHANGED), done.reason
    rewritten(table / COMMIT.format(0), readVersion=0, engineInfo="another")
    with pytest.raises(EvidenceError, match="a commit on a version before 0"):
        swept(table)


@pytest.mark.slow
@pytest.mark.parametrize("count", some_extended([50, 100], keep=1))
def test_no_damage_makes_a_live_file_an_orphan(tmp_path: Path, count: int) -> None:
    found = fuzz(delta_worlds(tmp_path), count=count)
    assert not found.failures and not found.surprises, str(found)
    assert found.endings["named the orphans"] and found.endings["stopped: CorruptMetadata"]
