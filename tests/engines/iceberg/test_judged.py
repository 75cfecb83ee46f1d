"""Whatever is published of any table can be judged: what the gate reads, the check reads through Spark, too."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from tests.drivers.iceberg_tables import Table
from tests.formats.iceberg import runs
from tests.formats.iceberg.golden_tables import KEPT, RECIPES
from tests.formats.iceberg.runs import address, care_for
from tests.support.extended import some_extended

from nightkeep.checking.check import check
from nightkeep.model import Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

TABLES = sorted({*RECIPES, *KEPT})
OPERATIONS = (Operation.PERSIST_DELETES, Operation.OPTIMIZE)


@pytest.mark.parametrize("name", some_extended(TABLES, keep=2))
def test_the_check_ends_with_a_judgement(name: str, made: Callable[[str], Table], spark: SparkSession) -> None:
    table = made(name)
    with runs.configured(table.warehouse):
        for operation in OPERATIONS:
            document = care_for(table, run_id=operation.value, operation=operation)
            if document.committed_version is None:
                assert document.outcome in (Outcome.UNCHANGED, Outcome.REFUSED), document.reason
                continue
            found = check(CheckRequest(address(table), version=document.committed_version), spark=spark)
            assert (document.outcome, found.status) == (Outcome.VERIFIED, CheckStatus.PASSED), (document.reason, found)
