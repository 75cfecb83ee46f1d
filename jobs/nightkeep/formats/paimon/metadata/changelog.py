"""A table's options -> whether and how a compaction writes a changelog for streaming readers.

With `changelog-producer = lookup` a compaction that upgrades level-0 rows writes changelog files beside its data files.
With `full-compaction` one that writes the top level does. Options as in A/CoreOptions.java of Paimon 2.0.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nightkeep.formats.paimon.metadata.locations import CHANGELOG_PREFIX
from nightkeep.formats.paimon.metadata.schema import PaimonSchema, keeps_first_row, option_bool, skips_level0, top_level

PRODUCER: Final = "changelog-producer"
LOOKUP: Final = "lookup"
FULL_COMPACTION: Final = "full-compaction"
_PREFIX: Final = "changelog-file.prefix"
PLAIN_PREFIX: Final = re.compile(r"[A-Za-z0-9_-]+")

SNAPSHOT_ORDERING: Final = "sequence.snapshot-ordering"
"""Rows of a later snapshot are newer (metadata.snapshot_order)."""


@dataclass(frozen=True, slots=True)
class ChangelogRules:
    """How a changelog is written. `silent_if_equal`: a row that is replaced by an equal one is no change.

    `ignored` are the columns that such a comparison leaves out. `lowest_known` is the lowest level whose rows streaming
    readers know. `of_first_rows`: a key is reported once, by its first row and the kind that it is stored with
    (FirstRowMergeFunctionWrapper).
    """

    silent_if_equal: bool
    ignored: frozenset[str]
    lowest_known: int
    of_first_rows: bool = False

    def compared(self, schema: PaimonSchema) -> tuple[str, ...]:
        """The columns by which two rows of a key are compared, in the order of the schema."""
        return tuple(field.name for field in schema.fields if field.name not in self.ignored)


def changelog_rules(schema: PaimonSchema) -> ChangelogRules | None:
    """None where a compaction writes no changelog."""
    producer = producer_of(schema)
    if producer not in (LOOKUP, FULL_COMPACTION):
        return None
    # Java splits at commas and keeps blanks (CoreOptions.changelogRowDeduplicateIgnoreFields).
    ignored = schema.options.get("changelog-producer.row-deduplicate-ignore-fields", "").split(",")
    return ChangelogRules(
        silent_if_equal=option_bool(schema, "changelog-producer.row-deduplicate"),
        ignored=frozenset(ignored),
        lowest_known=1 if producer == LOOKUP else top_level(schema),
        of_first_rows=keeps_first_row(schema),
    )


def producer_of(schema: PaimonSchema) -> str:
    """Who writes changelogs, by its name, which we may not know."""
    return schema.options.get(PRODUCER, "none").lower()


def looks_up(schema: PaimonSchema) -> bool:
    """Whether a compaction looks up what rows of level 0 meet below its output (LookupStrategy.needLookup)."""
    return skips_level0(schema) or producer_of(schema) == LOOKUP or option_bool(schema, "force-lookup")


def lowest_level_counts(schema: PaimonSchema) -> bool:
    """Whether of a key's rows above level 0 only the one on the lowest level counts, for readers as for compactions.

    A compaction that looked up made it of all of them (LookupMergeFunction.pickHighLevel). With vectors no other is
    left."""
    return looks_up(schema) and not skips_level0(schema)


def changelog_prefix(schema: PaimonSchema) -> str:
    return schema.options.get(_PREFIX, CHANGELOG_PREFIX)


def changelog_features(schema: PaimonSchema) -> Iterator[tuple[str, str]]:
    """Features of the changelog that we do not handle, each with an advice."""
    if changelog_rules(schema) is None:
        return
    if producer_of(schema) == FULL_COMPACTION and skips_level0(schema):
        kind = "merge-engine = first-row" if keeps_first_row(schema) else "deletion vectors"
        yield f"option {PRODUCER} = {FULL_COMPACTION} with {kind} is not handled", "Paimon does not allow it"
    if option_bool(schema, SNAPSHOT_ORDERING):
        feature = f"options {PRODUCER} = {producer_of(schema)} and {SNAPSHOT_ORDERING} = true are not handled together"
        yield feature, "rows of a changelog file would have sequence numbers that readers do not go by"
    if not PLAIN_PREFIX.fullmatch(changelog_prefix(schema)):
        yield f"option {_PREFIX} = {changelog_prefix(schema)} is not handled", "use letters, digits, - and _"
