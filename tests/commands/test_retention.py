"""nightkeep sweep, restore and expire from arguments to answers; what each of them must not start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.commands import Said, said

from nightkeep.commands.app import main
from nightkeep.commands.job import sweep_job

ROOT = Path(__file__).parents[2]
OLD = "part-00000-left-over.c000.snappy.parquet"
HEAVY = ("pyspark", "great_expectations")


class Shell:
    """One Delta table with an old file that nobody needs."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capture = folder, capture
        shutil.copytree(ROOT / "samples/delta/shop.db/clicks", folder / "clicks")
        self.old = folder / "clicks" / OLD
        self.old.write_bytes(b"left over")
        os.utime(self.old, (time.time() - 40 * 24 * 60 * 60,) * 2)
        self.table = f"delta:{folder}/clicks"

    def call(self, *arguments: str) -> Said:
        return said(self._capture, *arguments, "--reports", str(self.folder / "reports"))


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    for name in ("NIGHTKEEP_POLICY", "NIGHTKEEP_REPORTS"):
        monkeypatch.delenv(name, raising=False)
    return Shell(tmp_path, capsys)


def test_a_sweep_only_reports_unless_asked_otherwise(shell: Shell) -> None:
    said = shell.call("sweep", shell.table, "--json")
    assert (said.status, said.json["outcome"], said.json["mode"]) == (0, "skipped", "dry-run")
    assert [orphan["path"] for orphan in said.json["orphans"]] == [str(shell.old)]
    assert shell.old.exists()


def test_people_read_kinds_ages_and_what_comes_next(shell: Shell) -> None:
    said = shell.call("sweep", shell.table)
    assert "kind  files  bytes\ndata      1      9\n" in said.out
    assert "age            files  bytes\n30 to 90 days      1      9\n" in said.out
    assert f"to quarantine them: nightkeep sweep {shell.table} --quarantine" in said.out
    assert "modified before " in said.out


def test_what_is_quarantined_comes_back(shell: Shell) -> None:
    said = shell.call("sweep", shell.table, "--quarantine", "--run-id", "r 1", "--no-check")
    assert (said.status, shell.old.exists()) == (0, False)
    assert f"to restore: nightkeep restore {shell.table} 'r 1'" in said.out
    back = shell.call("restore", shell.table, "r 1", "--json")
    assert (back.status, back.json["outcome"], shell.old.read_bytes()) == (0, "verified", b"left over")


def test_the_last_run_that_moved_files_is_named_by_last(shell: Shell) -> None:
    assert shell.call("sweep", shell.table, "--quarantine", "--run-id", "r 1", "--no-check").status == 0
    assert f"to restore: nightkeep restore {shell.table} 'r 1'" in shell.call("history").out
    # A run that moved nothing is none of those.
    assert shell.call("sweep", shell.table, "--quarantine", "--run-id", "r 2", "--no-check").status == 0
    back = shell.call("restore", shell.table, "--last", "--json")
    assert (back.status, back.json["run_id"], shell.old.read_bytes()) == (0, "r 1", b"left over")


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_an_expiry_only_lists_unless_asked_to_act(shell: Shell, options: tuple[str, ...]) -> None:
    said = shell.call("expire", shell.table, *options, "--json")
    assert (said.status, said.json["operation"], said.json["mode"]) == (0, "expire", "dry-run")


