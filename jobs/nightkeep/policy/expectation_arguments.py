"""A type of expectation and its arguments -> what is wrong with them, by the schemas that Great Expectations ships.

Great Expectations itself takes seconds to import, and DAG files read the policy whenever they are parsed. So its
package is only found here, and its schema files are read. Where it is not installed, as on a scheduler, every type and
argument is accepted: `are_known` is False then. Import this module only for a policy with expectations.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker, ValidationError
from jsonschema.validators import extend

_OURS: Final = frozenset(
    {
        "id",
        "meta",
        "notes",
        "result_format",
        "description",
        "catch_exceptions",
        "rendered_content",
        "severity",
        "windows",
        "batch_id",
        "metadata",
        "library_metadata",
    }
)
"""Properties of a schema that are no arguments: the policy has keys of their own for some, the check sets others."""
_PARAMETER: Final = "$PARAMETER"


def are_known() -> bool:
    """Whether types and arguments can be compared with schemas: Great Expectations is installed."""
    return find_spec("great_expectations") is not None


def wrong_type(name: str) -> tuple[str, str] | None:
    """What was expected and what was found instead of a type; None for one that can be asked of rows on Spark."""
    if name in types():
        return None
    if name in _index()["expectations"] or name in _index()["documented_absent"]:
        return "a type of expectation that Great Expectations can ask on Spark", repr(name)
    nearest = difflib.get_close_matches(name, types(), n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    return "a type of Great Expectations", f"{name!r}{hint}"


def wrong_arguments(name: str, kwargs: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    """For each argument that is wrong: its name, empty for one that is not there, what was expected, what was found."""
    properties = {key: schema for key, schema in _schema(name)["properties"].items() if key not in _OURS}
    for key in kwargs.keys() - properties.keys():
        nearest = difflib.get_close_matches(key, list(properties), n=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        yield key, f"an argument of {name}", f"unknown argument{hint} (known: {', '.join(sorted(properties))})"
    for key in _schema(name).get("required", ()):
        if key not in kwargs:
            yield "", f"{name} with {key}", f"only {', '.join(kwargs) or 'no argument'}"
    for key in properties.keys() & kwargs.keys():
        value = kwargs[key]
        if isinstance(value, Mapping) and _PARAMETER in value:
            yield key, "a value, as nothing sets parameters here", f"{_PARAMETER} {value[_PARAMETER]!r}"
            continue
        # YAML has dates where JSON has texts.
        text = value.isoformat() if isinstance(value, date) else value
        fault = _fault(properties[key], _schema(name).get("definitions", {}), text)
        if fault is not None:
            yield key, f"an argument as {name} takes it ({fault.message:.200})", f"{value!r:.80}"


def types() -> tuple[str, ...]:
    """The types that can be asked on Spark."""
    return tuple(name for name, entry in _index()["expectations"].items() if "Spark" in entry["supported_data_sources"])


@cache
def _index() -> Mapping[str, Any]:
    index: Mapping[str, Any] = json.loads((_folder() / "index.json").read_text(encoding="utf-8"))
    return index


@cache
def _schema(name: str) -> Mapping[str, Any]:
    file = _folder() / _index()["expectations"][name]["schema_file"]
    schema: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema


def _folder() -> Path:
    found = find_spec("great_expectations")
    assert found is not None and found.submodule_search_locations
    return Path(found.submodule_search_locations[0]) / "expectations" / "core" / "schemas"


def _multiple(validator: object, factor: float, value: object, schema: object) -> Iterator[ValidationError]:
    """As Great Expectations takes it: 0.07 is a multiple of 0.01, although 0.07 / 0.01 is no whole number."""
    if isinstance(value, int | float) and abs(value / factor - round(value / factor)) > 1e-6:
        yield ValidationError(f"{value} is not a multiple of {factor}")


_TIMES: Final = FormatChecker(formats=())
"""A bound is a number or a time: any other text is none that Great Expectations takes."""


def _is_a_time(value: object) -> bool:
    return not isinstance(value, str) or bool(datetime.fromisoformat(value))


for _name in ("date", "date-time"):
    _TIMES.checks(_name, raises=ValueError)(_is_a_time)


_Validator: Final = extend(Draft202012Validator, {"multipleOf": _multiple})


def _fault(schema: Mapping[str, Any], definitions: Mapping[str, Any], value: object) -> ValidationError | None:
    found: ValidationError | None = next(
        _Validator({**schema, "definitions": definitions}, format_checker=_TIMES).iter_errors(value), None
    )
    return found
