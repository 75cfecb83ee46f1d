"""`spark:` of a policy -> Spark's settings of the sessions that work on a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from nightkeep.redaction import is_secret

SparkSettings: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values, sorted by name."""

_NAME: Final = re.compile(r"spark(\.[A-Za-z0-9_-]+)+")
_OF_THE_DEPLOYMENT: Final = frozenset({"spark.master", "spark.submit.deployMode", "spark.app.name"})

SPARK_SCHEMA: Final[dict[str, object]] = {
    "type": "object",
    "propertyNames": {"pattern": rf"^{_NAME.pattern}$"},
    "additionalProperties": {"type": ["string", "integer", "boolean"]},
}


def parse_spark(value: object) -> SparkSettings:
    """Raises ValueError(expected), or ValueError(expected, found, inside) for one setting: `inside` leads there."""
    if isinstance(value, tuple):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("a mapping of settings of Spark, such as spark.executor.memory: 8g")
    return tuple(sorted((str(name), _text(str(name), held)) for name, held in value.items()))


def _text(name: str, value: object) -> str:
    here = (name,)
    if _NAME.fullmatch(name) is None:
        raise ValueError("the name of a setting of Spark, such as spark.executor.memory", repr(name), here)
    if name in _OF_THE_DEPLOYMENT:
        raise ValueError("a setting that a session may have", f"{name}, which the connection or the option sets", here)
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise ValueError("a text, a whole number, true or false", repr(value), here)
    if is_secret(name, str(value)):
        raise ValueError("no secret in a policy: commands and Spark's pages show settings", "one", here)
    return str(value)
