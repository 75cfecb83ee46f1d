"""The oracles answer, and agree with an obvious model: what other tests are judged by is judged here."""

from pathlib import Path

import pytest
from tests.engines.json_lines import EngineError
from tests.engines.paimon_java import PaimonJava
from tests.engines.paimon_values import Layout, Scan

ORDERS = Layout(
    columns=[("id", "BIGINT NOT NULL"), ("note", "STRING")],
    primary_keys=["id"],
    options={"bucket": "1", "deletion-vectors.enabled": "true"},
)


@pytest.fixture
def orders(paimon_java: PaimonJava, tmp_path: Path) -> Path:
    table = tmp_path / "shop.db" / "orders"
    paimon_java.create(table, ORDERS)
    return table


def test_a_failure_of_the_engine_is_an_error_and_the_engine_lives_on(paimon_java: PaimonJava, orders: Path) -> None:
    with pytest.raises(EngineError, match="zz"):
        paimon_java.read(orders, Scan(projection=["zz"]))
    assert paimon_java.read(orders).rows == ()
