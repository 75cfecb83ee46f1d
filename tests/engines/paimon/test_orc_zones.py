"""ORC files by a Java in any time zone: we read the times that Java reads, and what we write is read as them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.drivers.paimon_java import SHORT_LIVED, PaimonJava
from tests.drivers.paimon_values import Layout, Row
from tests.support.extended import some_extended

import nightkeep
from nightkeep.errors import RefusedTable

ZONES = (
    "Asia/Shanghai",
    "America/Los_Angeles",
    "UTC",
    "Europe/Amsterdam",
    "Asia/Kolkata",
    "Pacific/Apia",
    "GMT+05:30",
    "Africa/Monrovia",
)
TIME = "TIMESTAMP(6)"
PLACE = {"type": "ROW", "fields": [{"id": 20, "name": "t", "type": TIME}]}
COLUMNS = [
    ("k", "INT"),
    ("t", "TIMESTAMP(9)"),
    ("u", TIME),
    ("m", "TIMESTAMP(3)"),
    ("s", "TIMESTAMP(0)"),
    ("d", "DATE"),
    ("l", json.dumps({"type": "ARRAY", "element": TIME})),
    ("r", json.dumps(PLACE)),
    ("p", json.dumps({"type": "MAP", "key": "INT", "value": TIME})),
]
REFUSED = ("GMT+05:30", "Europe/Amsterdam")
"""Arrow does not know the first; of the second, Java and the machine may know different histories."""
FRACTIONS = (0, 1, 999_999, 1_000_000, 123_456_789, 999_999_999)
ERAS = ((-2_145_916_800, 0), (0, 9_200_000_000))
ORC = {"bucket": "-1", "file.format": "orc"}


@pytest.fixture(scope="module", params=some_extended(list(ZONES), keep=2))
def zone(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def writer(zone: str) -> Iterator[PaimonJava]:
    with PaimonJava(java_options=(*SHORT_LIVED, f"-Duser.timezone={zone}")) as engine:
        yield engine


def walls(zone: str) -> Sequence[int]:
    """Wall times in nanoseconds: around 1970 and every zone's offset from it, and others."""
    drawn = Random(zone)
    seconds = [hours * 3600 // 2 + by for hours in range(-28, 29) for by in (-2, -1, 0, 1)]
    seconds += [drawn.randrange(low, high) for low, high in ERAS for _ in range(100)]
    return [second * 10**9 + drawn.choice(FRACTIONS) for second in seconds]


def text(nanos: int, digits: int) -> str:
    shown = str(pa.array([nanos], pa.timestamp("ns")).cast(pa.string())[0].as_py()).replace(" ", "T")
    return shown[: 19 if not digits else 20 + digits]


def row(k: int, nanos: int) -> Row:
    micros = text(nanos, 6)
    return (
        "+I",
        k,
        text(nanos, 9),
        micros,
        text(nanos, 3),
        text(nanos, 0),
        micros[:10],
        [micros, None],
        [micros],
        [[k, micros]],
    )


def shown(table: Path) -> list[tuple[Any, ...]]:
    """What we read, with times as Java's driver spells them."""
    read = nightkeep.read(f"paimon:{table}").read_all().combine_chunks()
    nested = (
        read.column("l").chunk(0).values[::2],
        read.column("r").chunk(0).field("t"),
        read.column("p").chunk(0).items,
    )
    columns = [
        *((read.column(name), digits) for name, digits in (("t", 9), ("u", 6), ("m", 3), ("s", 0))),
        *((values, 6) for values in nested),
    ]
    spelled = [
        [text(nanos, digits) for nanos in values.cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist()]
        for values, digits in columns
    ]
    days = [str(day) for day in read.column("d").to_pylist()]
    return sorted(zip(read.column("k").to_pylist(), days, *spelled, strict=True))


def by_java(java: PaimonJava, table: Path) -> list[tuple[Any, ...]]:
    rows = (each[-len(COLUMNS) :] for each in java.read(table).rows)
    return sorted(
        (k, d, t, u, m, s, of_list[0], of_row[0], of_map[0][1]) for k, t, u, m, s, d, of_list, of_row, of_map in rows
    )


@pytest.mark.few(1)
def test_times_are_those_that_java_reads(
    writer: PaimonJava, paimon_java: PaimonJava, zone: str, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    paimon_java.create(table, Layout(COLUMNS, options=ORC))
    writer.write(table, [row(k, nanos) for k, nanos in enumerate(walls(zone))])
    if zone in REFUSED:
        with pytest.raises(RefusedTable, match="time zone"):
            shown(table)
        return
    found = shown(table)
    expected = by_java(paimon_java, table)
    different = [(ours, theirs) for ours, theirs in zip(found, expected, strict=True) if ours != theirs]
    assert not different, (len(different), different[:3])


def test_times_of_local_mean_times_are_refused(
    writer: PaimonJava, paimon_java: PaimonJava, zone: str, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    paimon_java.create(table, Layout(COLUMNS, options=ORC))
    writer.write(table, [row(1, -3_000_000_000 * 10**9)])
    if zone == "UTC":
        assert shown(table) == by_java(paimon_java, table)
        return
    with pytest.raises(RefusedTable, match="time zone"):
        shown(table)
