"""The features of Iceberg tables -> docs/iceberg-features.md. `make feature-pages` writes the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightkeep.formats.iceberg.metadata.features import FEATURES, IcebergFeature

_SUITE: Final = "tests/formats/iceberg/metadata/test_features.py"
OWN_TESTS: Final[Mapping[str, str]] = {
    "default values in ORC files": (
        "tests/engines/iceberg/test_other_formats.py::test_defaults_that_java_does_not_read_are_refused"
    ),
    "equality deletes by structs or fields within them": (
        "tests/formats/iceberg/rewrite/test_persist_plan.py::test_columns_without_one_meaning_of_equal_are_refused"
    ),
    "identity partition values unlike the rows'": (
        "tests/engines/iceberg/test_two_values.py::test_a_partition_with_two_values_is_refused_by_name"
    ),
    "metadata that Paimon or Delta writes of its own tables": (
        "tests/engines/iceberg/test_written_by_paimon.py::test_nothing_is_rewritten_expired_or_written"
    ),
    "sort orders": ("tests/formats/iceberg/rewrite/test_own_order.py::test_a_night_sorts_the_files_of_each_partition"),
    "sort orders that are not understood": (
        "tests/formats/iceberg/rewrite/test_own_order.py::test_an_order_that_rows_cannot_be_sorted_by_is_named"
    ),
    "type variant": "tests/engines/iceberg/test_variants.py::test_variants_are_packed_as_they_are_stored",
    "statistics files": (
        "tests/formats/iceberg/catalog/test_catalog.py::test_what_metadata_states_beyond_the_commit_is_kept"
    ),
    "files in object stores": ("tests/object_store/test_runs.py::test_pyiceberg_reads_on_s3_what_java_read_before"),
}
"""Features whose test is not the one that all handled or all refused features share."""

_HEAD: Final = """# Features of Iceberg tables

What a table's metadata may hold, by the Iceberg table spec, format versions 1 to 3.
Printed by `make feature-pages`.

| feature | what we do | test |
|---|---|---|"""


def document() -> str:
    """The table of features as Markdown."""
    rows = (f"| {name} | {_verdict(feature)} | `{proof(name)}` |" for name, feature in FEATURES.items())
    return "\n".join((_HEAD, *rows, ""))


def proof(name: str) -> str:
    """The test of our statement on a feature."""
    shared = "a_handled_feature_is_read" if FEATURES[name].handled else "a_refused_feature_is_named"
    return OWN_TESTS.get(name) or f"{_SUITE}::test_{shared}[{name}]"


def _verdict(known: IcebergFeature) -> str:
    refused = f"{known.without}; all else is refused: {known.refused}" if known.without else f"Refused: {known.refused}"
    return f"{known.handled or refused}."


if __name__ == "__main__":
    print(document(), end="")
