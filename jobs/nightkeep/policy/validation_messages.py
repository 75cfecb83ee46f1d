"""Pydantic's errors -> messages for people: file:line, key, what was expected, what was found."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from nightkeep.policy.document import DiscoverEntry
from nightkeep.policy.setting_types import AuditBudget, Budget, PriceList, ReportSettings
from nightkeep.policy.settings import Audit, Check, Defaults, Expire, On, PatternEntry, Sweep, TableEntry
from nightkeep.policy.yaml_source import Location, YamlDocument, dotted

_ENTRIES: dict[str | int, type[BaseModel]] = {
    "defaults": Defaults,
    "patterns": PatternEntry,
    "tables": TableEntry,
    "discover": DiscoverEntry,
}
_BLOCKS: dict[str | int, type[BaseModel]] = {
    "audit": Audit,
    "audit_budget": AuditBudget,
    "budget": Budget,
    "check": Check,
    "expire": Expire,
    "on": On,
    "prices": PriceList,
    "reports": ReportSettings,
    "sweep": Sweep,
}
_EXPECTED = {
    "bool_type": "true or false",
    "float_type": "a number",
    "int_type": "a whole number",
    "model_type": "a mapping of settings",
    "string_type": "text",
    "string_pattern_mismatch": "one line of text without spaces around it",
    "string_too_short": "text",
    "too_short": "at least one",
    "tuple_type": "a list",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its place in the file, and a line about it."""

    location: Location
    text: str


def explain_faults(error: ValidationError, source: YamlDocument, model: type[BaseModel]) -> list[Fault]:
    """Every fault of a file that should be a `model`, in the order of the file."""
    faults = [Fault(_location(fault), _sentence(fault, source, model)) for fault in error.errors()]
    return sorted(faults, key=lambda fault: source.line(fault.location))


def _sentence(fault: ErrorDetails, source: YamlDocument, model: type[BaseModel]) -> str:
    location = _location(fault)
    where = f"{source.at(location)}: {dotted(location)}"
    if fault["type"] == "extra_forbidden":
        return f"{where}: {_unknown_key(location, model)}"
    if fault["type"] == "missing":
        return f"{where}: expected this key, found none"
    expected, found = _reason(fault)
    return f"{where}: expected {expected}, found {found}{_hint(fault['input'], expected)}"


def _location(fault: ErrorDetails) -> Location:
    """The place of the fault, inside of the setting where a parser of ours reports it."""
    raised = fault.get("ctx", {}).get("error")
    inside: Location = raised.args[2] if isinstance(raised, ValueError) and len(raised.args) > 2 else ()
    return (*fault["loc"], *inside)


def _reason(fault: ErrorDetails) -> tuple[str, str]:
    """What was expected and what was found. One of our parsers may name the wrong part of its input."""
    raised, shown = fault.get("ctx", {}).get("error"), _shown(fault["input"])
    match raised.args if isinstance(raised, ValueError) else ():
        case (expected, found, *_):
            return str(expected), str(found)
        case (expected,):
            return str(expected), shown
        case _:
            return _EXPECTED.get(fault["type"]) or fault["msg"].removeprefix("Input should be "), shown


def _unknown_key(location: Location, model: type[BaseModel]) -> str:
    known = sorted(_model_around(location, model).model_fields)
    nearest = difflib.get_close_matches(str(location[-1]), known, n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    return f"unknown key{hint} (known: {', '.join(known)})"


def _model_around(location: Location, model: type[BaseModel]) -> type[BaseModel]:
    if len(location) == 1:
        return model
    return _BLOCKS.get(location[-2]) or _ENTRIES[location[0]]


def _shown(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return repr(value)


def _hint(value: object, expected: str) -> str:
    """A hint with the nearest of the values that pydantic lists for an enum."""
    choices = expected.split("'")[1::2]
    nearest = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    return f"; did you mean {nearest[0]}?" if nearest else ""
