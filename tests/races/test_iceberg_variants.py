"""Others commit to tables of variants, plain or shredded, while a run works: one of the two loses, and no row does."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from tests.drivers.iceberg_java import IcebergJava, Layout
from tests.drivers.iceberg_tables import Warehouse
from tests.drivers.json_lines import EngineError
from tests.formats.iceberg import variant_files
from tests.formats.iceberg.optimized_lake import OptimizedLake
from tests.formats.iceberg.rewrite.test_optimize import published_over
from tests.formats.iceberg.runs import DAYS, configured
from tests.support.variant_values import Typed

from nightkeep.model import Outcome
from nightkeep.stages.publish import Committed, Conflicted

_NUMBERS = count()
FILES: dict[str, tuple[Typed, Typed]] = {
    "plain": (None, None),
    "shredded alike": (variant_files.TYPED, variant_files.TYPED),
    "shredded otherwise": (variant_files.TYPED, [variant_files.TYPED]),
}


@pytest.fixture(params=FILES)
def lake(request: pytest.FixtureRequest, iceberg_java: IcebergJava, tmp_path: Any) -> Iterator[OptimizedLake]:
    warehouse = Warehouse(f"variantraces{next(_NUMBERS)}", tmp_path)
    with configured(warehouse):
        lake = OptimizedLake(iceberg_java, warehouse.table("shop.events"))
        iceberg_java.create(lake.table, variant_files.COLUMNS, Layout(format_version=3))
        for start, typed in zip((0, 100), FILES[request.param], strict=True):
            append(lake, start, typed)
        yield lake


def append(lake: OptimizedLake, start: int, typed: Typed = variant_files.TYPED) -> None:
    variant_files.append(lake.java, lake.table, range(start, start + 20), typed, day=DAYS[0], partition=())


def delete_by_key(lake: OptimizedLake) -> None:
    lake.delete([[3], [107]], "id")


def delete_by_vector(lake: OptimizedLake) -> None:
    lake.commit(lake.java.vectors(lake.table, [(lake.live()[0]["file_path"], 1)]))


def compact(lake: OptimizedLake) -> None:
    lake.java.commit_rewrite(lake.table, lake.java.begin_rewrite(lake.table, options={"rewrite-all": "true"}))


MEANWHILE: dict[Callable[[OptimizedLake], object], type[Any]] = {
    lambda lake: append(lake, 200): Committed,
    delete_by_key: Committed,
    delete_by_vector: Conflicted,
    compact: Conflicted,
}


@pytest.mark.few(4)
@pytest.mark.in_turn("lake")
@pytest.mark.parametrize("act", MEANWHILE, ids=["append", "keys", "vector", "compaction"])
def test_a_commit_of_java_meanwhile(lake: OptimizedLake, act: Callable[[OptimizedLake], object]) -> None:
    done = published_over(lake, lambda: act(lake))
    assert isinstance(done, MEANWHILE[act]), done


def test_a_compaction_of_java_that_began_before_loses(lake: OptimizedLake) -> None:
    theirs = lake.java.begin_rewrite(lake.table, options={"rewrite-all": "true"})
    assert lake.night().outcome is Outcome.VERIFIED
    before = lake.shown()
    with pytest.raises(EngineError, match="Missing required files to delete"):
        lake.java.commit_rewrite(lake.table, theirs)
    assert lake.shown() == before
