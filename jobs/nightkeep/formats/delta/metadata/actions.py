"""JSON lines of a commit <-> raw actions. Fields keep their values, also unknown ones; unknown actions are skipped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NoReturn

from nightkeep.errors import CorruptMetadata, kind_of, reason_of
from nightkeep.limits import DOCUMENT, RECORDS, WATCH, require_memory

Raw = Mapping[str, object]
Action = tuple[str, Raw]
"""An action's kind, such as "add", and its body."""
_LOOK_LINES: Final = 1 << 12
"""The process's memory is checked each time this many lines are parsed."""
_LONG_LINE: Final = 1 << 20
_HALF: Final = re.compile("[\ud800-\udfff]")


def parse_lines(data: bytes, *, subject: str) -> Iterator[Action]:
    """The known actions of newline-delimited JSON, in order and checked (PROTOCOL.md, "Actions").

    A line is an object with one known action. Unknown kinds are ignored, also beside a known one, and so are empty
    lines. Raises CorruptMetadata that names `subject` and the line.
    """
    require_lines(data, subject=subject)
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as failure:
        raise CorruptMetadata(subject, "UTF-8", reason_of(failure)) from failure
    for number, line in enumerate(lines, start=1):
        if number % _LOOK_LINES == 0:
            require_memory(subject)
        # JSON counts a carriage return as white space. A line of white space alone holds no action.
        if line and not line.isspace():
            yield from _action(line, f"{subject}, line {number}")


def require_lines(data: bytes, *, subject: str) -> None:
    """Raise RefusedTable for more lines than a file may have. Runs before a string is made for each line."""
    RECORDS.require(data.count(b"\n"), subject)
    WATCH.took(len(data), subject)


def parse_object(text: str, *, subject: str) -> dict[str, object]:
    """One JSON object without repeated names, NaN or infinities. Raises CorruptMetadata."""
    if len(text) > _LONG_LINE:
        DOCUMENT.require(len(text), subject)
    try:
        value = _STRICT.decode(text)
    except (ValueError, RecursionError) as failure:
        raise CorruptMetadata(subject, "a JSON object", f"{_length(text)}: {failure}") from None
    if not isinstance(value, dict):
        raise CorruptMetadata(subject, "a JSON object", f"{_length(text)} of another JSON value")
    return value


def check(kind: str, body: object, *, subject: str) -> Action:
    """The checked action: all required fields are present and every known field has its type. Null means absent."""
    if not isinstance(body, dict):
        raise CorruptMetadata(f"{subject}: {kind}", "an object", kind_of(body))
    for name, fits in _FIELDS[kind]:
        value = body.get(name)
        if value is None:
            if name in _REQUIRED[kind]:
                raise CorruptMetadata(f"{subject}: {kind}", f"the field {name}", ", ".join(map(str, body)) or "none")
        elif not fits(value):
            expected = f"{name} of type {_TYPE_NAMES[fits]}"
            raise CorruptMetadata(f"{subject}: {kind}", expected, kind_of(value))
    return kind, body


def line(kind: str, body: Raw) -> str:
    """An action as one line of a commit, without the newline. Keys keep their order.

    Characters are not escaped: delta-rs and DuckDB decode escapes from U+20000 on to other characters, and then skip
    the wrong files.
    """
    text = json.dumps({kind: body}, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    # JSON can contain a lone surrogate, which UTF-8 cannot encode: it stays escaped.
    return _HALF.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def in_force(single: Mapping[str, Raw], *, subject: str) -> tuple[Raw, Raw]:
    """The protocol and the metadata of a version. `single` has the last action of each kind. Raises CorruptMetadata."""
    for kind, name in (("protocol", "minReaderVersion"), ("metaData", "schemaString")):
        if kind not in single:
            raise CorruptMetadata(subject, f"a {kind} action", "none up to this version")
        if name not in single[kind]:
            raise CorruptMetadata(f"{subject}: {kind}", f"the field {name}", ", ".join(single[kind]) or "none")
    return single["protocol"], single["metaData"]


def vector_id(body: Raw) -> str | None:
    """The unique id of the deletion vector of an add or remove, None without one (PROTOCOL.md, "Derived Fields")."""
    vector = body.get("deletionVector")
    if not isinstance(vector, Mapping):
        return None
    offset = vector.get("offset")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


def long_value(body: Raw, name: str, *, subject: str) -> int:
    """The value of the field `name`, a 64-bit integer. Raises CorruptMetadata."""
    value = body.get(name)
    if type(value) is not int or not _long(value):
        raise CorruptMetadata(subject, f"{name} of type long", kind_of(value))
    return value


def text_map(body: Raw, name: str, *, subject: str) -> Mapping[str, str | None]:
    """The value of the field `name`, an object of texts; empty if it is absent. Raises CorruptMetadata."""
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise CorruptMetadata(subject, f"{name} of type map", kind_of(value))
    return value


def _action(text: str, subject: str) -> Iterator[Action]:
    # A null body means that the line has no such action: some writers list every kind.
    bodies = [(kind, body) for kind, body in parse_object(text, subject=subject).items() if body is not None]
    actions = [(kind, body) for kind, body in bodies if kind in _FIELDS]
    if len(actions) > 1:
        raise CorruptMetadata(subject, "one action", ", ".join(kind for kind, _ in actions))
    for kind, body in actions:
        yield check(kind, _without_nulls(body), subject=subject)


def _without_nulls(body: object) -> object:
    """The body without null fields. Null means absent, as in a checkpoint's columns."""
    if isinstance(body, dict) and None in body.values():
        return {name: value for name, value in body.items() if value is not None}
    return body


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The pairs as a dict. Repeated names are refused, because parsers do not agree on which of them counts."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a name occurs twice in one object")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)


