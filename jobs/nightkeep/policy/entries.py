"""A policy file -> its valid entries, each with its place, and the faults of the others.

An entry of a list that cannot be used concerns only the tables that it is about. Any other fault concerns the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ValidationError

from nightkeep.errors import PolicyError
from nightkeep.policy.document import Document, TeamDocument
from nightkeep.policy.files import read_policy
from nightkeep.policy.validation_messages import Fault, explain_faults
from nightkeep.policy.yaml_source import Location, YamlDocument, parse

_LISTS: Final = ("imports", "patterns", "tables", "discover")


@dataclass(frozen=True, slots=True)
class FaultyEntry:
    """An entry that cannot be used: its place in the file, its value, and why, one line per fault."""

    location: Location
    value: object
    fault: str

    def text(self, key: str) -> str | None:
        """The value of a key that is text, if the entry has one."""
        found = self.value.get(key) if isinstance(self.value, Mapping) else None
        return found if isinstance(found, str) else None


@dataclass(frozen=True, slots=True)
class FileEntries:
    """What a file holds. The entries of `document` at `places` in their lists are valid; `faulty` are the others."""

    source: YamlDocument
    document: Document | TeamDocument
    places: Mapping[str, tuple[int, ...]]
    faulty: tuple[FaultyEntry, ...] = ()


def read_entries(file: str, text: str | None, model: type[Document] | type[TeamDocument]) -> FileEntries:
    """The entries of the file, or of `text` instead of its content. Raises PolicyError for faults of the whole file,
    together with those of entries."""
    source = parse(_read(file) if text is None else text, file)
    values = {key: value for key, value in source.values.items() if value is not None}
    try:
        return FileEntries(source, model.model_validate(values), _places(values, ()))
    except ValidationError as error:
        faults = explain_faults(error, source, model)
    of_entries = {fault.location[:2] for fault in faults if _is_entry(fault.location)}
    if any(not _is_entry(fault.location) for fault in faults):
        raise PolicyError(_text(faults))
    faulty = tuple(
        FaultyEntry(place, _value(values, place), _text([fault for fault in faults if fault.location[:2] == place]))
        for place in sorted(of_entries, key=source.line)
    )
    left = {key: _without(key, value, of_entries) for key, value in values.items()}
    return FileEntries(source, _valid(model, left), _places(values, of_entries), faulty)


def _valid(model: type[BaseModel], values: Mapping[str, object]) -> Document | TeamDocument:
    found = model.model_validate(values)
    assert isinstance(found, Document | TeamDocument)
    return found


def _read(file: str) -> str:
    try:
        return read_policy(file)
    except OSError as error:
        raise PolicyError(f"{file}:1: expected a policy file, found {_found(error)}") from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{file}:1: expected a policy file in UTF-8, found {error}") from error


def _found(error: OSError) -> str:
    return "no such file" if isinstance(error, FileNotFoundError) else (error.strerror or str(error))


def _is_entry(location: Location) -> bool:
    return len(location) > 1 and location[0] in _LISTS


def _items(values: Mapping[str, object], key: str) -> list[object]:
    found = values.get(key)
    return found if isinstance(found, list) else []


def _value(values: Mapping[str, object], place: Location) -> object:
    return _items(values, str(place[0]))[int(place[1])]


def _without(key: str, value: object, faulty: set[Location]) -> object:
    if key not in _LISTS or not isinstance(value, list):
        return value
    return [item for i, item in enumerate(value) if (key, i) not in faulty]


def _places(values: Mapping[str, object], faulty: set[Location] | tuple[()]) -> dict[str, tuple[int, ...]]:
    return {key: tuple(i for i, _ in enumerate(_items(values, key)) if (key, i) not in faulty) for key in _LISTS}


def _text(faults: list[Fault]) -> str:
    return "\n".join(fault.text for fault in faults)
