"""The plan of a read: what it says of the samples, and how large files become several splits."""

from pathlib import Path

import pytest

import nightkeep
from nightkeep.reading import plan as planning

SHOP = Path(__file__).parents[2] / "samples" / "paimon" / "shop.db"
ORDERS = f"paimon:{SHOP}/orders"


def test_a_plan_states_what_is_left_out_and_why() -> None:
    plan = nightkeep.read_plan(ORDERS, where="dt = '2026-11-02' AND order_id = 5000")
    assert str(plan).replace(str(SHOP), "") == (
        "paimon:/orders: raw read of version 7, 7 columns, where dt = '2026-11-02' AND order_id = 5000\n"
        "  reads 0 files in 0 splits, 0 bytes\n"
        "  2 of 3 partitions left out by partition values\n"
        "  1 of 2 buckets left out by the hash of the key\n"
        "  2 of 2 files left out by statistics of files\n"
        "  1 of 1 splits left out as nothing in them is left"
    )
    told = plan.to_json()
    assert told["left_out"]["buckets"] == {"of": 2, "left_out": 1, "why": "by the hash of the key"}  # type: ignore[index]
    assert (told["version"], told["view"], told["splits"]) == (7, "raw", 0)


def test_a_plan_of_a_merge_states_why_values_leave_out_nothing() -> None:
    text = str(nightkeep.read_plan(ORDERS, view="merge-on-read", where="amount < 0", columns="amount"))
    assert "files to merge by key: values of other columns leave out none of them" in text
    assert "left out by statistics of files" not in text


def test_large_files_are_cut_at_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = nightkeep.read_plan(ORDERS)
    monkeypatch.setattr(planning, "SPLIT_BYTES", 1_000)
    monkeypatch.setattr(planning, "OPEN_BYTES", 0)
    cut = nightkeep.read_plan(ORDERS)
    assert cut.splits > whole.splits == 1
    assert nightkeep.read(ORDERS).read_all().num_rows == 4800
    found = nightkeep.read(ORDERS, where="status = 'paid'").read_all()
    monkeypatch.undo()
    assert found.sort_by("order_id") == nightkeep.read(ORDERS, where="status = 'paid'").read_all().sort_by("order_id")
