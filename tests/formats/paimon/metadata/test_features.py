"""What is refused of a Paimon table: a case for each, and the page that lists them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from docs_tools.paimon_features import EXAMPLES, Example, document, refusal

from nightkeep.formats.paimon.metadata import features
from nightkeep.formats.paimon.metadata.merge_engine import Function

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_what_the_page_lists_is_refused(number: int) -> None:
    """By its own name: the value that makes the difference is in the refusal."""
    example = EXAMPLES[number]
    refused = refusal(example)
    assert refused is not None
    named = [word for pair in example.options.items() for word in pair] + list(example.columns)
    assert any(word in refused.feature for word in [*named, *(word.rpartition(".")[2] for word in named)])


def test_no_two_lines_of_the_page_are_equal() -> None:
    lines = [line for line in document().splitlines() if line.startswith("| ")]
    assert len(lines) == len(set(lines)) == len(EXAMPLES) + 1


def test_every_option_that_is_refused_has_a_line() -> None:
    page = document()
    options = ["branch", *features._VALUES, *features._FLAGS, *features._PRESENT, *features._INDEXED]
    options += ["metadata.iceberg.storage"]
    assert [option for option in options if f"option {option}" not in page] == []


UNUSED: tuple[tuple[Mapping[str, str], tuple[str, ...]], ...] = (
    ({"data-file.external-paths": "file:/elsewhere"}, ("k", "p")),
    ({"data-file.external-paths": "file:/elsewhere", "data-file.external-paths.strategy": "NONE"}, ("k", "p")),
    ({"data-file.external-paths": "", "data-file.external-paths.strategy": "round-robin"}, ("k", "p")),
    ({"metadata.iceberg.format-version": "2", "metadata.iceberg.previous-versions-max": "3"}, ("k", "p")),
    ({"metadata.iceberg.storage": "DISABLED"}, ("k", "p")),
    ({"visibility-callback.enabled": "false", "visibility-callback.timeout": "1 min"}, ("k", "p")),
    ({"pk-vector.index.columns": "t", "pk-btree.index.columns": "n"}, ()),
    ({"pk-vector.index.type": "ivf"}, ("k", "p")),
    ({"commit.callbacks": ""}, ("k", "p")),
)
"""Options that have no effect on a table with these keys."""


@pytest.mark.parametrize(("options", "keys"), UNUSED)
def test_an_option_without_effect_refuses_nothing(options: Mapping[str, str], keys: tuple[str, ...]) -> None:
    assert refusal(Example(options, keys=keys)) is None


def test_a_table_without_any_of_it_is_handled() -> None:
    assert refusal(Example({})) is None
    for function in (Function.SUM, Function.MAX, Function.LAST_VALUE):
        options = {"merge-engine": "aggregation", "fields.n.aggregate-function": str(function)}
        assert refusal(Example(options)) is None


def test_the_page_is_what_the_code_states() -> None:
    assert (ROOT / "docs/paimon-features.md").read_text() == document()
