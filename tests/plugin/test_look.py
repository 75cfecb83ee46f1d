"""The look before Spark: what it leaves for sessions, whatever becomes of its processes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nightkeep.model import Outcome
from nightkeep_airflow.look import LookOperator, batched
from nightkeep_airflow.releases import AirflowFailException

JOB = """
import json, pathlib, sys
from nightkeep.places import write_file
from nightkeep.records.job_result import JobEnd, note_end
words = sys.argv[1:]
given = {word: words[n + 1] for n, word in enumerate(words) if word.startswith("--") and n + 1 < len(words)}
assert "--without-session" in words
script = json.loads(pathlib.Path(__file__).with_name("script.json").read_text())
entries = []
for table in given["--tables"].split(","):
    said = script[table]
    if said == "dies":
        write_file(given["--result"], json.dumps(entries))
        sys.exit(9)
    if said == "usage":
        note_end(given["--result"], JobEnd(2, "tables.yaml:1: expected another"))
        sys.exit(2)
    if said != "left":
        outcome, _, permanent = said.partition(" ")
        entries.append({"table": table, "operation": "optimize", "outcome": outcome, "permanent": bool(permanent)})
write_file(given["--result"], json.dumps(entries))
"""


def look(folder: Path, groups: list[list[str]], **script: str) -> tuple[list[list[str]], dict[str, str]]:
    """The groups that are left, and the outcomes that are passed on."""
    (folder / "care.py").write_text(JOB)
    (folder / "script.json").write_text(json.dumps(script))
    tables = "".join(f"- {{name: {name}, table: 'delta:/{name}'}}\n" for name in script)
    (folder / "tables.yaml").write_text(f"version: 1\ntables:\n{tables}")
    pushed = dict[str, Any]()
    ti = SimpleNamespace(
        try_number=1, max_tries=0, map_index=-1, xcom_push=lambda key, value: pushed.update({key: value})
    )
    operator = LookOperator(
        task_id="look", groups=groups, jobs=str(folder), policy=str(folder / "tables.yaml"), reports=str(folder)
    )
    left = operator.execute({"dag_run": SimpleNamespace(dag_id="nightly", run_id="manual"), "ti": ti})  # type: ignore[typeddict-item]
    return left, {entry["table"]: entry["outcome"] for entry in pushed["entries"]}


@pytest.mark.slow
def test_what_needs_no_session_ends_and_the_rest_shares_the_fewest(tmp_path: Path) -> None:
    script = {"a": "unchanged", "b": "left", "c": "skipped", "d": "left", "e": "refused", "f": "left", "g": "unchanged"}
    left, known = look(tmp_path, [["a", "b", "c"], ["d", "e"], ["f"], ["g"]], **script)
    assert left == [["b", "d", "f"]]
    assert known == {name: said for name, said in script.items() if said != "left"}


@pytest.mark.slow
def test_a_failure_is_left_for_a_session_unless_it_is_for_good(tmp_path: Path) -> None:
    """The session may run where the table can be reached."""
    left, known = look(tmp_path, [["a", "b"]], a="failed", b="failed forever")
    assert (left, known) == ([["a"]], {"b": Outcome.FAILED})


@pytest.mark.slow
def test_of_a_process_that_died_all_that_it_did_not_report_is_left(tmp_path: Path) -> None:
    left, known = look(tmp_path, [["a", "b"], ["c"]], a="unchanged", b="dies", c="unchanged")
    assert (left, known) == ([["b", "c"]], {"a": Outcome.UNCHANGED})


@pytest.mark.slow
def test_a_policy_that_is_not_understood_starts_no_session(tmp_path: Path) -> None:
    with pytest.raises(AirflowFailException, match=r"the job did not start: tables\.yaml:1: expected another"):
        look(tmp_path, [["a"]], a="usage")


def test_many_tables_are_looked_at_by_several_processes() -> None:
    assert [list(each) for each in batched("abcde", 2)] == [["a", "b"], ["c", "d"], ["e"]]
    assert list(batched([], 2)) == []
