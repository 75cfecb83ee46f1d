"""What docs/audit.md lists of tables that no operation handles is what an audit does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from docs_tools.audit_features import MARK, PAGE, document
from tests.auditing.delta_lake import DAY, Action, Lake, commits
from tests.formats.delta.hand_made import HandMade
from tests.formats.delta.metadata.test_features import REFUSED, SET

from nightkeep.formats.delta.metadata.features import FEATURES
from nightkeep.model import Outcome

LISTED = dict(re.findall(r"^\| Delta \| `([^`]+)`[^|]*\| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE))
UNREAD, READ = "not provable", "proven"


def test_the_table_is_printed_from_the_code() -> None:
    assert PAGE.read_text() == document(PAGE.read_text())
    with pytest.raises(ValueError, match=re.escape(f"audit.md: expected the line {MARK.strip()}, found none")):
        document("# A page\n")


def test_every_refused_feature_is_listed() -> None:
    assert sorted(LISTED) == REFUSED


def listed(folder: Path, feature: str, names: tuple[str, ...]) -> Lake:
    """A compacted table whose protocol has the feature in the lists of `names`, and which uses it by its property."""
    lake = Lake(HandMade(folder / "clicks"), folder / "reports")

    def change(actions: list[Action]) -> list[Action]:
        for action in actions:
            for name in names if "protocol" in action else ():
                action["protocol"][name] = [*action["protocol"].get(name, ()), feature]
            if "metaData" in action and feature in SET:
                action["metaData"]["configuration"][SET[feature]] = "true"
        return actions

    first = lake.log / f"{0:020d}.json"
    actions = change([json.loads(line) for line in first.read_text().splitlines()])
    for start in (0, 10):
        lake.made.append(DAY, range(start, start + 10))
    lake.compact()
    first.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    return lake


# Without a column of their types these features are not used, and refuse nothing.
@pytest.mark.parametrize("feature", [name for name in REFUSED if not FEATURES[name].is_of_values])
def test_rows_of_delta_are_compared_as_the_table_states(tmp_path: Path, feature: str) -> None:
    of_writers = listed(tmp_path / "writers", feature, ("writerFeatures",))
    of_readers = listed(tmp_path / "readers", feature, ("readerFeatures", "writerFeatures"))
    found = [rows(lake) for lake in (of_writers, of_readers)]
    assert found == ([UNREAD, UNREAD] if LISTED[feature] == UNREAD else [READ, UNREAD])


def rows(lake: Lake) -> str:
    """The verdict on the newest commit; a table that cannot be opened has none."""
    document = lake.audit()
    if document.outcome is Outcome.REFUSED:
        return UNREAD
    return str(commits(document)[lake.made.version]["verdict"])
