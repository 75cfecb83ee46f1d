"""What a policy says of clustering -> the columns and the curve.

zorder: [a, b], hilbert: [a, b], or columns: [a, b], which leaves the curve open: Hilbert then, as it skips more.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightkeep.model import Clustering, Curve

_CURVES = {"zorder": Curve.Z, "hilbert": Curve.HILBERT, "columns": Curve.HILBERT}
_OPTIONS = ("range_ids", "noise")
_COLUMNS = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "uniqueItems": True}

CLUSTERING_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(_CURVES, _COLUMNS),
        "range_ids": {"type": "integer", "minimum": 2, "default": 1000},
        "noise": {"type": "boolean", "default": False},
    },
    "oneOf": [{"required": [name]} for name in _CURVES],
    "additionalProperties": False,
}


def parse_clustering(value: object) -> Clustering:
    """The clustering of a policy's block. Raises ValueError saying what was expected and what was found."""
    if isinstance(value, Clustering):
        return value
    expected = f"one of {', '.join(_CURVES)} with a list of columns"
    if not isinstance(value, Mapping):
        raise ValueError(f"{expected}, found {value!r}")
    chosen, unknown = set(value) & set(_CURVES), set(value) - set(_CURVES) - set(_OPTIONS)
    if len(chosen) != 1 or unknown:
        raise ValueError(f"{expected}, and optionally {' and '.join(_OPTIONS)}, found {', '.join(map(str, value))}")
    name = chosen.pop()
    columns = value[name]
    if not isinstance(columns, list | tuple) or not all(isinstance(column, str) for column in columns):
        raise ValueError(f"{name} with a list of columns, found {columns!r}")
    ids, noise = value.get("range_ids", 1000), value.get("noise", False)
    if type(ids) is not int or type(noise) is not bool:
        raise ValueError(f"range_ids as a whole number and noise as true or false, found {ids!r} and {noise!r}")
    return Clustering(tuple(columns), _CURVES[name], ids, noise)
