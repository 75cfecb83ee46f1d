"""The command from its arguments to its answer: one document on stdout, slips on stderr, and what the status says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.drivers.memory_engine import MemoryEngine
from tests.support.commands import Said, said
from tests.support.extended import some_extended

from nightkeep.groups import one_operation
from nightkeep.model import Clustering, Curve, Operation, VerifyLevel, Writers
from nightkeep.policy import EffectivePolicy
from nightkeep.running.rewrites import run_operation
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline

DAYS = ("2026-11-01", "2026-11-02")
POLICY = """\
version: 1
defaults:
  where: day = '2026-11-02'
  full: true
  clustering: {hilbert: [note], range_ids: 64, noise: true}
"""


class Shell:
    """A table in memory that addresses can name, a policy beside it, and tasks in this process."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.engine, self.folder, self._capture = MemoryEngine(str(folder)), folder, capture
        for day in DAYS:
            self.engine.append(day, range(50))
            self.engine.append(day, range(50, 90))
        self.table = f"memory:{folder}"
        (folder / "tables.yaml").write_text(POLICY)

    def call(self, *arguments: str, policy: bool = False) -> Said:
        named = ["--policy", str(self.folder / "tables.yaml")] if policy else []
        return said(self._capture, *arguments, "--reports", str(self.folder / "reports"), *named)


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr("nightkeep.policy.address.FORMATS", ("paimon", "delta", "iceberg", "memory"))
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    monkeypatch.chdir(tmp_path / "..")
    for name in ("NIGHTKEEP_POLICY", "NIGHTKEEP_REPORTS"):
        monkeypatch.delenv(name, raising=False)
    return Shell(tmp_path, capsys)


