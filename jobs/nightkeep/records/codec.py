"""Frozen dataclasses <-> JSON values. Keys are written in field order; unknown keys survive a round trip.

A field may have another key in JSON than its name, by `keyed`. A dataclass that keeps unknown keys has a field
`extra: Mapping[str, object]`. In JSON its entries follow the other keys at the same level. Handles str, int, float,
bool, datetime, enums, tuples, mappings and `X | None`.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, partial
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from nightkeep.errors import CorruptMetadata

T = TypeVar("T")
_EXTRA, _KEY = "extra", "key"
_DEEPEST = 64
_PLAIN = frozenset({str, int, float, bool})


def keyed(key: str) -> Mapping[str, str]:
    """The metadata of a field that JSON keeps under this key, such as one of an earlier release."""
    return {_KEY: key}


def encode(value: object) -> Any:
    """The JSON value of a dataclass or of a field's value. Times become ISO 8601 with their offset."""
    if value is None or type(value) in _PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        known = {key: encode(getattr(value, name)) for key, name in _keys(type(value))}
        extra = encode(getattr(value, _EXTRA, {}))
        return known | {key: item for key, item in extra.items() if key not in known}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


@cache
def _keys(kind: Any) -> tuple[tuple[str, str], ...]:
    """The key and the name of each field of a dataclass."""
    return tuple((_key(f), f.name) for f in fields(kind) if f.name != _EXTRA)


Decoder = Callable[[object, "Place"], Any]
Place = tuple["Place | None", str]
"""Where a value is: the place around it, and its own part of the name. A name is made for an error alone."""


def decode(kind: type[T], value: object, subject: str) -> T:
    """A value of type `kind` from its JSON value. Raises CorruptMetadata, naming the place below `subject`."""
    any_kind: Any = kind
    decoded: T = _decoder(any_kind)(value, (None, subject))
    return decoded


@cache
def _decoder(kind: Any) -> Decoder:
    """What decodes values of a type. It is made once: a history has some ten thousand documents."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is types.UnionType:
        inner = _decoder(next(each for each in arguments if each is not types.NoneType))
        return lambda value, place: None if value is None else inner(value, place)
    if origin is tuple:
        item = _decoder(arguments[0])
        return lambda value, place: tuple(
            item(each, (place, f"[{i}]")) for i, each in enumerate(_expect(list, value, place))
        )
    if origin is not None:
        entry = _decoder(arguments[1])
        return lambda value, place: {
            key: entry(each, (place, f".{key}")) for key, each in _expect(dict, value, place).items()
        }
    return _dataclass_decoder(kind) if is_dataclass(kind) else partial(_decode_scalar, kind)


def _dataclass_decoder(kind: Any) -> Decoder:
    hints = get_type_hints(kind)
    known = {_key(f): (f.name, _decoder(hints[f.name]), f".{_key(f)}") for f in fields(kind) if f.name != _EXTRA}
    required = [_key(f) for f in fields(kind) if f.name != _EXTRA and not _has_default(f)]

    def decoded(value: object, place: Place) -> object:
        held = _expect(dict, value, place)
        missing = [key for key in required if key not in held]
        if missing:
            raise CorruptMetadata(_name(place), f"the keys {', '.join(missing)}", "none")
        values = {name: of(held[key], (place, part)) for key, (name, of, part) in known.items() if key in held}
        extra = {key: item for key, item in held.items() if key not in known}
        _require_shallow(extra, place)
        return kind(**values, **({_EXTRA: extra} if _EXTRA in hints else {}))

    return decoded


def _decode_scalar(kind: Any, value: object, place: Place) -> object:
    if kind is object:
        return value
    if kind is float:
        return float(_expect(int, value, place) if isinstance(value, int) else _expect(float, value, place))
    if kind in (str, int, bool):
        return _expect(kind, value, place)
    text = _expect(str, value, place)
    try:
        return _time(text) if kind is datetime else kind(text)
    except (ValueError, OverflowError):
        expected = ", ".join(kind) if issubclass(kind, StrEnum) else "an ISO 8601 time"
        raise CorruptMetadata(_name(place), expected, repr(text)) from None


def _name(place: Place) -> str:
    around, part = place
    return part if around is None else f"{_name(around)}{part}"


def _expect(kind: type[T], value: object, place: Place) -> T:
    # JSON's true is not a number, although Python's True is an int.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise CorruptMetadata(_name(place), kind.__name__, f"{type(value).__name__} {value!r:.80}")
    return value


def _time(text: str) -> datetime:
    """Parse a time. Raises ValueError, and OverflowError for a time that UTC cannot represent."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment.astimezone(UTC)
    return moment


def _require_shallow(value: object, place: Place, depth: int = _DEEPEST) -> None:
    """Raises CorruptMetadata for a value that is nested too deeply: it could be read but not written again."""
    if not isinstance(value, Mapping | list | tuple):
        return
    if not depth:
        raise CorruptMetadata(_name(place), f"at most {_DEEPEST} levels", "more")
    for each in value.values() if isinstance(value, Mapping) else value:
        _require_shallow(each, place, depth - 1)


def _key(field: Field[object]) -> str:
    key: str = field.metadata.get(_KEY, field.name)
    return key


def _has_default(field: Field[object]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING
