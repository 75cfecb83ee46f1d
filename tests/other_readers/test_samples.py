"""Samples after a run of ours: another engine reads the same rows of the published version and of its parent."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from samples.iceberg_places import place
from tests.other_readers.engines import other_reader
from tests.support.extended import some_extended

from nightkeep.admission.order import Order
from nightkeep.model import Address, Operation, Outcome
from nightkeep.model.check_values import ReaderName
from nightkeep.other_readers.agreement import compare_readers
from nightkeep.policy import EffectivePolicy, Settings
from nightkeep.records import CheckStatus
from nightkeep.records.check_report import ComparedVersions
from nightkeep.running.rewrites.run_operation import run_operation
from nightkeep.tasks import inline

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).parents[2] / "samples"
NIGHTS = [
    ("delta", "clicks", Operation.OPTIMIZE, ReaderName.DELTALAKE),
    ("paimon", "orders", Operation.UPGRADE, ReaderName.PYPAIMON),
    ("iceberg", "customers", Operation.PERSIST_DELETES, ReaderName.DUCKDB),
    ("iceberg", "orders", Operation.PERSIST_DELETES, ReaderName.DUCKDB),
    ("delta", "readings", Operation.OPTIMIZE, ReaderName.DUCKDB),
    ("paimon", "customers", Operation.UPGRADE, ReaderName.PYPAIMON),
    ("paimon", "events_raw", Operation.OPTIMIZE, ReaderName.PYPAIMON),
]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Path]:
    before = dict(os.environ)
    os.environ["PYICEBERG_CATALOG__LAKE__URI"] = f"sqlite:///{place(SAMPLES / 'iceberg', tmp_path / 'lake')}"
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


def sample(format: str, name: str, folder: Path) -> Address:
    if format == "iceberg":
        return Address(format, f"lake/{next((folder / 'lake').glob(f'*/{name}')).parent.name}.{name}", name)
    (found,) = (SAMPLES / format).glob(f"*/{name}")
    return Address(format, str(shutil.copytree(found, folder / name)), name)


@pytest.mark.few(1)
@pytest.mark.parametrize(("format", "name", "operation", "reader"), some_extended(NIGHTS, keep=2))
def test_a_night(format: str, name: str, operation: Operation, reader: ReaderName, lake: Path) -> None:
    address = sample(format, name, lake)
    policy = EffectivePolicy(address, Settings(), {})
    document = run_operation(policy, Order(operation, "night", str(lake / "reports")), mapper=lambda: inline)
    assert document.outcome is Outcome.VERIFIED, document.reason
    version, parent = document.committed_version, document.parent_version
    assert version is not None and parent is not None
    compared = ComparedVersions(version, parent, changes_rows=False, bytes=0)
    result = compare_readers(address, compared, other_reader(reader))
    assert result.status is CheckStatus.PASSED, result
