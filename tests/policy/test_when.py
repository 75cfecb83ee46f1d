"""`when:` in a policy: how it is read, and whether it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightkeep.errors import PolicyError
from nightkeep.model import Operation
from nightkeep.policy import load
from nightkeep.policy.when import METRICS, MetricComparison, metrics_of, parse_when, unmet

FACTS = {"files": 40, "small_files": 21, "deleted_ratio": 0.05, "bytes": 3 << 30, "level0_age_ms": 7_200_000}


def why(text: object) -> str | None:
    condition = parse_when(text).other
    assert condition is not None
    return unmet(condition, FACTS)


@pytest.mark.parametrize(
    "text",
    [
        "small_files > 20",
        "small_files>=21",
        "small_files != 20",
        "small_files = 21",
        "small_files == 21",
        "small_files < 22",
        "small_files <= 21",
        "deleted_ratio >= 5%",
        "deleted_ratio >= 0.05",
        "bytes > 2GB",
        "level0_age_ms >= 2h",
        {"any": ["files > 100", "small_files > 20"]},
        {"all": ["files > 10", {"any": ["files > 100", "small_files > 20"]}]},
    ],
)
def test_it_holds(text: object) -> None:
    assert why(text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("small_files  >  21", "expected small_files > 21, found small_files 21"),
        ("bytes > 3GB", "expected bytes > 3GB, found bytes 3,221,225,472"),
        (
            {"all": ["files > 10", "small_files < 5"]},
            "expected all of (files > 10, small_files < 5), found files 40, small_files 21",
        ),
        # A format without equality deletes has none that could be too many, or few enough.
        ("equality_deletes > 0", "expected equality_deletes > 0, found equality_deletes has no value"),
        ("equality_deletes < 9", "expected equality_deletes < 9, found equality_deletes has no value"),
    ],
)
def test_it_states_what_was_found(text: object, found: str) -> None:
    assert why(text) == found


@pytest.mark.parametrize("text", ["smal_files > 20", {"any": ["small_files > 20", "smal_files > 1"]}])
def test_an_unknown_metric_is_a_fault(text: object) -> None:
    with pytest.raises(ValueError) as raised:
        parse_when(text)
    expected, found = raised.value.args
    assert expected.startswith("a known metric in smal_files > ")
    assert found.startswith("smal_files; did you mean small_files? (known: files, bytes, small_files,")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("small_files", "a comparison such as"),
        ("20 < small_files", "a comparison such as"),
        (20, "a comparison"),
        ({"any": []}, "a comparison such as"),
        ({"any": "files > 1"}, "a comparison such as"),
        ({}, "a comparison"),
        ({"any": ["files > 1"], "all": ["files > 1"]}, "a comparison such as"),
        ("files > many", "a number, a share"),
        ({"optimise": "files > 1"}, "a comparison such as"),
        ("files > -1", "a number, a share"),
        ("files > 1e400", "a number, a share"),
        ("files > 1 or bytes > 2", "a number, a share"),
    ],
)
def test_what_is_no_condition_is_refused(text: object, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse_when(text)


def test_a_fault_has_its_line() -> None:
    text = "version: 1\ndefaults:\n  when: small_files\n"
    with pytest.raises(
        PolicyError, match=r"tables.yaml:3: defaults.when: expected a comparison such as .*, found 'small"
    ):
        load("tables.yaml", text=text)


def test_an_operation_may_have_its_own() -> None:
    when = parse_when({"optimize": "small_files > 20", "persist-deletes": "equality_deletes > 0"})
    assert str(when.of(Operation.OPTIMIZE)) == "small_files > 20"
    assert when.of(Operation.UPGRADE) is None
    assert parse_when(when) is when


def test_the_gentle_preset_waits_for_something_to_gain() -> None:
    gentle = load("tables.yaml", text="version: 1\ndefaults: {preset: gentle}").effective("delta:/t")
    condition = gentle.condition(Operation.OPTIMIZE)
    assert condition is not None
    assert unmet(condition, {"small_files": 20}) is None and unmet(condition, {"small_files": 19}) is not None
    assert metrics_of(condition) <= set(METRICS)
    assert load("tables.yaml", text="version: 1").effective("delta:/t").condition(Operation.OPTIMIZE) is None


@given(
    st.sampled_from(METRICS), st.sampled_from([">", ">=", "<", "<=", "=", "!="]), st.integers(0, 10**6), st.integers()
)
def test_a_comparison_is_that_of_python(metric: str, sign: str, value: int, fact: int) -> None:
    condition = parse_when(f"{metric} {sign} {value}").other
    assert isinstance(condition, MetricComparison)
    python = eval(f"fact {sign if sign != '=' else '=='} value", {"fact": fact, "value": value})
    assert (unmet(condition, {metric: fact}) is None) is python
