"""A table that a catalog does not have: the message names the one that may be meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ForbiddenError
from pyiceberg.schema import Schema

import nightkeep
from nightkeep.errors import AddressError


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqlCatalog:
    """A catalog `near` with `shop.orders`, `shop.prices` and ``other.`a.b` ``."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    made = SqlCatalog("near", uri=uri, warehouse=f"file://{tmp_path}")
    for namespace, *tables in (("shop", "orders", "prices"), ("other", "a.b")):
        made.create_namespace(namespace)
        for table in tables:
            made.create_table((namespace, table), Schema())
    monkeypatch.setenv("PYICEBERG_CATALOG__NEAR__URI", uri)
    monkeypatch.chdir(tmp_path)
    return made


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("shop.order", "shop.orders"),
        ("shop.ORDERS", "shop.orders"),
        ("shop.price", "shop.prices"),
        ("other.`a.c`", "other.`a.b`"),
        ("shopp.orders", "shop.orders"),
        ("shopp.order", "shop.orders"),
        ("shopp.entirely_else", None),
        ("othr.`a.b`", "other.`a.b`"),
        ("shop.entirely_else", None),
        ("qqqq.zzzzz", None),
    ],
)
def test_the_message_names_the_table_that_is_near(catalog: Catalog, asked: str, meant: str | None) -> None:
    with pytest.raises(AddressError, match="expected a table, found none of that name in catalog near") as failure:
        nightkeep.plan(f"iceberg:near/{asked}")
    hint = "" if meant is None else f"; did you mean iceberg:near/{meant}?"
    assert str(failure.value).endswith(f"in catalog near{hint}")


def test_a_catalog_that_lists_nothing_adds_nothing(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise ForbiddenError("lists are not for you")

    monkeypatch.setattr(SqlCatalog, "list_tables", denied)
    monkeypatch.setattr(SqlCatalog, "list_namespaces", denied)
    with pytest.raises(AddressError, match=r"found none of that name in catalog near$"):
        nightkeep.plan("iceberg:near/shop.order")
