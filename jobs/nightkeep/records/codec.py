"""Frozen dataclasses <-> JSON values. Keys are written in field order; unknown keys survive a round trip.

A field may have another key in JSON than its name, by `keyed`. A dataclass that keeps unknown keys has a field
`extra: Mapping[str, object]`. In JSON its entries follow the other keys at the same level. Handles str, int, float,
bool, datetime, enums, tuples, mappings and `X | None`.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from nightkeep.errors import CorruptMetadata

T = TypeVar("T")
_EXTRA, _KEY = "extra", "key"
_DEEPEST = 64


def keyed(key: str) -> Mapping[str, str]:
    """The metadata of a field that JSON keeps under this key, such as one of an earlier release."""
    return {_KEY: key}


def encode(value: object) -> Any:
    """The JSON value of a dataclass or of a field's value. Times become ISO 8601 with their offset."""
    if is_dataclass(value) and not isinstance(value, type):
        known = {_key(f): encode(getattr(value, f.name)) for f in fields(value) if f.name != _EXTRA}
        extra = encode(getattr(value, _EXTRA, {}))
        return known | {key: item for key, item in extra.items() if key not in known}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def decode(kind: type[T], value: object, subject: str) -> T:
    """A value of type `kind` from its JSON value. Raises CorruptMetadata, naming the place below `subject`."""
    decoded: T = _decode(kind, value, subject)
    return decoded


def _decode(kind: Any, value: object, subject: str) -> Any:
    origin = get_origin(kind)
    if origin is types.UnionType:
        inner = next(arg for arg in get_args(kind) if arg is not types.NoneType)
        return None if value is None else _decode(inner, value, subject)
    if origin is tuple:
        items = _expect(list, value, subject)
        return tuple(_decode(get_args(kind)[0], item, f"{subject}[{i}]") for i, item in enumerate(items))
    if origin is not None:
        entries = _expect(dict, value, subject).items()
        return {key: _decode(get_args(kind)[1], entry, f"{subject}.{key}") for key, entry in entries}
    if is_dataclass(kind):
        return _decode_dataclass(kind, _expect(dict, value, subject), subject)
    return _decode_scalar(kind, value, subject)


def _decode_dataclass(kind: Any, value: dict[str, object], subject: str) -> object:
    hints = _hints(kind)
    known = {_key(f): f for f in fields(kind) if f.name != _EXTRA}
    missing = [key for key, f in known.items() if key not in value and not _has_default(f)]
    if missing:
        raise CorruptMetadata(subject, f"the keys {', '.join(missing)}", "none")
    values = {
        f.name: _decode(hints[f.name], value[key], f"{subject}.{key}") for key, f in known.items() if key in value
    }
    extra = {key: item for key, item in value.items() if key not in known}
    _require_shallow(extra, subject)
    return kind(**values, **({_EXTRA: extra} if _EXTRA in hints else {}))


def _decode_scalar(kind: Any, value: object, subject: str) -> object:
    if kind is object:
        return value
    if kind is float:
        return float(_expect(int, value, subject) if isinstance(value, int) else _expect(float, value, subject))
    if kind in (str, int, bool):
        return _expect(kind, value, subject)
    text = _expect(str, value, subject)
    try:
        return _time(text) if kind is datetime else kind(text)
    except (ValueError, OverflowError):
        expected = ", ".join(kind) if issubclass(kind, StrEnum) else "an ISO 8601 time"
        raise CorruptMetadata(subject, expected, repr(text)) from None


def _expect(kind: type[T], value: object, subject: str) -> T:
    # JSON's true is not a number, although Python's True is an int.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise CorruptMetadata(subject, kind.__name__, f"{type(value).__name__} {value!r:.80}")
    return value


def _time(text: str) -> datetime:
    """Parse a time. Raises ValueError, and OverflowError for a time that UTC cannot represent."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment.astimezone(UTC)
    return moment


def _require_shallow(value: object, subject: str, depth: int = _DEEPEST) -> None:
    """Raises CorruptMetadata for a value that is nested too deeply: it could be read but not written again."""
    if not isinstance(value, Mapping | list | tuple):
        return
    if not depth:
        raise CorruptMetadata(subject, f"at most {_DEEPEST} levels", "more")
    for each in value.values() if isinstance(value, Mapping) else value:
        _require_shallow(each, subject, depth - 1)


def _key(field: Field[object]) -> str:
    key: str = field.metadata.get(_KEY, field.name)
    return key


def _has_default(field: Field[object]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


@cache
def _hints(kind: type) -> Mapping[str, object]:
    return get_type_hints(kind)