def test_a_sweep_that_would_take_too_much_is_refused(shell: Shell) -> None:
    for number in range(150):
        path = shell.old.with_name(f"part-{number:05d}-more.c000.snappy.parquet")
        path.write_bytes(b"more")
        os.utime(path, (time.time() - 40 * 24 * 60 * 60,) * 2)
    said = shell.call("sweep", shell.table, "--delete", "--no-check", "--json")
    assert (said.status, said.json["outcome"], shell.old.exists()) == (3, "refused", True)
    assert shell.call("sweep", shell.table, "--delete", "--no-check", "--max-share", "1").status == 0
    assert not shell.old.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sweep", "--delete", "--quarantine"], "--delete and --quarantine: expected one of the two, found both"),
        (["sweep", "--older-than", "7"], "--older-than: expected a duration with its unit, such as 7d, 36h or 90m"),
        (["sweep", "--older-than", "36h"], "expected at least 168 h"),
        (["sweep", "--max-share", "2"], "--max-share: expected a share from 0 to 1, found 2.0"),
        (["expire", "--dry-run", "--quarantine"], "--dry-run and --quarantine: expected one of the two, found both"),
        (["expire", "--dry-run", "--delete"], "--dry-run and --delete: expected one of the two, found both"),
        (["expire", "--delete", "--quarantine"], "--delete and --quarantine: expected one of the two, found both"),
        (["restore", "nobody"], "nothing of run nobody is in quarantine"),
        (["restore"], "RUN_ID and --last: expected one of the two, found none"),
        (["restore", "nobody", "--last"], "RUN_ID and --last: expected one of the two, found both"),
        (["restore", "--last"], "--last: expected a run that moved files to quarantine of delta:"),
        (["diff"], "--version, --other and --last: expected both versions, or --last alone"),
        (["diff", "--version", "1"], "--version, --other and --last: expected both versions, or --last alone"),
        (["diff", "--version", "1", "--last"], "expected both versions, or --last alone"),
        (["diff", "--last"], "--last: expected a run that published a version of delta:"),
        (["run", "--operation", "sweep"], "--operation: expected one of upgrade, persist-deletes, optimize, found"),
        (["run", "--operation", "compact"], "expected one of upgrade, persist-deletes, optimize, found 'compact'"),
        (["plan", "--operation", "expire"], "which is a command of its own: nightkeep expire"),
        (["plan", "--operation", "delete"], "which is a command of its own: nightkeep delete"),
        (["plan", "--operation", "update"], "which is a command of its own: nightkeep update"),
    ],
)
def test_slips_are_one_line_and_touch_nothing(shell: Shell, arguments: list[str], message: str) -> None:
    verb, *options = arguments
    said = shell.call(verb, shell.table, *options)
    assert (said.status, said.out) == (2, "")
    assert message in said.err
    assert shell.old.exists()


