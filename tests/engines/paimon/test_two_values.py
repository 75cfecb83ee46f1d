"""A partition column whose values in the data files differ from the partition's: Java shows the partition's."""

from pathlib import Path

import pytest
from tests.drivers.canonical import rows_from_arrow
from tests.drivers.paimon_java import PaimonJava
from tests.drivers.paimon_values import Layout, Writer
from tests.formats.paimon.upgrade import optimize, upgrade

import nightkeep
from nightkeep.model import Outcome

COLUMNS = [("k", "INT NOT NULL"), ("p", "INT NOT NULL"), ("v", "STRING")]
STATED, STORED = 1515870801, 1515870802
OPTIONS = {"file.format": "orc", "file.compression": "none", "write-only": "true"}
KEYED = {"bucket": "1", "deletion-vectors.enabled": "true"}


def contradict(table: Path) -> None:
    """In the values, as ORC stores a run of equal integers, and in the statistics."""
    for file in table.rglob("data-*"):
        held = file.read_bytes()
        changed = held.replace(STATED.to_bytes(4, "big"), STORED.to_bytes(4, "big"))
        changed = changed.replace(_zigzag(STATED), _zigzag(STORED))
        assert changed != held
        file.write_bytes(changed)
        (file.parent / f".{file.name}.crc").unlink(missing_ok=True)


def _zigzag(number: int) -> bytes:
    doubled, held = 2 * number, bytearray()
    while doubled > 127:
        held.append(doubled & 127 | 128)
        doubled >>= 7
    return bytes([*held, doubled])


@pytest.mark.parametrize("keyed", [True, False])
def test_the_partition_decides(paimon_java: PaimonJava, tmp_path: Path, keyed: bool) -> None:
    table = tmp_path / "t"
    keys = ["p", "k"] if keyed else []
    layout = Layout(COLUMNS, keys, ["p"], options={**OPTIONS, **(KEYED if keyed else {"bucket": "-1"})})
    paimon_java.create(table, layout)
    for first in (0, 5, 10):
        paimon_java.write(
            table, [("+I", k, STATED, f"{k}-{first}") for k in range(first, first + 10)], Writer(user="w")
        )
    contradict(table)
    rows = [[k, STATED, f"{k}-{first}"] for first in (0, 5, 10) for k in range(first, first + 10)]
    expected = sorted({k: (k, p, v) for k, p, v in rows}.values() if keyed else map(tuple, rows))
    told = upgrade(table) if keyed else optimize(table, full=True)
    assert told.outcome is Outcome.VERIFIED, told.reason
    assert sorted(map(tuple, paimon_java.read(table).rows)) == expected
    found = nightkeep.read(f"paimon:{table}").read_all()
    assert sorted(map(tuple, rows_from_arrow(found, ["INT", "INT", "STRING"]))) == expected
    assert not nightkeep.read(f"paimon:{table}", where=f"p = {STORED}").read_all().num_rows
