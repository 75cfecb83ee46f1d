"""The features of the Delta protocol -> docs/delta-features.md. `make feature-pages` writes the page."""

from __future__ import annotations

from typing import Final

from nightkeep.formats.delta.metadata.features import FEATURES, DeltaFeature

_SUITE: Final = "tests/formats/delta/metadata/test_features.py"
_HEAD: Final = """# Features of Delta tables

What a table's protocol may name, by the Delta protocol and delta-spark 4.4; anything else is refused as unknown.
Protocol versions up to (3, 7) are read; older ones imply the features that they brought.
Printed by `make feature-pages`.

| feature | what we do | test |
|---|---|---|"""


def document() -> str:
    """The table of features as Markdown."""
    rows = [f"| `{name}` | {_verdict(known)} | `{_proof(known)}[{name}]` |" for name, known in sorted(FEATURES.items())]
    return "\n".join((_HEAD, *rows, ""))


def _verdict(known: DeltaFeature) -> str:
    others = ("`sweep` and `expire`, which read no values, are done",) if known.is_of_values else ()
    refused = f"Refused{known.where and ' '}{known.where}: {known.refused}"
    sentence = ". ".join((known.handled or refused, *others))
    return f"{sentence}."


def _proof(known: DeltaFeature) -> str:
    """The test of our statement."""
    handled = "a_handled_feature_reads_as_the_engine_reads_it"
    if "variant" in known.handled.lower():
        handled = "variants_are_read_as_they_are_stored"
    return f"{_SUITE}::test_{handled if known.handled else 'a_refused_feature_is_named'}"


if __name__ == "__main__":
    print(document(), end="")
