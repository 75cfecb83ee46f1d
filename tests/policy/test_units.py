"""`window:` of a policy: for all operations, or for each."""

from __future__ import annotations

import json

import pytest
from tests.policy.schema import policy_schema

from nightkeep.errors import PolicyError
from nightkeep.model import Operation
from nightkeep.policy import load

NIGHT, DAY = "22:00-06:00 UTC", "10:00-16:00 Europe/Berlin"


def windows(block: object) -> dict[str, str]:
    text = json.dumps({"version": 1, "defaults": {"window": block}})
    chosen = load("tables.yaml", text=text).effective("delta:/t")
    return {each.value: str(window) for each in Operation if (window := chosen.window(each)) is not None}


def test_one_window_is_for_every_operation() -> None:
    assert windows(NIGHT) == {each.value: NIGHT for each in Operation}
    assert windows(None) == {}


def test_an_operation_has_its_own() -> None:
    assert windows({"optimize": NIGHT, "sweep": DAY}) == {"optimize": NIGHT, "sweep": DAY}


def test_a_mapping_is_reported_as_it_is_written() -> None:
    text = f"version: 1\ndefaults: {{window: {{optimize: '{NIGHT}', sweep: '{DAY}'}}}}"
    assert str(load("t.yaml", text=text).effective("delta:/t").settings.window) == f"optimize: {NIGHT}; sweep: {DAY}"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({}, "defaults.window: expected a window, or a mapping of some of upgrade, .*, found an empty"),
        ({"delete": NIGHT}, "defaults.window: expected a window, or a mapping of some of .*, found delete"),
        ({"optimize": "22:00-06:00"}, "defaults.window.optimize: expected a window with its time zone, .*, found '22"),
        ([NIGHT], "defaults.window: expected a window with its time zone"),
    ],
)
def test_what_is_no_window_is_named(block: object, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        windows(block)
    assert not policy_schema().is_valid({"version": 1, "defaults": {"window": block}})
