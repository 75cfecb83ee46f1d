"""Whole runs over a REST catalog: the conversion is committed once, whatever becomes of the server's answers."""

from collections.abc import Iterator

import pytest
from tests.drivers.fault_proxy import Answer, Request, Way
from tests.drivers.iceberg_java import IcebergJava
from tests.drivers.iceberg_rest import IcebergRest
from tests.drivers.iceberg_tables import Table
from tests.drivers.rest_faults import COMMIT, RestFaults
from tests.formats.iceberg.lake import kept_table
from tests.formats.iceberg.runs import DAYS, Kept, care_for, contents, opened, row, token

import nightkeep
from nightkeep.errors import AddressError
from nightkeep.model import Outcome

pytestmark = pytest.mark.in_turn("kept")


@pytest.fixture(scope="module", params=[2, 3])
def kept(
    request: pytest.FixtureRequest, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kept]:
    yield from kept_table(iceberg_java, tmp_path_factory.mktemp("rest"), version=request.param)


@pytest.fixture(scope="module")
def uri(kept: Kept, iceberg_rest: IcebergRest) -> str:
    return iceberg_rest.serve(kept.table.warehouse)


@pytest.fixture
def shop(kept: Kept, uri: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Table, RestFaults]]:
    """The table, which we see through a proxy of the server alone."""
    prefix = f"PYICEBERG_CATALOG__{kept.table.warehouse.name.upper()}"
    with RestFaults(uri) as faults:
        monkeypatch.delenv(f"{prefix}__WAREHOUSE")
        monkeypatch.setenv(f"{prefix}__TYPE", "rest")
        monkeypatch.setenv(f"{prefix}__URI", faults.endpoint)
        yield kept.put_back(), faults


def commits_of(table: Table, run_id: str) -> int:
    told = [each["summary"].get("nightkeep.run", "") for each in table.document()["snapshots"]]
    return sum(user.endswith(token(run_id)) for user in told)


def test_a_conversion_over_rest(iceberg_java: IcebergJava, shop: tuple[Table, RestFaults]) -> None:
    table, _ = shop
    shown = iceberg_java.read(table)
    document = care_for(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert table.document()["current-snapshot-id"] == document.committed_version
    assert iceberg_java.read(table) == shown
    assert not [task for task in iceberg_java.tasks(table) for each in task["deletes"] if each["content"] == 2]


def test_a_table_that_is_near_is_named_over_rest(shop: tuple[Table, RestFaults]) -> None:
    table, _ = shop
    address = f"iceberg:{table.warehouse.name}/{table.name}"
    with pytest.raises(AddressError) as failure:
        nightkeep.plan(f"{address}s")
    assert f"did you mean {address}?" in str(failure.value)


def test_statistics_are_kept_over_rest(iceberg_java: IcebergJava, shop: tuple[Table, RestFaults]) -> None:
    table, _ = shop
    path = iceberg_java.statistics(table)
    document = care_for(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    stated = {each["snapshot-id"]: each for each in iceberg_java.metadata(table)["statistics"]}
    before, after = stated[document.base_version], stated[document.committed_version]
    assert after["statistics-path"] == path
    assert after["blob-metadata"] == before["blob-metadata"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("status", "way", "visible"),
    [
        (500, Way.BEFORE, False),
        (503, Way.BEFORE, False),
        (500, Way.AFTER, True),
        (504, Way.AFTER, True),
        (0, Way.AFTER, True),
    ],
)
def test_an_answer_that_was_lost_loses_nothing(
    iceberg_java: IcebergJava, shop: tuple[Table, RestFaults], status: int, way: Way, *, visible: bool
) -> None:
    table, faults = shop
    shown, before = iceberg_java.read(table), contents(table)
    met = faults.fail(status, request=COMMIT, way=way)
    document = care_for(table, run_id="ours")
    assert met.seen
    assert document.outcome is (Outcome.VERIFIED if visible else Outcome.FAILED), document.reason
    assert commits_of(table, "ours") == visible
    assert not [name for name, data in before.items() if contents(table).get(name) != data]
    assert iceberg_java.read(table) == shown
    again = care_for(table, run_id="ours")
    assert again.outcome is Outcome.VERIFIED, again.reason
    assert commits_of(table, "ours") == 1
    assert iceberg_java.read(table) == shown


def test_a_commit_that_comes_second_is_staged_anew(iceberg_java: IcebergJava, shop: tuple[Table, RestFaults]) -> None:
    """The server answers 409, as main has moved while our request was on its way."""
    table, faults = shop
    moved: list[int] = []
    before = opened(table).snapshot()
    forward = faults.forward

    def overtaken(request: Request) -> Answer:
        if request.method == "POST" and request.path.endswith("/tables/events") and not moved:
            moved.append(iceberg_java.append(table, [row(DAYS[0], 999)]))
        return forward(request)

    faults.forward = overtaken  # type: ignore[method-assign]
    document = care_for(table)
    assert document.outcome is Outcome.VERIFIED, document.reason
    assert [document.parent_version] == moved
    assert document.base_version == before.version
    assert (999, DAYS[0]) in {(found[0], found[1]) for found in map(tuple, iceberg_java.read(table).rows)}