def test_a_policy_cannot_ask_for_a_sweep_as_a_nightly_operation(shell: Shell) -> None:
    policy = shell.folder / "tables.yaml"
    policy.write_text("version: 1\ndefaults: {operations: [sweep]}\n")
    said = shell.call("sweep", shell.table, "--policy", str(policy))
    assert said.status == 2
    assert "operations" in said.err
    assert "'upgrade', 'persist-deletes', 'optimize' or 'audit'" in said.err


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("verb", ["sweep", "expire --dry-run", "sweep --quarantine --no-check"])
def test_neither_spark_nor_great_expectations_is_loaded(shell: Shell, verb: str) -> None:
    script = (
        "import sys; from nightkeep.commands.app import main\n"
        "try: main(sys.argv[1:])\n"
        f"except SystemExit as ended: print(ended.code, [m for m in {HEAVY} if m in sys.modules])"
    )
    name, *options = verb.split()
    ran = subprocess.run(
        [sys.executable, "-c", script, name, shell.table, *options, "--reports", str(shell.folder / "reports")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == "0 []"


class TestJob:
    def arguments(self, shell: Shell, *more: str) -> list[str]:
        text = "version: 1\ndefaults: {check: {enabled: false}, sweep: {mode: delete}}\ntables:\n"
        text += f"  - {{name: clicks, table: '{shell.table}', expire: {{enabled: true}}}}\n"
        (shell.folder / "tables.yaml").write_text(text)
        names = {"policy": "tables.yaml", "reports": "reports", "result": "result.json"}
        paths = [part for name, file in names.items() for part in (f"--{name}", str(shell.folder / file))]
        return [*paths, "--tables", "clicks", "--run-id-prefix", "weekly", *more]

    @pytest.mark.slow
    def test_writes_a_result_for_each_operation(self, shell: Shell) -> None:
        assert sweep_job(self.arguments(shell)) == 0
        entries = json.loads((shell.folder / "result.json").read_text())
        assert [(entry["table"], entry["operation"], entry["outcome"]) for entry in entries] == [
            ("clicks", "expire", "unchanged"),
            ("clicks", "sweep", "verified"),
        ]
        assert not shell.old.exists()

    @pytest.mark.slow
    def test_expires_versions_where_the_command_only_lists_them(self, shell: Shell) -> None:
        """The weekly DAG starts this job. It asks for the removal by itself."""
        table = shell.folder / "clicks"
        shutil.rmtree(table)
        shutil.copytree(ROOT / "samples/paimon/shop.db/events_raw", table)
        shell.table = f"paimon:{table}"
        before = {path.name for path in table.glob("snapshot/snapshot-*")}
        listed = shell.call("expire", shell.table)
        assert {path.name for path in table.glob("snapshot/snapshot-*")} == before
        assert f"to expire them: nightkeep expire {shell.table} --delete" in listed.out
        assert sweep_job(self.arguments(shell)) == 0
        (path,) = shell.folder.glob("reports/clicks/*-expire.json")
        document = json.loads(path.read_text())
        assert (document["outcome"], document["mode"]) == ("verified", "delete")
        gone = before - {path.name for path in table.glob("snapshot/snapshot-*")}
        assert gone == {f"snapshot-{number}" for number in document["expired"]} != set()

    @pytest.mark.slow
    def test_only_reports_on_request(self, shell: Shell) -> None:
        assert sweep_job(self.arguments(shell, "--dry-run")) == 0
        assert shell.old.exists()

    def test_knows_no_options_of_a_rewrite(self, shell: Shell) -> None:
        with pytest.raises(SystemExit):
            sweep_job(self.arguments(shell, "--zorder", "id"))

    def test_is_what_the_script_runs(self) -> None:
        text = (ROOT / "jobs/sweep_orphans.py").read_text(encoding="utf-8")
        assert "sys.exit(one_line(lambda: sweep_job(sys.argv[1:])))" in text


def test_a_document_of_a_sweep_that_failed_has_every_key_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "_delta_log" / f"{0:020}.json").write_text("{")
    with pytest.raises(SystemExit) as ended:
        main(["sweep", f"delta:{tmp_path}/t", "--reports", str(tmp_path / "reports"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (ended.value.code, told["outcome"], told["mode"]) == (1, "failed", "dry-run")
    promised = {"orphans", "orphans_total", "orphans_bytes", "orphans_file", "live_files", "young_files"}
    assert promised <= told.keys() and told["orphans"] == []


def created(shell: Shell) -> Path:
    """A Paimon table of which there is a schema and nothing else."""
    sample = ROOT / "samples/paimon/shop.db/customers"
    shutil.copytree(sample / "schema", shell.folder / "customers/schema")
    return shell.folder / "customers"


@pytest.mark.parametrize("verb", ["sweep", "sweep --delete", "expire", "expire --dry-run", "plan", "run"])
def test_a_table_that_was_never_written_to_is_left_as_it_is(shell: Shell, verb: str) -> None:
    table = created(shell)
    name, *options = verb.split()
    said = shell.call(name, f"paimon:{table}", *options, "--json")
    assert (said.status, said.json["outcome"], said.json["reason"]) == (
        0,
        "unchanged",
        "nothing was ever written to it",
    )
    if name == "expire":
        assert [said.json[key] for key in ("expired", "kept")] == [[], []]
    assert {path.parent.name for path in table.rglob("*") if path.is_file()} == {"schema"}


@pytest.mark.parametrize("verb", ["sweep --delete", "expire", "plan"])
def test_a_table_that_lost_its_versions_is_no_new_one(shell: Shell, verb: str) -> None:
    table = created(shell)
    left = table / "bucket-0/data-8f0e1d2c-3b4a-4958-8776-655443322110-0.parquet"
    left.parent.mkdir()
    left.write_bytes(b"PAR1")
    os.utime(left, (time.time() - 40 * 24 * 60 * 60,) * 2)
    name, *options = verb.split()
    said = shell.call(name, f"paimon:{table}", *options, "--json")
    assert (said.status, said.json["outcome"], left.exists()) == (1, "failed", True)
    assert "expected snapshot-1 or a newer one" in said.json["reason"]