@pytest.fixture
def policies(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> list[EffectivePolicy]:
    """The policy of every table that is maintained from here on."""
    found: list[EffectivePolicy] = []
    real = one_operation.carry_out

    def noted(policy: EffectivePolicy, *arguments: Any) -> Any:
        found.append(policy)
        return real(policy, *arguments)

    monkeypatch.setattr(run_operation, "carry_out", noted)
    monkeypatch.setattr(one_operation, "carry_out", noted)
    return found


def partitions(document: dict[str, Any]) -> Sequence[str]:
    return sorted(unit["partition"] for unit in document["plan"]["units"])


def test_a_plan_changes_nothing_and_states_how_rows_will_lie(shell: Shell) -> None:
    before = dict(shell.engine.store.files)
    said = shell.call("plan", shell.table, "--zorder", "id, note")
    assert (said.status, said.err) == (0, "")
    assert said.out.startswith(f"{shell.table}: optimize of version 5, z-order by id, note, 2 units\n")
    assert dict(shell.engine.store.files) == before


@pytest.mark.slow
def test_a_run_prints_one_document(shell: Shell) -> None:
    said = shell.call("run", shell.table, "--hilbert", "id,note", "--no-check", "--json")
    assert said.status == 0
    assert (said.json["outcome"], said.json["committed_version"]) == ("verified", 6)
    # Nobody is to wait for a check that was not wanted.
    assert said.json["expectations"]["status"] == "skipped"
    assert said.json["expectations"]["reason"] == "left out by --no-check"
    assert said.json["plan"]["clustering"] == {
        "columns": ["id", "note"],
        "curve": "hilbert",
        "range_ids": 1000,
        "noise": False,
        "order": None,
    }


OPTIONS = (
    "--target-size",
    "1MB",
    "--min-file-size",
    "2KB",
    "--max-deleted-ratio",
    "0.5",
    "--allow-compacting-writers",
    "--writers",
    "conditional",
)


@pytest.mark.slow
@pytest.mark.parametrize("verb", some_extended(["plan", "run"], keep=1))
def test_options_stand_above_the_policy(shell: Shell, policies: list[EffectivePolicy], verb: str) -> None:
    more = ["--no-check", "--verify", "touched", "--task-memory", "1GB"] if verb == "run" else []
    assert shell.call(verb, shell.table, "--zorder", "id", *OPTIONS, *more, policy=True).status == 0
    (found,) = (policy.settings for policy in policies)
    assert found.clustering == Clustering(("id",), Curve.Z, 64, noise=True)
    assert (found.target_size, found.min_file_size, found.max_deleted_ratio) == (1 << 20, 2048, 0.5)
    assert found.allow_compacting_writers and found.writers is Writers.CONDITIONAL
    assert (found.where, found.full) == ("day = '2026-11-02'", True)
    if verb == "run":
        assert (found.verify, found.task_memory) == (VerifyLevel.TOUCHED, 1 << 30)


class TestSql:
    @pytest.mark.extended
    @pytest.mark.slow
    def test_a_statement_is_run(self, shell: Shell) -> None:
        said = shell.call("sql", f"OPTIMIZE '{shell.table}' WHERE day = '{DAYS[0]}'", "--no-check", "--json")
        assert (said.status, said.json["operation"], said.json["outcome"]) == (0, "optimize", "verified")
        assert partitions(said.json) == [f"day={DAYS[0]}"]
        assert said.json["plan"]["clustering"] is None

    @pytest.mark.extended
    @pytest.mark.slow
    def test_what_it_does_not_state_is_not_asked_whatever_the_policy_states(
        self, shell: Shell, policies: list[EffectivePolicy]
    ) -> None:
        said = shell.call("sql", f"OPTIMIZE '{shell.table}'", "--no-check", "--json", policy=True)
        assert partitions(said.json) == [f"day={day}" for day in DAYS]
        (found,) = (policy.settings for policy in policies)
        assert (found.where, found.full, found.clustering) == (None, False, None)

    @pytest.mark.extended
    @pytest.mark.slow
    def test_columns_are_laid_along_z_with_the_policys_fineness(
        self, shell: Shell, policies: list[EffectivePolicy]
    ) -> None:
        statement = f"OPTIMIZE '{shell.table}' FULL ZORDER BY (note, id)"
        assert shell.call("sql", statement, "--no-check", *OPTIONS, policy=True).status == 0
        assert shell.call("sql", statement, "--no-check").status == 0
        beside, alone = (policy.settings for policy in policies)
        assert beside.clustering == Clustering(("note", "id"), Curve.Z, 64, noise=True)
        assert alone.clustering == Clustering(("note", "id"), Curve.Z)
        assert beside.full
        assert (beside.target_size, beside.min_file_size, beside.max_deleted_ratio) == (1 << 20, 2048, 0.5)

    def test_a_slip_is_one_line_on_stderr(self, shell: Shell) -> None:
        said = shell.call("sql", "OPTIMIZE t ZORDER (a)", "--json")
        assert (said.status, said.out) == (2, "")
        assert said.err == "nightkeep: statement, line 1, column 19: expected BY after ZORDER, found (\n"

    def test_a_name_that_nobody_listed_is_a_slip(self, shell: Shell) -> None:
        said = shell.call("sql", "OPTIMIZE shop.events")
        assert said.status == 2
        assert "shop.events: expected a name of tables.yaml or an address" in said.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--zorder", "a", "--hilbert", "b"], "--zorder and --hilbert: expected one of the two"),
        (["--zorder", "a", "--operation", "upgrade"], "--zorder: expected operation optimize, found upgrade"),
        (["--target-size", "3"], "--target-size: expected a size with its unit"),
        (["--min-file-size", "x"], "--min-file-size: expected a size with its unit"),
        (["--max-deleted-ratio", "2"], "--max-deleted-ratio: expected a share from 0 to 1, found 2.0"),
    ],
)
@pytest.mark.parametrize("verb", ["plan", "run"])
def test_slips_in_options_are_reported_before_anything_is_done(
    shell: Shell, verb: str, options: list[str], message: str
) -> None:
    before = dict(shell.engine.store.files)
    said = shell.call(verb, shell.table, *options)
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith(f"nightkeep: {message}")
    assert dict(shell.engine.store.files) == before


def test_an_operation_of_other_formats_is_refused(shell: Shell) -> None:
    said = shell.call("run", shell.table, "--operation", Operation.UPGRADE, "--json")
    assert (said.status, said.json["outcome"]) == (3, "refused")
    assert said.json["reason"].startswith("operation upgrade does not exist for memory tables")


@pytest.mark.extended
@pytest.mark.slow
def test_several_operations_are_a_list_and_the_worst_is_the_status(shell: Shell) -> None:
    both = ["--operation", "optimize", "--operation", "upgrade"]
    said = shell.call("run", shell.table, *both, "--no-check", "--json")
    assert said.status == 3
    assert [document["outcome"] for document in said.json] == ["verified", "refused"]


def test_a_report_of_a_folder_that_is_not_there_makes_none(shell: Shell) -> None:
    said = shell.call("report")
    folder = shell.folder / "reports"
    assert (said.status, said.out, said.err) == (
        2,
        "",
        f"nightkeep: {folder}: expected a folder of reports, found none\n",
    )
    assert not folder.exists()
