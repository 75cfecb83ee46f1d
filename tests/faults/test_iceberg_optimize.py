"""Optimize that breaks, or whose process dies, at any one of its writes: of sorted tables, of files that move to
another partition spec, of format version 1, of a branch, of ORC files, and of variants. The table reads the same,
nothing of others is touched, and a retry finishes the run.
"""

import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Table, Warehouse
from tests.formats.iceberg import variant_files
from tests.formats.iceberg.breaking import SWAP, branch_of, breaking, optimize, optimize_and_die
from tests.formats.iceberg.runs import COLUMNS, DAYS, Kept, configured, contents, row, token
from tests.support.extended import some_extended
from tests.support.faulty_store import Fuse, Moment, Point, fail
from tests.support.processes import child
from tests.support.variant_values import Typed

from nightkeep.formats import open_table
from nightkeep.model import Operation, Outcome, Run
from nightkeep.records import RunDocument

pytestmark = pytest.mark.in_turn("kept")

RUN = "nightly-2026-11-27"
VARIANTS: dict[str, Typed] = {"plain variants": None, "shredded variants": variant_files.TYPED}
KINDS = ("sorted", "moved", "first version", "branch", "in ORC", *VARIANTS)
_NUMBERS = count()


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kept(kind: str, iceberg_java: IcebergJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """One day in two files."""
    warehouse = Warehouse(f"broken{next(_NUMBERS)}", tmp_path_factory.mktemp("faults"))
    with configured(warehouse):
        table = warehouse.table("shop.events")
        version = {"first version": 1, **dict.fromkeys(VARIANTS, 3)}.get(kind, 2)
        properties = {"write.format.default": "orc"} if kind == "in ORC" else {}
        layout = Layout(partition=(("day", "identity"),), format_version=version, properties=properties)
        iceberg_java.create(table, variant_files.COLUMNS if kind in VARIANTS else COLUMNS, layout)
        for ids in (range(20), range(40, 60)):
            if kind in VARIANTS:
                variant_files.append(iceberg_java, table, ids, VARIANTS[kind], day=DAYS[0], partition=DAYS[:1])
            else:
                iceberg_java.append(table, [row(DAYS[0], number) for number in ids])
        if kind == "sorted":
            iceberg_java.alter(table, {"change": "sort", "columns": ["price"]})
        if kind == "moved":
            iceberg_java.alter(
                table, {"change": "add_partition_field", "column": "id", "transform": "bucket[2]", "name": "by_id"}
            )
        if kind == "branch":
            newest = table.document()["current-snapshot-id"]
            iceberg_java.refs(table, {"change": "create_branch", "name": "dev", "snapshot": newest})
        yield Kept.of(table)


def branch(kind: str) -> str:
    return "dev" if kind == "branch" else ""


def night(table: Table, kind: str) -> RunDocument:
    return optimize(table, branch=branch(kind), run_id=RUN, respec=kind == "moved")


@pytest.fixture(scope="module")
def clean(kept: Kept, kind: str) -> tuple[Point, ...]:
    """The points that a run passes when nothing breaks."""
    fuse = Fuse()
    with breaking(fuse):
        done = night(kept.put_back(), kind)
    assert done.outcome is Outcome.VERIFIED, done.reason
    return tuple(fuse.passed)


def shown(java: IcebergJava, table: Table) -> dict[str, Counter[Any]]:
    """The rows of each branch, as texts: a value may be an object."""
    names = table.document().get("refs", {"main": None})
    return {name: Counter(map(str, java.read(table, ref=name).rows)) for name in names}


def test_every_write_fails_once(clean: tuple[Point, ...], kept: Kept, kind: str, iceberg_java: IcebergJava) -> None:
    rows = shown(iceberg_java, kept.put_back())
    swap = swap_of(clean)
    assert len(clean) > 8
    for at, point in enumerate(clean, start=1):
        table = kept.put_back()
        before, fuse = contents(table), Fuse(at, fail)
        with breaking(fuse):
            document = night(table, kind)
        visible = survived(table, kind, before)
        assert document.outcome is (Outcome.VERIFIED if visible else Outcome.FAILED), str(point)
        assert visible is (at > swap), str(point)
        assert shown(iceberg_java, table) == rows
        again = night(table, kind)
        assert again.outcome is Outcome.VERIFIED, again.reason
        assert shown(iceberg_java, table) == rows
        assert survived(table, kind, before)


TURNS = 4


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize("turn", some_extended(range(TURNS), keep=1))
def test_the_process_dies_at_every_write(
    clean: tuple[Point, ...], kept: Kept, kind: str, iceberg_java: IcebergJava, turn: int
) -> None:
    rows = shown(iceberg_java, kept.put_back())
    places = range(1 + turn, len(clean) + 1, TURNS)
    assert len(places) > 1
    for at in places:
        table = kept.put_back()
        before, point = contents(table), str(clean[at - 1])
        dying = partial(optimize_and_die, respec=kind == "moved")
        with child(dying, table, branch(kind), RUN, at) as process:
            assert process.end() == -signal.SIGKILL, point
        assert survived(table, kind, before) is (at > swap_of(clean)), point
        assert shown(iceberg_java, table) == rows, point
        again = night(table, kind)
        assert again.outcome is Outcome.VERIFIED, (point, again.reason)
        assert shown(iceberg_java, table) == rows, point
        assert survived(table, kind, before)


def swap_of(clean: tuple[Point, ...]) -> int:
    """The last point at which the catalog knows nothing of us."""
    return next(n for n, point in enumerate(clean, start=1) if (point.moment, point.step) == (Moment.BEFORE, SWAP))


def survived(table: Table, kind: str, before: Mapping[str, bytes]) -> bool:
    """Whether the commit is visible, after checking that nothing of anybody else was touched."""
    own, after = token(RUN, Operation.OPTIMIZE), contents(table)
    assert not [name for name, data in before.items() if after.get(name) != data]
    strangers = [name for name in after.keys() - before.keys() if not name.endswith(".metadata.json")]
    assert all(f"nk-{own}" in name for name in strangers)
    done = open_table(branch_of(table, branch(kind))).commits.committed(Run(RUN, own, "a", 0, branch(kind)))
    assert len(done) < 2
    return bool(done)
