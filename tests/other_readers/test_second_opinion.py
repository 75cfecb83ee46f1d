"""A night that asks one more engine: agreement is a line of its document, disagreement holds the table."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.formats.delta.hand_made import HandMade
from tests.other_readers.engines import other_reader

import nightkeep
from nightkeep.errors import UsageError
from nightkeep.formats.delta.metadata import log_state
from nightkeep.formats.delta.metadata.replay import LogState
from nightkeep.model import Outcome
from nightkeep.model.check_values import ReaderName
from nightkeep.records import CheckStatus, RunDocument, held
from nightkeep.spark.engine import Engine
from nightkeep.tasks import inline

NAME = "deltalake 1.6.6 and Nightkeep read the same rows"


@pytest.fixture
def made(tmp_path: Path) -> HandMade:
    made = HandMade(tmp_path / "events")
    for start in (0, 40):
        made.append("2026-11-01", range(start, start + 40))
    made.delete("2026-11-01", range(10, 50))
    return made


@pytest.fixture
def night(made: HandMade, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Purges the vectors, with everything of ours in this process."""
    monkeypatch.setenv("NIGHTKEEP_READER_PYTHON", other_reader(ReaderName.DELTALAKE).python)
    monkeypatch.setattr(Engine, "mapper", lambda engine: inline)
    policy = tmp_path / "tables.yaml"
    policy.write_text(
        f"version: 1\ntables:\n  - {{name: events, table: 'delta:{made.folder}', check: {{reader: deltalake}}}}\n"
    )

    def run() -> RunDocument:
        (document,) = nightkeep.run("events", policy=policy, full=True, reports=tmp_path / "reports", spark=spark)
        return document

    return run


def line(document: RunDocument) -> tuple[CheckStatus, str]:
    (found,) = (result for result in document.expectations.results if "Nightkeep" in result.expectation)
    assert found.expectation == NAME
    return found.status, found.detail or ""


def test_agreement_is_a_line_of_the_document(made: HandMade, night: Any) -> None:
    document = night()
    assert document.outcome is Outcome.VERIFIED, document.reason
    version = document.committed_version
    assert line(document) == (CheckStatus.PASSED, f"40 rows of version {version - 1} and of version {version}")


def test_what_all_of_ours_misread_is_found_by_another_engine(
    night: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewrite, gate and check decode metadata by one code. Here it takes every partition for another."""
    replay = log_state.replay  # type: ignore[attr-defined]

    def mistaken(*arguments: Any) -> LogState:
        state = replay(*arguments)
        return replace(state, adds=tuple({**add, "partitionValues": {"day": "2026-12-01"}} for add in state.adds))

    with monkeypatch.context() as patch:
        patch.setattr(log_state, "replay", mistaken)
        document = night()
    others = [result for result in document.expectations.results if result.expectation != NAME]
    assert not [result for result in others if result.status in (CheckStatus.FAILED, CheckStatus.ERRORED)]
    assert (document.outcome, line(document)[0]) == (Outcome.MISMATCH, CheckStatus.FAILED), document.reason
    assert "deltalake 1.6.6 reads 40 rows, Nightkeep others" in line(document)[1]
    assert document.reason is not None and NAME in document.reason
    assert held(str(tmp_path / "reports"), "events") is not None


def test_the_command_asks_an_engine_of_another_python(made: HandMade, night: Any, spark: SparkSession) -> None:
    assert night().committed_version is not None
    address = f"delta:{made.folder}"
    reader = other_reader(ReaderName.DUCKDB)
    report = nightkeep.check(address, reader=f"duckdb={reader.python}", spark=spark)
    assert report.status is CheckStatus.PASSED
    assert " and Nightkeep read the same rows: 40 rows of version " in str(report)
    assert report.results[-1].name.startswith("duckdb 1."), report
    with pytest.raises(UsageError, match=r"--reader: expected one that reads delta \(deltalake, duckdb\), found pyi"):
        nightkeep.check(address, reader="pyiceberg", spark=spark)
    with pytest.raises(UsageError, match=r"--reader: expected one of deltalake, duckdb, .*, found 'trino'"):
        nightkeep.check(address, reader="trino", spark=spark)
