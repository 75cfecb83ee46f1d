"""A table's options -> whether and how a compaction tells streaming readers what it changed.

With `changelog-producer = lookup` a compaction that lifts level-0 rows writes changelog files beside its data files.
Options as in A/CoreOptions.java of Paimon 2.0.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nightkeep.formats.paimon.metadata.locations import CHANGELOG_PREFIX
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, has_vectors, option_bool

PRODUCER: Final = "changelog-producer"
LOOKUP: Final = "lookup"
_PREFIX: Final = "changelog-file.prefix"
_PLAIN_PREFIX: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class ChangelogRules:
    """How changes are told. `silent_if_equal`: a row that is replaced by an equal one is no change.

    `ignored` are the columns that such a comparison leaves out.
    """

    silent_if_equal: bool
    ignored: frozenset[str]

    def compared(self, schema: PaimonSchema) -> tuple[str, ...]:
        """The columns by which two rows of a key are compared, in the order of the schema."""
        return tuple(field.name for field in schema.fields if field.name not in self.ignored)


def changelog_rules(schema: PaimonSchema) -> ChangelogRules | None:
    """None where a compaction tells nothing."""
    if schema.options.get(PRODUCER, "none").lower() != LOOKUP:
        return None
    # Java splits at commas and keeps blanks (CoreOptions.changelogRowDeduplicateIgnoreFields).
    ignored = schema.options.get("changelog-producer.row-deduplicate-ignore-fields", "").split(",")
    return ChangelogRules(option_bool(schema, "changelog-producer.row-deduplicate"), frozenset(ignored))


def changelog_prefix(schema: PaimonSchema) -> str:
    return schema.options.get(_PREFIX, CHANGELOG_PREFIX)


def changelog_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """Features of the changelog that we do not handle, each with an advice."""
    if changelog_rules(schema) is None:
        return
    if not has_vectors(schema):
        yield (
            f"option {PRODUCER} = {LOOKUP} without deletion vectors is not handled",
            ("compacting without writing that changelog would lose changes for streaming readers"),
        )
    form = schema.options.get("changelog-file.format", "parquet")
    if form.lower() != "parquet":
        yield f"option changelog-file.format = {form} is not handled", "only Parquet files are written"
    if not _PLAIN_PREFIX.fullmatch(changelog_prefix(schema)):
        yield f"option {_PREFIX} = {changelog_prefix(schema)} is not handled", "use letters, digits, - and _"
