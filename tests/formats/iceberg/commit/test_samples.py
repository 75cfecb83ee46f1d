"""Nights over the samples, without a JVM: what is published is proven, and reads as before."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from samples.iceberg_places import place

import nightkeep
from nightkeep.admission.order import Order
from nightkeep.formats import open_table
from nightkeep.formats.iceberg.commit import commit
from nightkeep.model import Address, Operation, Outcome
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.records import RunDocument
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

SAMPLES = Path(__file__).parents[4] / "samples/iceberg"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Path]:
    before = dict(os.environ)
    os.environ["PYICEBERG_CATALOG__LAKE__URI"] = f"sqlite:///{place(SAMPLES, tmp_path / 'lake')}"
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


def done(address: Address, operation: Operation, folder: Path, run_id: str = "night") -> RunDocument:
    policy = EffectivePolicy(address, Settings().model_copy(update={"full": True}), {})
    return run_operation(policy, Order(operation, run_id, str(folder / "reports")), mapper=lambda: inline)


def rows(address: Address) -> Counter[str]:
    return Counter(map(repr, nightkeep.read(str(address)).read_all().to_pylist()))


@pytest.mark.few(1)
@pytest.mark.parametrize("table", ["orders", "customers"])
def test_deletes_become_positions_and_files_are_packed(table: str, lake: Path) -> None:
    (namespace,) = (path.parent.name for path in SAMPLES.glob(f"*/{table}"))
    address = Address("iceberg", f"lake/{namespace}.{table}", table)
    before, opened = rows(address), open_table(address)
    for operation in (Operation.PERSIST_DELETES, Operation.OPTIMIZE):
        parent = opened.snapshot().version
        document = done(address, operation, lake)
        assert (document.outcome, document.parent_version) == (Outcome.VERIFIED, parent), document.reason
        assert document.committed_version == opened.snapshot().version
        assert sum(unit.rows or 0 for unit in document.units) == document.metrics.rows > 0
        assert rows(address) == before
        # A retry finds the commit of the run.
        again = done(address, operation, lake)
        assert (again.committed_version, again.parent_version) == (document.committed_version, parent)
    assert done(address, Operation.PERSIST_DELETES, lake, "the next night").outcome is Outcome.UNCHANGED
    assert document.metrics.files_after < document.metrics.files_before


def test_ids_of_snapshots_are_positive_longs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java has no larger ones. One that is taken, and zero, are drawn again."""
    drawn = iter([0, (1 << 128) - 1, 1 << 63, 7])
    monkeypatch.setattr(commit.uuid, "uuid4", lambda: UUID(int=next(drawn)))
    assert commit._fresh_id({5}) == (1 << 63) - 1
    assert commit._fresh_id({5}) == 7
