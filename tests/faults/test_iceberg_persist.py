"""Persisting deletes that breaks at any one of its writes, or at the catalog's: the table reads the same, nothing of
anybody else's is touched, and a retry finishes the run.

A clean run is counted; every write is then failed, and the process killed, at every point it passes.
"""

import signal
from collections.abc import Iterator, Mapping

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.drivers.lake_rows import Rows
from tests.formats.iceberg.breaking import SWAP, breaking, care_and_die
from tests.formats.iceberg.runs import COLUMNS, DAYS, Kept, care_for, configured, contents, opened, row, token
from tests.support.faulty_store import TURNS, Fuse, Moment, Point, fail, places
from tests.support.processes import child

from nightkeep.model import Outcome, Run

pytestmark = pytest.mark.in_turn("kept")

RUN = "nightly-2026-11-21"


@pytest.fixture(scope="module", params=[(2, "parquet"), (3, "parquet"), (2, "orc")])
def kept(
    request: pytest.FixtureRequest, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kept]:
    """One day in one file, with equality deletes."""
    version, file_format = request.param
    warehouse = Warehouse(f"faults{version}{file_format}", tmp_path_factory.mktemp("faults"))
    with configured(warehouse):
        table = warehouse.table("shop.events")
        properties = {"write.format.default": file_format}
        layout = Layout(partition=(("day", "identity"),), format_version=version, properties=properties)
        iceberg_java.create(table, COLUMNS, layout)
        iceberg_java.append(table, [row(DAYS[0], number) for number in range(40)])
        iceberg_java.cdc(table, [("-D", row(DAYS[0], number)) for number in range(10)], keys=["id", "day"])
        yield Kept.of(table)


@pytest.fixture(scope="module")
def rows(kept: Kept, iceberg_java: IcebergJava) -> Rows:
    return iceberg_java.read(kept.put_back())


@pytest.fixture(scope="module")
def clean(kept: Kept, rows: Rows) -> tuple[Point, ...]:
    """The points that a run passes when nothing breaks."""
    fuse = Fuse()
    with breaking(fuse):
        assert care_for(kept.put_back(), run_id=RUN).outcome is Outcome.VERIFIED
    return tuple(fuse.passed)


def kind(point: Point) -> str:
    """A point without what differs from run to run."""
    return f"{point.moment.value} {point.step} {point.name.rpartition('.')[2]}"


def test_a_clean_run_passes_every_kind_of_write(clean: tuple[Point, ...]) -> None:
    passed = [kind(point) for point in clean]
    deletes = {"parquet", "orc", "puffin"} & {point.name.rpartition(".")[2] for point in clean}
    assert len(deletes) == 1
    for end in (*deletes, "avro", "json"):
        assert {f"{moment.value} create {end}" for moment in Moment} <= {*passed}
    at = passed.index(f"before {SWAP} json")
    assert passed[at + 1 :] == [f"after {SWAP} json", "before delete json", "after delete json"]


@pytest.mark.extended
def test_every_write_fails_once(clean: tuple[Point, ...], kept: Kept, rows: Rows, iceberg_java: IcebergJava) -> None:
    burnt = []
    for at, point in enumerate(clean, start=1):
        table = kept.put_back()
        before, fuse = contents(table), Fuse(at, fail)
        with breaking(fuse):
            document = care_for(table, run_id=RUN)
        assert kind(fuse.passed[at - 1]) == kind(point)
        burnt.append(point)
        visible = _survived(table, before)
        assert document.outcome is (Outcome.VERIFIED if visible else Outcome.FAILED), str(point)
        assert visible is (at > _swap(clean)), str(point)
        assert iceberg_java.read(table) == rows
        _retried(table)
        assert iceberg_java.read(table) == rows
    assert len(burnt) == len(clean)


@pytest.mark.few(1)
@pytest.mark.parametrize("turn", range(TURNS))
def test_the_process_dies_at_every_write(
    clean: tuple[Point, ...], kept: Kept, rows: Rows, iceberg_java: IcebergJava, turn: int
) -> None:
    killed = 0
    for at in places(len(clean), turn):
        point = clean[at - 1]
        table = kept.put_back()
        before = contents(table)
        with child(care_and_die, table, RUN, at) as process:
            assert process.end() == -signal.SIGKILL, str(point)
        killed += 1
        assert _survived(table, before) is (at > _swap(clean)), str(point)
        assert iceberg_java.read(table) == rows
        _retried(table)
        assert iceberg_java.read(table) == rows
    assert killed >= len(clean) // TURNS


def _swap(clean: tuple[Point, ...]) -> int:
    """The last point at which the catalog knows nothing of us."""
    return next(n for n, point in enumerate(clean, start=1) if (point.moment, point.step) == (Moment.BEFORE, SWAP))


def _survived(table: Table, before: Mapping[str, bytes]) -> bool:
    """Whether the commit is visible, after checking that nothing of anybody else was touched or hidden."""
    after = contents(table)
    assert not [name for name, data in before.items() if after.get(name) != data]
    # Metadata is called as its catalog calls it.
    strangers = [name for name in after.keys() - before.keys() if not name.endswith(".metadata.json")]
    assert all(f"nk-{token(RUN)}" in name for name in strangers)
    return bool(opened(table).commits.committed(Run(RUN, token(RUN), "a", 0)))


def _retried(table: Table) -> None:
    document = care_for(table, run_id=RUN)
    assert document.outcome is Outcome.VERIFIED, document.reason
    (done,) = opened(table).commits.committed(Run(RUN, token(RUN), "a", 0))
    assert document.committed_version == done.version
    assert len(table.document()["snapshots"]) == 3
