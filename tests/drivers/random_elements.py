"""A Random -> columns of arrays and maps that a merge engine joins: their types, options and values.

Of columns named u... the order of elements is that of a Java hash table; of columns named o... it is that of rows.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

from tests.drivers.random_values import nth_value

ELEMENTS = ("INT", "STRING", "DOUBLE", "DATE", "DECIMAL(12, 2)", "BIGINT")
NUMBERS: Mapping[str, Any] = {"type": "ARRAY", "element": "INT"}
ROW: Mapping[str, Any] = {
    "type": "ROW",
    "fields": [
        {"id": 0, "name": "a", "type": "INT"},
        {"id": 1, "name": "b", "type": "STRING"},
        {"id": 2, "name": "s", "type": "DOUBLE"},
        {"id": 3, "name": "more", "type": NUMBERS},
    ],
}
FLAT: Mapping[str, Any] = {**ROW, "fields": ROW["fields"][:3]}
Options = dict[str, str]


def element_column(random: Random, number: int) -> tuple[str, str]:
    """A name and a type."""
    of_rows = {"type": "ARRAY", "element": random.choice((ROW, FLAT))}
    flat = {"type": "ARRAY", "element": random.choice((*ELEMENTS, FLAT))}
    plain = {"type": "ARRAY", "element": random.choice(ELEMENTS)}
    entries = {"type": "MAP", "key": random.choice(ELEMENTS), "value": random.choice(("DOUBLE", "STRING", FLAT))}
    prefix, kind = random.choice((("o", flat), ("o", flat), ("u", plain), ("u", entries), ("u", of_rows)))
    return f"{prefix}{number}", json.dumps(kind)


def element_function(random: Random, name: str, text: str, *, ignores: bool) -> Options:
    """A function of the column; `ignores`: it may ignore retracts."""
    kind, options = json.loads(text), Options()
    ignored = ignores and random.random() < 0.5
    if kind["type"] == "MAP":
        options["aggregate-function"] = "merge_map"
    elif name.startswith("o"):
        options |= _ordered(random, kind)
    elif isinstance(kind["element"], str):
        options |= {"aggregate-function": "collect", "distinct": "true"}
    else:
        options |= _keyed(random, partial=ignores and random.random() < 0.4)
        ignored |= options["aggregate-function"] == "nested_partial_update"
    if ignored:
        options["ignore-retract"] = "true"
    return {f"fields.{name}.{option}": value for option, value in options.items()}


def element_value(random: Random, name: str, text: str) -> Any:
    """Not null. A map is a list of pairs, a nested row a list.

    A merge of such a value with nothing changes nothing: Java's compactions merge the only row of a key, and its
    readers do not. So elements that are told apart differ, and no nested row or nested key is null.
    """
    kind = json.loads(text)
    count = random.randrange(4)
    if kind["type"] == "MAP":
        keys = _different(_value(kind["key"], random) for _ in range(count))
        return [[key, _maybe(random, lambda: _value(kind["value"], random))] for key in keys]
    element = kind["element"]
    if isinstance(element, str):
        values = [_maybe(random, lambda: _value(element, random)) for _ in range(count)]
        return _different(values) if name.startswith("u") else values
    rows = [_value(element, random) for _ in range(count)]
    if name.startswith("u"):
        rows = [
            [a, _value("STRING", random), *rest]
            for a, (_, _, *rest) in zip(random.sample(range(4), count), rows, strict=True)
        ]
    return _different(rows)


def _different(values: Iterable[Any]) -> list[Any]:
    return [json.loads(text) for text in dict.fromkeys(map(json.dumps, values))]


def alike(value: Any) -> Any:
    """The elements of a column u... in an order that is equal for equal values."""
    return None if value is None else sorted(value, key=json.dumps)


def _ordered(random: Random, kind: Mapping[str, Any]) -> Options:
    if isinstance(kind["element"], str):
        return {"aggregate-function": "collect"}
    if random.random() < 0.5:
        return {"aggregate-function": "collect", **random.choice(({}, {"distinct": "true"}))}
    return {"aggregate-function": "nested_update", **random.choice(({}, {"count-limit": "3"}))}


def _keyed(random: Random, *, partial: bool) -> Options:
    options = {"nested-key": random.choice(("a", "a,b")), **random.choice(({}, {"nested-key-null-strategy": "ignore"}))}
    if partial:
        return {"aggregate-function": "nested_partial_update", **options}
    sequence = random.choice(({}, {"nested-sequence-field": "s"}, {"nested-sequence-field": "b,s"}))
    return {"aggregate-function": "nested_update", **options, **sequence}


def _maybe(random: Random, make: Callable[[], Any]) -> Any:
    return None if random.random() < 0.2 else make()


def _value(kind: Any, random: Random) -> Any:
    """Few values, so that equal ones meet."""
    if not isinstance(kind, str):
        if kind["type"] == "ARRAY":
            return [random.randrange(3) for _ in range(random.randrange(3))]
        return [_maybe(random, lambda field=field: _value(field["type"], random)) for field in kind["fields"]]  # type: ignore[misc]
    if kind in ("DOUBLE", "STRING"):
        return random.choice({"DOUBLE": (0.0, "-0.0", 1.5, "NaN"), "STRING": ("", "a", "b", '\u00e9"')}[kind])
    return nth_value(kind, random.randrange(4))
