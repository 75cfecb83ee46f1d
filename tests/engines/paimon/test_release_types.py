"""Types that releases of Paimon wrote into Parquet: Java 2.0.0, our reader, the gate and the check read them alike."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.drivers.canonical import rows_from_arrow
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_releases import create, run, write
from tests.drivers.paimon_values import Scan
from tests.engines.paimon.test_releases import types
from tests.formats.paimon.appended import operate
from tests.formats.paimon.releases import RELEASES
from tests.support.extended import some_extended

import nightkeep
from nightkeep.checking.check import check
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import CheckRequest
from nightkeep.records import CheckStatus

FLAT = {
    "id": "INT",
    "seconds": "TIMESTAMP(0)",
    "millis": "TIMESTAMP(3)",
    "micros": "TIMESTAMP(6)",
    "nanos": "TIMESTAMP(9)",
    "zoned": "TIMESTAMP_LTZ(3)",
    "finer": "TIMESTAMP_LTZ(6)",
    "time": "TIME(3)",
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "big": "BIGINT",
    "real": "FLOAT",
    "padded": "CHAR(4)",
    "fixed": "BINARY(4)",
    "short": "DECIMAL(4,2)",
    "money": "DECIMAL(12,2)",
    "large": "DECIMAL(30,4)",
}
NESTED = {
    "list": "ARRAY<TIMESTAMP(3)>",
    "row": "ROW<TIMESTAMP(6)>",
    "zonedrow": "ROW<TIMESTAMP_LTZ(3)>",
    # Releases before 0.9 do not call the keys of maps required, which Arrow does not read as maps.
    "map": "MAP<STRING,TIMESTAMP(6)>",
    "bag": "MULTISET<STRING>",
    "maprow": "ROW<MAP<STRING,INT>>",
}
CASES = [
    pytest.param(("0.9.0", "0.6"), (), id="continued"),
    *(pytest.param((release,), keys) for release in RELEASES for keys in ((), ("id",))),
]
"""Which releases write the table, in turn. 0.6 continues tables up to 0.9."""


@pytest.mark.parametrize(("releases", "keys"), some_extended(CASES, keep=1))
def test_every_reader_sees_the_same_rows(
    releases: tuple[str, ...], keys: tuple[str, ...], tmp_path: Path, paimon_java: PaimonJava, spark: SparkSession
) -> None:
    table = tmp_path / "t"
    columns = {**FLAT, **NESTED}
    options = {"file.format": "parquet", "bucket": "1" if keys else "-1"}
    commits = [write(table, "+I", range(5 * n, 5 * n + 5), "first") for n in range(6)]
    run(releases[0], [create(table, columns, keys=keys, options=options), *commits[:3]])
    run(releases[-1], commits[3:])
    shown, flat = shown_by_java(paimon_java, table, list(columns)), shown_by_java(paimon_java, table, list(FLAT))
    assert shown_by_us(paimon_java, table) == flat
    clustering = {} if keys else {"clustering": {"zorder": ["millis", "finer"]}}
    document = operate(table, Operation.OPTIMIZE, full=True, **clustering)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert shown_by_java(paimon_java, table, list(columns)) == shown
    assert shown_by_us(paimon_java, table) == flat
    request = CheckRequest(address=Address("paimon", str(table), "t"), version=document.committed_version)
    found = check(request, spark=spark)
    assert found.status is CheckStatus.PASSED, found


def shown_by_java(engine: PaimonJava, table: Path, columns: list[str]) -> list[str]:
    return sorted(repr(tuple(row)) for row in engine.read(table, Scan(projection=columns)).rows)


def shown_by_us(engine: PaimonJava, table: Path) -> list[str]:
    """Without nested values, which Java and Arrow spell differently."""
    kinds = types(engine, table)
    found = nightkeep.read(f"paimon:{table}", columns=list(FLAT)).read_all()
    return sorted(repr(tuple(row)) for row in rows_from_arrow(found, [kinds[name] for name in FLAT]))
