"""Prices and documents -> amounts, each of what was measured, with its formula on the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.pages.test_attention import run
from tests.pages.test_overview_pages import WORKED
from tests.pages.test_pages import Page
from tests.records.test_documents import NIGHT

from nightkeep.errors import PolicyError
from nightkeep.model import Operation, Outcome
from nightkeep.model.prices import Prices
from nightkeep.pages import Links, Overview, render_fleet, render_table
from nightkeep.pages.money import formulas, money_of
from nightkeep.policy import load
from nightkeep.records.index_rows import brief_document, row_of

ALL = Prices("EUR", gb_month=0.02, requests_1000=0.4, core_hour=3.6)
SWEPT = run(
    2,
    Outcome.VERIFIED,
    operation=Operation.SWEEP,
    committed_version=None,
    extra={"mode": "delete", "acted": {"files": 3, "bytes": 5 << 30}},
)
LATER = run(30, Outcome.VERIFIED, metrics=WORKED)


@pytest.mark.parametrize("of_index", [False, True])
def test_amounts_are_by_month_and_operation_and_of_what_was_measured(*, of_index: bool) -> None:
    history = [run(1, Outcome.VERIFIED, metrics=WORKED), run(2, Outcome.VERIFIED, metrics=WORKED), SWEPT, LATER]
    shown = [brief_document(row_of(each, 1)) if of_index else each for each in history]
    found = [(row.month, row.operation, row.work, row.storage, row.requests) for row in money_of(shown, ALL)]
    months = [f"{each.finished_at:%Y-%m}" for each in (LATER, SWEPT)]
    assert months[0] != months[1]
    assert found == [
        (months[0], "optimize", pytest.approx(0.002), None, pytest.approx(0.0144)),
        (months[1], "optimize", pytest.approx(0.004), None, pytest.approx(0.0288)),
        (months[1], "sweep", None, pytest.approx(0.1), None),
    ]


def test_without_a_price_there_is_no_amount() -> None:
    assert money_of([LATER, SWEPT], None) == ()
    assert money_of([LATER, SWEPT], Prices("EUR")) == () and formulas(Prices("EUR")) == ()
    (row,) = money_of([LATER, SWEPT], Prices("EUR", gb_month=1.0))
    assert (row.operation, row.work, row.storage) == ("sweep", None, 5.0)
    lost = replace(LATER, outcome=Outcome.CONFLICTED, committed_version=None)
    assert money_of([lost], Prices("EUR", requests_1000=1.0)) == ()


def test_pages_of_the_fleet_and_of_a_table_have_the_formula_where_the_policy_has_prices() -> None:
    priced, plain = Overview([LATER], prices=ALL), Overview([LATER])
    for render in (render_fleet, lambda *args, **more: render_table("shop.orders", *args, **more)):
        text = Page(render(priced, generated_at=NIGHT, links=Links())).text
        assert "CPU seconds of tasks / 3,600 x 3.6 for an hour of a core" in text and "0.002" in text
        assert "Money" not in Page(render(plain, generated_at=NIGHT, links=Links())).text


def test_prices_are_read_from_the_policy_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "tables.yaml"
    file.write_text("version: 1\nprices: {currency: EUR, gb_month: 0.02, core_hour: 0.05}\n")
    assert load(file).prices == Prices("EUR", 0.02, None, 0.05)
    file.write_text("version: 1\n")
    assert load(file).prices is None
    for wrong in ("gb_month: -1", "gb_month: much", "gb_week: 1", "core_hour: .inf"):
        file.write_text(f"version: 1\nprices: {{{wrong}}}\n")
        with pytest.raises(PolicyError, match=r"tables.yaml:2: prices"):
            load(file)
