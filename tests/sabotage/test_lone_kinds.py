"""Every expectation that can be a tick fails alone, in a sabotage of its own, or says why nothing could fail it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.checking.test_content_check import Running
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.paimon_java import PaimonJava
from tests.sabotage.bases import Bases
from tests.sabotage.lone_kinds import BY_FORMAT, NEVER
from tests.sabotage.lone_removals import AFTER_REMOVALS, Emptied
from tests.sabotage.table import lone_lines

from nightkeep.admission.order import Order, RemovalOptions
from nightkeep.checking.check import check
from nightkeep.checking.expectations import EXPECTATIONS, KEPT
from nightkeep.groups.one_operation import run_one
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.model.sweep_rules import SweepMode
from nightkeep.policy import EffectivePolicy, load
from nightkeep.records import CheckStatus, RunDocument
from nightkeep.retention.check_afterwards import check_after_removal

PAGE = Path(__file__).parents[2] / "docs/proof.md"
CASES = [(kind, name) for kind, lone in BY_FORMAT.items() for name in lone]


def names(expectations: Sequence[object]) -> list[str]:
    return [str(each.description) for each in expectations]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def bases(
    paimon_java: PaimonJava, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bases]:
    with ExitStack() as stack:
        java = {"paimon java": paimon_java, "iceberg java": iceberg_java}
        yield Bases(tmp_path_factory.mktemp("alone"), stack, java)


def test_every_expectation_has_a_sabotage_or_never_applies() -> None:
    for kind, lone in BY_FORMAT.items():
        assert sorted([*lone, *NEVER[kind]]) == sorted(names(EXPECTATIONS)), kind
    assert sorted(AFTER_REMOVALS) == sorted(names(KEPT))


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.in_turn("kind")
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_it_fails_and_no_other(kind: str, name: str, bases: Bases, tmp_path: Path, spark: SparkSession) -> None:
    lone = BY_FORMAT[kind][name]
    found = lone.published(bases, tmp_path)
    request = CheckRequest(found.address, found.version, found.base, **lone.asked)
    report = check(request, spark=spark)
    statuses = {each.name: each.status for each in report.results}
    assert sorted(statuses) == sorted(names(EXPECTATIONS)), report.reason
    assert {each for each, status in statuses.items() if status is CheckStatus.FAILED} == {name}, str(report)
    assert CheckStatus.ERRORED not in statuses.values()
    assert all(statuses[each] is CheckStatus.NOT_APPLICABLE for each in NEVER[kind])


@dataclass(frozen=True)
class Removed:
    """A table from which files were removed, and the document of that."""

    policy: EffectivePolicy
    order: Order
    document: RunDocument
    folder: Path
    kept: Path


@pytest.fixture(scope="module")
def removed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Removed:
    folder = tmp_path_factory.mktemp("removed")
    table = Emptied.at(folder / "t").made.folder
    orphan = table / "part-00000-left-over.c000.snappy.parquet"
    orphan.write_bytes(b"left over")
    os.utime(orphan, (time.time() - 40 * 24 * 60 * 60,) * 2)
    policy = load("none.yaml", text="version: 1").effective(f"delta:{table}")
    order = Order(Operation.SWEEP, "r", str(folder / "reports"), removal=RemovalOptions(mode=SweepMode.DELETE))
    document = run_one(policy, order, Running(spark)).document
    assert (document.outcome, orphan.exists()) == (Outcome.VERIFIED, False), document.reason
    assert {each.status for each in document.expectations.results} == {CheckStatus.PASSED}
    return Removed(policy, order, document, table, Path(shutil.copytree(table, folder / "kept")))


@pytest.mark.parametrize("name", AFTER_REMOVALS)
def test_it_fails_after_a_removal_and_no_other(name: str, removed: Removed, spark: SparkSession) -> None:
    shutil.rmtree(removed.folder)
    shutil.copytree(removed.kept, removed.folder)
    AFTER_REMOVALS[name][1](Emptied.there(removed.folder))
    document = check_after_removal(removed.document, removed.policy, removed.order, engine=Running(spark))
    failed = {each.expectation for each in document.expectations.results if each.status is CheckStatus.FAILED}
    assert failed == {name}, document.expectations
    assert document.outcome is Outcome.MISMATCH


def test_the_page_names_every_sabotage() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "\n".join(lone_lines()) in page
