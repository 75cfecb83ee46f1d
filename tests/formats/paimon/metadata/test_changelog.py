"""A table's options on its changelog -> what is refused by name, and what a compaction then tells."""

import pytest
from tests.formats.paimon.made_bucket import MadeBucket

from nightkeep.errors import RefusedTable
from nightkeep.formats.paimon.metadata.changelog import changelog_features, changelog_prefix, changelog_rules
from nightkeep.formats.paimon.metadata.features import refuse_schema

LOOKUP = {"bucket": "1", "changelog-producer": "lookup", "deletion-vectors.enabled": "true"}


@pytest.mark.parametrize(
    ("options", "feature"),
    [
        ({"changelog-file.prefix": "../changes-"}, "changelog-file.prefix = ../changes-"),
        ({"changelog-file.prefix": ""}, "changelog-file.prefix = "),
    ],
)
def test_what_is_refused_of_a_changelog(options: dict[str, str], feature: str) -> None:
    with pytest.raises(RefusedTable, match=feature):
        refuse_schema("shop.orders", MadeBucket({**LOOKUP, **options}).schema)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"changelog-file.format": "Parquet"},
        {"changelog-file.prefix": "c_1-"},
        {"deletion-vectors.enabled": "false", "merge-engine": "first-row"},
    ],
)
def test_what_is_not(options: dict[str, str]) -> None:
    refuse_schema("shop.orders", MadeBucket({**LOOKUP, **options}).schema)


def test_options_of_changelog_files_are_no_matter_without_any() -> None:
    schema = MadeBucket({"changelog-file.format": "avro", "changelog-producer": "none"}).schema
    assert list(changelog_features(schema)) == []
    assert changelog_rules(schema) is None


def test_which_rows_readers_know() -> None:
    full = {"bucket": "1", "changelog-producer": "full-compaction", "deletion-vectors.enabled": "false"}
    for options, level in (({}, 5), ({"num-levels": "3"}, 2), ({"num-sorted-run.compaction-trigger": "2"}, 2)):
        rules = changelog_rules(MadeBucket({**full, **options}).schema)
        assert rules is not None and rules.lowest_known == level
    refuse_schema("shop.orders", MadeBucket(full).schema)
    for options, kind in (
        ({"deletion-vectors.enabled": "true"}, "deletion vectors"),
        ({"merge-engine": "first-row"}, "first-row"),
    ):
        with pytest.raises(RefusedTable, match=f"changelog-producer = full-compaction with .*{kind}"):
            refuse_schema("shop.orders", MadeBucket({**full, **options}).schema)


def test_what_a_compaction_reports() -> None:
    schema = MadeBucket(LOOKUP).schema
    rules = changelog_rules(schema)
    assert rules is not None and not rules.silent_if_equal
    assert rules.compared(schema) == ("k", "v")
    assert changelog_prefix(schema) == "changelog-"
    silent = {"changelog-producer.row-deduplicate": "true", "changelog-producer.row-deduplicate-ignore-fields": "v,k "}
    schema = MadeBucket({**LOOKUP, **silent, "changelog-producer": "LOOKUP"}).schema
    rules = changelog_rules(schema)
    assert rules is not None and rules.silent_if_equal
    assert rules.compared(schema) == ("k",)
