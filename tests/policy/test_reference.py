"""docs/policy-reference.md: current, and complete."""

from __future__ import annotations

import re
from pathlib import Path

from docs_tools.policy_reference import reference
from pydantic import BaseModel

from nightkeep.policy.document import Document
from nightkeep.policy.layers import BUILT_IN
from nightkeep.policy.settings import Defaults, PatternEntry, TableEntry

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `([a-z_.]+)` \| (.+) \| (.*) \| (.*) \| (.+) \| (.+) \|$", re.MULTILINE)


def section(title: str) -> dict[str, tuple[str, ...]]:
    """The rows of a section by key."""
    text = reference().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return {key: rest for key, *rest_of in ROW.findall(text) for rest in (tuple(rest_of),)}


def own_keys(model: type[BaseModel]) -> set[str]:
    return set(model.model_fields) - set(Defaults.model_fields)


def test_the_page_is_current() -> None:
    assert (ROOT / "docs/policy-reference.md").read_text(encoding="utf-8") == reference(), "make policy-reference"


def test_every_setting_is_there_with_where_it_may_stand() -> None:
    rows = section("Settings of tables")
    assert {key for key, row in rows.items() if row[3] == "`defaults`, `patterns`, `tables`"} == BUILT_IN.keys()
    others = {key.partition(".")[0] for key in rows.keys() - BUILT_IN.keys()}
    assert others == {"tables_per_session"} | own_keys(PatternEntry) | own_keys(TableEntry)
    assert {key.partition(".")[0] for key in section("The file")} == set(Document.model_fields)


def test_rows_have_what_the_model_states() -> None:
    rows = section("Settings of tables")
    assert rows["verify"][:3] == ("one of", "`full`, `touched`", "`full`")
    assert rows["task_memory"][:3] == ("size", "such as `512MB`", "`2GB`")
    assert rows["sweep.max_share"][:3] == ("number", "above 0, at most 1", "`0.5`")
    assert rows["match"][2:4] == ("required", "`patterns`")
    assert section("Places where tables are")["depth"][:2] == ("whole number", "at least 1, at most 16")
    assert "| `check.byte_budget` | `1GB` | `1TB` |" in reference()