def _length(text: str) -> str:
    """The length of a text for error messages: the text itself may come from any file."""
    return f"{len(text):,} characters"


def _text(value: object) -> bool:
    return isinstance(value, str)


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _long(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _int(value: object) -> bool:
    return type(value) is int and -(2**31) <= value < 2**31


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(type(item) is str for item in value)


def _map(value: object) -> bool:
    """Whether the value is an object of texts. Values may be null; the field decides what that means."""
    return isinstance(value, dict) and {type(item) for item in value.values()} <= _TEXT_OR_NULL


def _object(value: object) -> bool:
    return isinstance(value, dict)


def _vector(value: object) -> bool:
    return (
        isinstance(value, dict)
        and _text(value.get("storageType"))
        and _text(value.get("pathOrInlineDv"))
        and (value.get("offset") is None or _int(value["offset"]))
        and _int(value.get("sizeInBytes"))
        and _long(value.get("cardinality"))
    )


_TEXT_OR_NULL: Final = frozenset({str, type(None)})
_Fits = Callable[[object], bool]
_TYPE_NAMES: Final[Mapping[_Fits, str]] = {
    _text: "string",
    _flag: "boolean",
    _long: "long",
    _int: "int",
    _texts: "array of strings",
    _map: "map of strings",
    _object: "object",
    _vector: "deletion vector descriptor",
}
_FILE: Final[tuple[tuple[str, _Fits], ...]] = (
    ("path", _text),
    ("partitionValues", _map),
    ("size", _long),
    ("stats", _text),
    ("tags", _map),
    ("deletionVector", _vector),
    ("baseRowId", _long),
    ("defaultRowCommitVersion", _long),
    ("dataChange", _flag),
)
_FIELDS: Final[Mapping[str, tuple[tuple[str, _Fits], ...]]] = {
    "add": (*_FILE, ("modificationTime", _long), ("clusteringProvider", _text)),
    "remove": (*_FILE, ("deletionTimestamp", _long), ("extendedFileMetadata", _flag)),
    "cdc": (("path", _text),),
    "metaData": (
        ("id", _text),
        ("format", _object),
        ("schemaString", _text),
        ("partitionColumns", _texts),
        ("configuration", _map),
    ),
    "protocol": (
        ("minReaderVersion", _int),
        ("minWriterVersion", _int),
        ("readerFeatures", _texts),
        ("writerFeatures", _texts),
    ),
    "txn": (("appId", _text), ("version", _long)),
    "domainMetadata": (("domain", _text), ("configuration", _text), ("removed", _flag)),
    "commitInfo": (),
    "sidecar": (("path", _text), ("sizeInBytes", _long)),
    "checkpointMetadata": (("version", _long), ("tags", _map)),
}
_REQUIRED: Final[Mapping[str, frozenset[str]]] = {
    "add": frozenset({"path", "partitionValues", "size"}),
    "remove": frozenset({"path"}),
    "cdc": frozenset({"path"}),
    # Only the metadata in force needs a schema (in_force): logs of Delta Live Tables begin with an action without one.
    "metaData": frozenset(),
    "protocol": frozenset({"minReaderVersion", "minWriterVersion"}),
    "txn": frozenset({"appId", "version"}),
    "domainMetadata": frozenset({"domain"}),
    "commitInfo": frozenset(),
    "sidecar": frozenset({"path", "sizeInBytes"}),
    "checkpointMetadata": frozenset({"version"}),
}
