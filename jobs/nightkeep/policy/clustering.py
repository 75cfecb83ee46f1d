"""The clustering block of a policy -> the columns and the curve.

zorder: [a, b], hilbert: [a, b], or columns: [a, b]. The last names no curve and means Hilbert, which skips more files.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightkeep.model import Clustering, Curve

_CURVES = {"zorder": Curve.Z, "hilbert": Curve.HILBERT, "columns": Curve.HILBERT}
_OPTIONS = ("range_ids", "noise")
_COLUMNS = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "uniqueItems": True}
_IDS, _NOISE = 1000, False

CLUSTERING_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(_CURVES, _COLUMNS),
        "range_ids": {"type": "integer", "minimum": 2, "default": _IDS},
        "noise": {"type": "boolean", "default": _NOISE},
    },
    "oneOf": [{"required": [name]} for name in _CURVES],
    "additionalProperties": False,
}


def parse_clustering(value: object) -> Clustering:
    """The clustering of a policy's block. Raises ValueError(expected, found)."""
    if isinstance(value, Clustering):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"a mapping with {_one_of()}", repr(value))
    name, columns = _columns(value)
    ids, noise = value.get("range_ids", _IDS), value.get("noise", _NOISE)
    if type(ids) is not int or ids < 2:
        raise ValueError("range_ids as a whole number, at least 2", repr(ids))
    if type(noise) is not bool:
        raise ValueError("noise as true or false", repr(noise))
    return Clustering(columns, _CURVES[name], ids, noise)


def along(curve: Curve, columns: str, policy: Clustering | None) -> Clustering:
    """The clustering of a command: `columns`, separated by commas, along `curve`. The policy sets range ids and noise.

    Raises ValueError(expected, found).
    """
    names = _different(tuple(name.strip() for name in columns.split(",")), columns)
    return Clustering(names, curve, policy.range_ids if policy else _IDS, policy.noise if policy else _NOISE)


def _columns(value: Mapping[object, object]) -> tuple[str, tuple[str, ...]]:
    found = ", ".join(map(str, value)) or "an empty mapping"
    if value.keys() - _CURVES.keys() - set(_OPTIONS):
        raise ValueError(f"{_one_of()}, and optionally {' and '.join(_OPTIONS)}", found)
    chosen = [name for name in _CURVES if name in value]
    if len(chosen) != 1:
        raise ValueError(_one_of(), found)
    columns = value[chosen[0]]
    if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
        raise ValueError(f"{chosen[0]} with a list of columns", repr(columns))
    return chosen[0], _different(tuple(columns), repr(columns))


def _different(columns: tuple[str, ...], found: str) -> tuple[str, ...]:
    if not all(columns) or not columns or len(set(columns)) != len(columns):
        raise ValueError("different columns, at least one", found)
    return columns


def _one_of() -> str:
    return f"one of {', '.join(_CURVES)} with a list of columns"
