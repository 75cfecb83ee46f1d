"""The models of tables.yaml -> docs/policy-reference.md: every key, its values, where it may stand, what it means.

`make policy-reference` writes the page, and the schema for editors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from nightkeep.policy.address import NAME_PATTERN
from nightkeep.policy.document import DiscoverEntry, Document, TeamDocument
from nightkeep.policy.explain import shown_value
from nightkeep.policy.setting_types import Budget, ReportSettings
from nightkeep.policy.settings import (
    OPERATIONS,
    PRESETS,
    Audit,
    Check,
    Defaults,
    Expire,
    On,
    PatternEntry,
    Preset,
    Sweep,
    TableEntry,
)
from nightkeep.policy.units import DURATION_PATTERN, SIZE_PATTERN, WINDOW_PATTERN

_HEAD: Final = """# Policy reference

Every key of tables.yaml, from its model by `make policy-reference`. [policy.md](policy.md) explains them.

A key with a dot stands in a block: `check.enabled` is `check: {enabled: true}`. What is built in is the preset
`balanced`. `null` restores what holds where no layer sets anything."""

_SECTIONS: Final[Mapping[str, Mapping[str, type[BaseModel]]]] = {
    "The file": {"this file": Document, "files of teams": TeamDocument},
    "Settings of tables": {"`defaults`": Defaults, "`patterns`": PatternEntry, "`tables`": TableEntry},
    "Places where tables are": {"`discover`": DiscoverEntry},
}
_BELOW: Final = {model.__name__ for models in _SECTIONS.values() for model in models.values()}
"""Blocks with a section of their own."""
_NESTED: Final = {model.__name__ for model in (Budget, ReportSettings, Check, Sweep, Expire, Audit, On)}
_PATTERNS: Final = {
    SIZE_PATTERN: ("size", "such as `512MB`"),
    DURATION_PATTERN: ("duration", "such as `7d`, `36h`, `90m`"),
    WINDOW_PATTERN: ("window", "such as `02:00-06:00 Europe/Berlin`"),
    NAME_PATTERN: ("text", "one line, which does not start like an address"),
}
_BOUNDS: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "minItems": "{} or more",
}
_TYPES: Final = {"integer": "whole number", "number": "number", "string": "text"}


@dataclass(frozen=True, slots=True)
class _Key:
    """One row of the page."""

    name: str
    type: str
    allowed: str
    built_in: str
    meaning: str


def reference() -> str:
    """The page."""
    sections = [line for title, models in _SECTIONS.items() for line in (f"\n## {title}\n", *_section(models))]
    return "\n".join([_HEAD, *sections, *_presets(), *_operations()]) + "\n"


def _section(models: Mapping[str, type[BaseModel]]) -> list[str]:
    """A table of the keys of models, each with the places where it may stand."""
    places = dict[_Key, list[str]]()
    for place, model in models.items():
        schema = model.model_json_schema()
        for key in _keys(schema, schema.get("$defs", {}), ""):
            places.setdefault(key, []).append(place)
    return _table(
        ("key", "type", "allowed", "built in", "stands in", "meaning"),
        [(f"`{k.name}`", k.type, k.allowed, k.built_in, ", ".join(stands), k.meaning) for k, stands in places.items()],
    )


def _keys(block: Mapping[str, Any], blocks: Mapping[str, Any], prefix: str) -> Iterator[_Key]:
    for name, schema in block["properties"].items():
        inner = [each for each in map(_followed(blocks), _choices(schema)) if each.get("title") in _NESTED]
        if inner:
            yield from _keys(inner[0], blocks, f"{prefix}{name}.")
            continue
        kinds = [_kind(each, blocks) for each in _choices(schema)]
        yield _Key(
            f"{prefix}{name}",
            " or ".join(kind for kind, _ in kinds),
            "; ".join(filter(None, (a for _, a in kinds))),
            "required" if name in block.get("required", ()) else _built_in(schema),
            schema["description"],
        )


def _choices(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a value may be, without null."""
    return [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]


def _followed(blocks: Mapping[str, Any]) -> Any:
    return lambda schema: blocks[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _kind(schema: Mapping[str, Any], blocks: Mapping[str, Any]) -> tuple[str, str]:
    """The type and the allowed values of one choice."""
    found = _followed(blocks)(schema)
    if found.get("title") in _BELOW:
        return "block", "the keys below"
    if "const" in found or "enum" in found:
        return "one of", ", ".join(f"`{value}`" for value in found.get("enum", [found.get("const")]))
    if found.get("pattern") in _PATTERNS:
        return _PATTERNS[found["pattern"]]
    match found["type"]:
        case "boolean":
            return "switch", "`true`, `false`"
        case "array":
            return _list(found, blocks)
        case "object":
            return "mapping", ", ".join(f"`{key}`" for key in found.get("properties", ()))
        case other:
            return _TYPES[other], _bounds(found)


def _list(schema: Mapping[str, Any], blocks: Mapping[str, Any]) -> tuple[str, str]:
    kinds = dict(_kind(each, blocks) for each in _choices(schema["items"]))
    return f"list, each {' or '.join(kinds)}", ", ".join(filter(None, (_bounds(schema), *kinds.values())))


def _bounds(schema: Mapping[str, Any]) -> str:
    return ", ".join(text.format(schema[bound]) for bound, text in _BOUNDS.items() if bound in schema)


def _built_in(schema: Mapping[str, Any]) -> str:
    value = schema.get("default")
    return "" if value in (None, [], {}) else f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"


def _presets() -> list[str]:
    keys = dict.fromkeys(key for values in PRESETS.values() for key in values)
    shown = [preset for preset in Preset if PRESETS[preset]]
    rows = [
        (f"`{key}`", *(f"`{shown_value(key, PRESETS[p][key])}`" if key in PRESETS[p] else "" for p in shown))
        for key in keys
    ]
    return ["\n## Presets\n", *_table(("key", *(f"`{preset}`" for preset in shown)), rows)]


def _operations() -> list[str]:
    rows = [(name, ", ".join(f"`{each}`" for each in operations)) for name, operations in OPERATIONS.items()]
    head = "\n## Operations where a policy names none\n\nOf these, those that suit the table.\n"
    return [head, *_table(("format", "operations"), rows)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(_cell, line))} |" for line in lines]


def _cell(text: str) -> str:
    """The text as a cell: what stands for a name is no tag of HTML."""
    return text.replace("|", r"\|").replace("<", "&lt;")


if __name__ == "__main__":
    print(reference(), end="")
