"""`expectations:` of a policy -> expectations, checked but for the columns of a table that nobody has opened yet.

A list of them, or the path to a suite in Great Expectations' own JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from nightkeep.errors import PolicyError
from nightkeep.model.own_expectations import OwnExpectation, Severity
from nightkeep.policy.files import beside, read_policy
from nightkeep.policy.yaml_source import MAX_CHARACTERS, Location, YamlDocument, dotted, parse

_KEYS = ("type", "kwargs", "severity", "description", "notes", "meta", "id", "rendered_content", "expectation_context")
"""What Great Expectations writes of an expectation. The first four mean something here."""

EXPECTATIONS_SCHEMA: dict[str, object] = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "pattern": "^(expect|unexpected)_[a-z_]+$"},
                    "kwargs": {"type": "object"},
                    "severity": {"enum": list(Severity), "default": Severity.CRITICAL},
                    "description": {"type": "string", "minLength": 1},
                    "notes": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                    "meta": {"type": "object"},
                    "id": {"type": ["string", "null"]},
                    "rendered_content": {},
                    "expectation_context": {},
                },
                "required": ["type"],
                "additionalProperties": False,
            },
        },
    ]
}


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """A path as the policy writes it, relative to the policy file."""

    path: str


def parse_expectations(value: object) -> tuple[OwnExpectation, ...] | SuiteFile:
    """Raises ValueError(expected) about the whole, or ValueError(expected, found, inside) about a part: `inside` leads
    there."""
    if isinstance(value, SuiteFile) or (isinstance(value, tuple) and all(isinstance(e, OwnExpectation) for e in value)):
        return value
    if isinstance(value, str) and value:
        return SuiteFile(value)
    if not isinstance(value, list):
        raise ValueError("a list of expectations, or the path to a suite in JSON")
    return tuple(_expectation(item, (i,)) for i, item in enumerate(value))


def placed(value: object, location: Location, source: YamlDocument) -> object:
    """Expectations with their places in the file; a suite is read. Raises PolicyError for a suite that cannot be."""
    if isinstance(value, SuiteFile):
        return _suite(value, f"{source.at(location)}: {dotted(location)}", source.file)
    if isinstance(value, tuple):
        return tuple(
            _at(each, (*location, i), source) if isinstance(each, OwnExpectation) else each
            for i, each in enumerate(value)
        )
    return value


def _expectation(item: object, here: Location) -> OwnExpectation:
    if not isinstance(item, Mapping) or "type" not in item:
        raise ValueError("an expectation with type, kwargs and severity", _shown(item), here)
    for key in item.keys() - set(_KEYS):
        raise ValueError(f"one of {', '.join(_KEYS[:6])}", "unknown key", (*here, key))
    name, kwargs = item["type"], item.get("kwargs", {})
    severity, description = item.get("severity") or Severity.CRITICAL, item.get("description")
    if severity not in set(Severity):
        raise ValueError(f"one of {', '.join(Severity)}", repr(severity), (*here, "severity"))
    if not isinstance(kwargs, Mapping):
        raise ValueError("a mapping of arguments", _shown(kwargs), (*here, "kwargs"))
    if description is not None and not (isinstance(description, str) and description):
        raise ValueError("text", _shown(description), (*here, "description"))
    _require_known(name, kwargs, here)
    return OwnExpectation(name, dict(kwargs), Severity(severity), description)


def _require_known(name: object, kwargs: Mapping[str, object], here: Location) -> None:
    # What parses DAG files needs no schemas where no policy has expectations.
    from nightkeep.policy import expectation_arguments as arguments  # noqa: PLC0415 -- jsonschema

    if not isinstance(name, str):
        raise ValueError("a type of Great Expectations", _shown(name), (*here, "type"))
    if not arguments.are_known():
        return
    wrong = arguments.wrong_type(name)
    if wrong is not None:
        raise ValueError(*wrong, (*here, "type"))
    for argument, expected, found in arguments.wrong_arguments(name, kwargs):
        raise ValueError(expected, found, (*here, "kwargs", *([argument] if argument else [])))


def _at(each: OwnExpectation, here: Location, source: YamlDocument) -> OwnExpectation:
    places = {name: (*here, "kwargs", name) for name in each.kwargs} | {"": here}
    return replace(each, places={name: f"{source.at(place)}: {dotted(place)}" for name, place in places.items()})


def _suite(file: SuiteFile, subject: str, policy: str) -> tuple[OwnExpectation, ...]:
    path = beside(policy, file.path)
    try:
        text = read_policy(path)
        held = json.loads(text) if len(text) <= MAX_CHARACTERS else None
    except (OSError, ValueError, RecursionError) as failure:
        raise PolicyError(f"{subject}: expected a suite of Great Expectations in JSON, found {failure}") from failure
    items = held.get("expectations") if isinstance(held, dict) else None
    if not isinstance(items, list):
        raise PolicyError(f"{subject}: expected a suite of Great Expectations 1, found no list expectations in {path}")
    # JSON is YAML, so far as lines matter.
    source = parse(text, path)
    return tuple(_of_suite(items, subject, source))


def _of_suite(items: list[object], subject: str, source: YamlDocument) -> Iterator[OwnExpectation]:
    for i, item in enumerate(items):
        try:
            yield _at(_expectation(item, ("expectations", i)), ("expectations", i), source)
        except ValueError as fault:
            expected, found, inside = fault.args
            place = f"{source.at(inside)}: {dotted(inside)}"
            raise PolicyError(f"{subject}: {place}: expected {expected}, found {found}") from fault


def _shown(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case Mapping():
            return "a mapping without a type" if "type" not in value else "a mapping"
        case list():
            return "a list"
        case _:
            return repr(value)
