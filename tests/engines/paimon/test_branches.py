"""Branches of a table, named `URI$branch_NAME`: care for one changes nothing that readers of another see."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import MERGE_ON_READ, Layout, Scan, Writer
from tests.formats.paimon.contents import opened
from tests.formats.paimon.keeping import aged, expired, orphans, swept
from tests.formats.paimon.upgrade import upgrade
from tests.support.extended import some_extended

import nightkeep
from nightkeep.checking.check import check
from nightkeep.errors import AddressError, RefusedTable
from nightkeep.formats.paimon.format import open_table
from nightkeep.formats.paimon.metadata.branch import location_and_branch
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.records.document import CheckStatus
from nightkeep.retention.orphans.sweep_request import SweepOrder
from nightkeep.stages import verify as proof

COLUMNS = [("id", "INT NOT NULL"), ("day", "STRING NOT NULL"), ("text", "STRING")]
KEYED = {"bucket": "1", "write-only": "true", "snapshot.num-retained.min": "1", "snapshot.time-retained": "0 ms"}
KINDS: Sequence[tuple[tuple[str, ...], dict[str, str], Operation]] = (
    (("id", "day"), {**KEYED, "deletion-vectors.enabled": "true"}, Operation.UPGRADE),
    (("id", "day"), {**KEYED, "num-sorted-run.compaction-trigger": "2"}, Operation.OPTIMIZE),
    ((), {**KEYED, "bucket": "-1", "compaction.min.file-num": "2"}, Operation.OPTIMIZE),
)


class Branched:
    """A table with a branch `dev`, of a tag. Java knows a branch by its folder, we by the name of its table."""

    def __init__(self, java: PaimonJava, table: Path, kind: int) -> None:
        self.java, self.table, self.dev = java, table, Path(f"{table}$branch_dev")
        keys, options, self.operation = KINDS[kind]
        java.create(table, Layout(COLUMNS, keys, ["day"], options))
        for _ in range(2):
            self.write(table, range(20), "first")
        java.create_tag(table, "t", snapshot=2)
        java.create_branch(table, "dev", tag="t")

    def place(self, name: Path) -> Path:
        return self.table if name == self.table else self.table / "branch/branch-dev"

    def write(self, name: Path, keys: Sequence[int], text: str) -> None:
        rows = [("+I", key, f"2026-11-0{1 + key % 2}", text) for key in keys]
        self.java.write(self.place(name), rows, Writer(user="writer"))

    def rows(self, name: Path) -> list[Any]:
        return sorted(self.java.read(self.place(name), Scan(options=MERGE_ON_READ)).rows)

    def shown(self, name: Path) -> list[Any]:
        return sorted(self.java.read(self.place(name)).rows)

    def care(self, name: Path, **settings: Any) -> Any:
        return upgrade(name, operation=self.operation, **settings)


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_branch_is_maintained_by_its_name(
    paimon_java: PaimonJava, spark: SparkSession, tmp_path: Path, kind: int
) -> None:
    made = Branched(paimon_java, tmp_path / "table", kind)
    for _ in range(2):
        made.write(made.dev, range(5, 12), "of the branch")
    main, dev, on_main = made.rows(made.table), made.rows(made.dev), opened(made.table).snapshot().version
    document = made.care(made.dev, full=kind == 1)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert (made.rows(made.table), made.shown(made.dev)) == (main, dev)
    assert opened(made.table).snapshot().version == on_main
    assert (made.place(made.dev) / f"snapshot/snapshot-{document.committed_version}").exists()
    report = check(CheckRequest(Address("paimon", str(made.dev), "t")), spark=spark)
    assert report.status is CheckStatus.PASSED, report
    made.write(made.dev, range(3), "after")
    assert made.care(made.table, full=kind == 1).outcome is Outcome.VERIFIED
    assert made.shown(made.table) == main
    assert orphans(made.table) == []


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", some_extended(range(12), keep=3))
def test_random_care_of_branches(paimon_java: PaimonJava, tmp_path: Path, seed: int) -> None:
    """Main's expiry and sweeps keep what the branch needs; care of either changes neither's rows."""
    chance = random.Random(seed)
    made = Branched(paimon_java, tmp_path / "table", seed % 3)
    done: list[str] = []
    for _ in range(12):
        name = chance.choice((made.table, made.dev))
        before = {each: made.rows(each) for each in (made.table, made.dev)}
        act = chance.choice(("write", "write", "care", "care", "care", "sweep", "expire", "java"))
        done.append(f"{act} {name.name}")
        if act == "write":
            made.write(name, chance.sample(range(40), 10), f"at {len(done)}")
            before[name] = made.rows(name)
        elif act == "care":
            outcome = made.care(name, full=chance.random() < 0.4).outcome
            assert outcome in (Outcome.VERIFIED, Outcome.UNCHANGED), done
        elif act == "java":
            paimon_java.expire(made.table, retain_max=1)
        elif act == "expire":
            expired(made.table)
        else:
            aged(made.table)
            swept(made.table, SweepOrder(SweepMode.DELETE))
        assert {each: made.rows(each) for each in before} == before, done
    assert made.care(made.dev).outcome in (Outcome.VERIFIED, Outcome.UNCHANGED)


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_run_of_a_branch_takes_no_commit_of_main(paimon_java: PaimonJava, tmp_path: Path, kind: int) -> None:
    """The branch begins with main's commit of a run with the same id, which is not the branch's run."""
    made = Branched(paimon_java, tmp_path / "table", kind)
    on_main = made.care(made.table, full=kind == 1, run_id="night")
    assert on_main.outcome is Outcome.VERIFIED, on_main.reason
    paimon_java.create_tag(made.table, "late", snapshot=on_main.committed_version)
    paimon_java.create_branch(made.table, "late", tag="late")
    late = Path(f"{made.table}$branch_late")
    found = made.care(late, run_id="night")
    assert (found.outcome, found.commits) == (Outcome.UNCHANGED, ())
    retried = made.care(made.table, full=kind == 1, run_id="night")
    assert retried.committed_version == on_main.committed_version


def test_a_branch_is_not_swept_on_its_own(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = Branched(paimon_java, tmp_path / "table", 0)
    there = sorted(path for path in made.table.rglob("*"))
    for act in (swept, expired):
        with pytest.raises(RefusedTable, match="branch dev is not swept, expired or restored on its own"):
            act(made.dev)
    files = open_table(Address("paimon", str(made.dev), "t")).retention
    assert files is not None
    with pytest.raises(RefusedTable, match="branch dev"):
        files.table_files()
    assert sorted(path for path in made.table.rglob("*")) == there


def test_what_a_killed_run_left_on_a_branch_is_swept_with_the_table(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = Branched(paimon_java, tmp_path / "table", 0)
    before = made.rows(made.dev)

    def killed(*values: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nightkeep.running.rewrites.run_operation.verify", killed)
        with pytest.raises(KeyboardInterrupt):
            made.care(made.dev, run_id="night")
    left = orphans_of_any_age(made)
    assert any(name.startswith("branch/branch-dev/snapshot/staged-") for name in left)
    assert made.care(made.dev, run_id="night").outcome is Outcome.VERIFIED
    assert swept(made.table, SweepOrder(SweepMode.DELETE))[0].outcome is Outcome.VERIFIED
    assert not any((made.table / name).exists() for name in left)
    assert made.shown(made.dev) == before


def test_a_commit_of_another_writer_to_the_branch_is_seen(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = Branched(paimon_java, tmp_path / "table", 0)
    verify = proof.verify

    def late(*values: Any, **options: Any) -> Any:
        checked = verify(*values, **options)
        made.write(made.dev, range(30, 35), "late")
        return checked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nightkeep.running.rewrites.run_operation.verify", late)
        document = made.care(made.dev)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert document.committed_version == document.base_version + 2
    assert len(made.rows(made.dev)) == 25
    assert opened(made.table).snapshot().version == 2


def test_one_run_id_on_the_table_and_its_branch_is_two_runs(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = Branched(paimon_java, tmp_path / "table", 0)
    before = made.rows(made.table)
    for name in (made.table, made.dev, made.table, made.dev):
        assert made.care(name, run_id="night").outcome is Outcome.VERIFIED
    assert made.shown(made.table) == made.shown(made.dev) == before


def test_a_branch_without_versions_has_nothing_to_do(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = Branched(paimon_java, tmp_path / "table", 0)
    paimon_java.create_branch(made.table, "empty")
    assert upgrade(Path(f"{made.table}$branch_empty")).outcome is Outcome.UNCHANGED


def test_a_branch_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AddressError, match="expected a branch dev of the table"):
        open_table(Address("paimon", f"{tmp_path}$branch_dev", "t"))


@pytest.mark.parametrize("name", ["", " ", ".", "..", "a\\b", "12"])
def test_names_that_no_branch_has_are_refused(name: str) -> None:
    with pytest.raises(AddressError, match="expected the name of a branch"):
        location_and_branch(f"/tables/t$branch_{name}")


def test_the_main_branch_is_the_table() -> None:
    assert location_and_branch("/tables/t$branch_main") == ("/tables/t", "main")
    assert location_and_branch("s3://b/t") == ("s3://b/t", "main")
    assert location_and_branch("s3://b/t$branch_a b") == ("s3://b/t", "a b")


def orphans_of_any_age(made: Branched) -> list[str]:
    aged(made.table)
    return orphans(made.table)


def test_a_branch_is_read_by_its_name(paimon_java: PaimonJava, tmp_path: Path) -> None:
    made = Branched(paimon_java, tmp_path / "table", 2)
    made.write(made.dev, range(50, 60), "of the branch")
    for name in (made.table, made.dev):
        read = nightkeep.read(f"paimon:{name}").read_all()
        assert sorted(zip(*(read.column(i).to_pylist() for i in range(3)), strict=True)) == made.rows(name)


def test_an_option_that_names_another_branch_is_refused(paimon_java: PaimonJava, tmp_path: Path) -> None:
    """Java's readers of the table would get that branch."""
    made = Branched(paimon_java, tmp_path / "table", 0)
    for folder in (made.table, made.place(made.dev)):
        path = folder / "schema/schema-0"
        document = json.loads(path.read_text())
        path.write_text(json.dumps(document | {"options": document["options"] | {"branch": "dev"}}))
    refused = made.care(made.table)
    assert refused.outcome is Outcome.REFUSED
    assert "option branch = dev" in refused.reason and "$branch_dev" in refused.reason
    assert made.care(made.dev).outcome is Outcome.VERIFIED
