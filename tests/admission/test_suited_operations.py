"""Which operations a run has that names none, and what each operation refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nightkeep.admission.suited_operations import suited_operations
from nightkeep.errors import UsageError
from nightkeep.model import Address, Operation
from nightkeep.policy import EffectivePolicy, load
from nightkeep.running.inspection.handled_operations import HandledOperation, handled_operations

ROOT = Path(__file__).parents[2]
PAIMON = ROOT / "samples/paimon/shop.db"
OF_KINDS = {
    "orders": Operation.UPGRADE,
    "baskets": Operation.UPGRADE,
    "visits": Operation.UPGRADE,
    "parcels": Operation.UPGRADE,
    "ledger": Operation.OPTIMIZE,
    "prices": Operation.OPTIMIZE,
    "events_raw": Operation.OPTIMIZE,
}


def policy_of(table: str, extra: str = "") -> EffectivePolicy:
    return load("tables.yaml", text=f"version: 1\ndefaults: {{{extra}}}\n").effective(table)


@pytest.mark.parametrize(("table", "operation"), OF_KINDS.items())
def test_the_kind_of_a_paimon_table_decides(table: str, operation: Operation) -> None:
    assert suited_operations(policy_of(f"paimon:{PAIMON / table}")) == (operation,)


def test_a_policy_that_names_operations_decides() -> None:
    policy = policy_of(f"paimon:{PAIMON / 'ledger'}", "operations: [upgrade]")
    assert suited_operations(policy) == (Operation.UPGRADE,)


@pytest.mark.parametrize("extra", ["", "pause: being moved"])
def test_a_table_that_cannot_be_opened_gets_one_operation(tmp_path: Path, extra: str) -> None:
    """Its run then says why. A paused table is not even looked at."""
    assert suited_operations(policy_of(f"paimon:{tmp_path / 'gone'}", extra)) == (Operation.UPGRADE,)


def test_a_table_with_damaged_schemas_gets_one_operation(tmp_path: Path) -> None:
    table = Path(shutil.copytree(PAIMON / "ledger", tmp_path / "ledger"))
    (table / "schema/schema-0").write_text("{")
    policy = policy_of(f"paimon:{table}")
    assert suited_operations(policy) == (Operation.UPGRADE,)
    (told,) = handled_operations(policy)
    assert "schema-0" in told.refused_for[0]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_tables_of_formats_with_one_kind_are_not_opened(kind: str) -> None:
    policy = policy_of("delta:/nowhere")
    policy = EffectivePolicy(Address(kind, "lake/gone", "gone"), policy.settings, policy.origins)
    assert suited_operations(policy) == policy.operations


def test_refusals_are_reported_for_each_operation() -> None:
    upgrade, optimize, delete, *_ = handled_operations(policy_of(f"paimon:{PAIMON / 'ledger'}"))
    assert not upgrade.nightly and "deletion-vectors.enabled" in upgrade.refused_for[0]
    assert optimize == HandledOperation(Operation.OPTIMIZE, nightly=True)
    assert delete.operation is Operation.DELETE and "primary key" in delete.refused_for[0]


def test_every_refusal_of_a_table_is_reported() -> None:
    """Not only the first: a user who mends one at a time reads the table again for each."""
    policy = policy_of(f"paimon:{PAIMON / 'events_raw'}")
    states = {each.operation: each.refused_for for each in handled_operations(policy)}
    assert states[Operation.OPTIMIZE] == () == states[Operation.DELETE]
    assert "no levels" in states[Operation.UPGRADE][0]


def test_a_bad_request_is_still_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        policy_of("no-format:/x")
