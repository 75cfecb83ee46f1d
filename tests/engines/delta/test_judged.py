"""Whatever is published of a golden table can be judged: what the gate reads, the check reads through Spark, too."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.engines.delta.test_oracles import GOLDEN, ordered_columns
from tests.formats.delta.runs import optimize
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

TABLES = sorted(path.name for path in GOLDEN.iterdir() if (path / "table").is_dir())


@pytest.mark.parametrize("name", some_extended(TABLES, keep=2))
def test_the_check_ends_with_a_judgement(name: str, spark: SparkSession, tmp_path: Path) -> None:
    table = Path(shutil.copytree(GOLDEN / name / "table", tmp_path / "table"))
    columns = ordered_columns(table)[:2]
    clustering = {"clustering": {"hilbert": columns}} if columns else {}
    for operation, settings in ((Operation.PERSIST_DELETES, {}), (Operation.OPTIMIZE, {"full": True, **clustering})):
        document = optimize(table, operation=operation, **settings)
        if document.committed_version is None:
            assert document.outcome in (Outcome.UNCHANGED, Outcome.REFUSED), document.reason
            continue
        found = check(CheckRequest(Address("delta", str(table), "t"), version=document.committed_version), spark=spark)
        assert (document.outcome, found.status) == (Outcome.VERIFIED, CheckStatus.PASSED), (document.reason, found)
