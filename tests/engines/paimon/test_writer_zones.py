"""Writers in other time zones than this machine: the age of level 0 is by the clock of commits, which has no zone."""

import re
import time
from pathlib import Path

import pytest
from tests.drivers.paimon_java import SHORT_LIVED, PaimonJava
from tests.drivers.paimon_values import Compaction, Layout, Writer
from tests.support.extended import some_extended

import nightkeep
from nightkeep.formats.paimon.format import open_table
from nightkeep.model import Address, Operation, Request

COLUMNS = [("k", "INT NOT NULL"), ("n", "INT")]
OPTIONS = {"bucket": "1", "write-only": "true", "deletion-vectors.enabled": "true"}
MINUTE_MS = 60_000


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "zone", some_extended(["Asia/Shanghai", "Asia/Kathmandu", "America/Los_Angeles", "Pacific/Apia"], keep=2)
)
def test_the_age_of_level_0_has_no_zone(tmp_path: Path, zone: str) -> None:
    table, address = tmp_path / "t", Address("paimon", str(tmp_path / "t"), "t")
    with PaimonJava(java_options=(*SHORT_LIVED, f"-Duser.timezone={zone}")) as java:
        java.create(table, Layout(COLUMNS, ["k"], options=OPTIONS))
        java.write(table, [("+I", k, 0) for k in range(10)], Writer(user="writer"))
        java.compact(table, Compaction(full=True))
        for n in range(2):
            java.write(table, [("+I", k, n) for k in range(3)], Writer(user="writer"))
        paimon = open_table(address)
        snapshot = paimon.snapshot(None)
        made = min(file.created_ms for unit in snapshot.units for file in unit.files if file.level == 0)
        assert abs(made - time.time() * 1000) > 2 * 60 * MINUTE_MS
        later = int(time.time() * 1000) + 90 * MINUTE_MS
        assert paimon.health is not None
    age = paimon.health(snapshot, Request(Operation.UPGRADE, later)).level0_age_ms
    assert age is not None and 88 * MINUTE_MS < age < 95 * MINUTE_MS
    told = re.search(r"the oldest was written ([\d,]+) s before", str(nightkeep.plan(f"paimon:{table}")))
    assert told is not None and int(told[1].replace(",", "")) < 120
