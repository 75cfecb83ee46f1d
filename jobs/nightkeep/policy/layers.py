"""One block of tables.yaml -> its values by dotted key, each with the line that it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel

from nightkeep.policy.own_expectations import placed
from nightkeep.policy.settings import Settings
from nightkeep.policy.yaml_source import Location, YamlDocument


@dataclass(frozen=True, slots=True)
class Origin:
    """Who set a value: the layer, and its place in the file (None for built-in values)."""

    layer: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return self.layer if self.file is None else f"{self.file}:{self.line}  {self.layer}"


CALL: Final = Origin("call")
"""The options of a call."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The values that one block sets, by dotted key (`check.enabled`). `origin` is the block itself."""

    origin: Origin
    values: Mapping[str, tuple[object, Origin]]


def flat(block: BaseModel, prefix: str = "") -> dict[str, object]:
    """The fields of a block by dotted key, in the order of the model."""
    values: dict[str, object] = {}
    for name in type(block).model_fields:
        value = getattr(block, name)
        values |= flat(value, f"{prefix}{name}.") if isinstance(value, BaseModel) else {prefix + name: value}
    return values


BUILT_IN = flat(Settings())


def layer_of(name: str, block: Settings, location: Location, source: YamlDocument) -> Layer:
    """The layer of a block. Raises PolicyError for a suite of expectations that cannot be read."""
    values = {}
    for key, value in flat(block).items():
        here = (*location, *key.split("."))
        if key in BUILT_IN and here in source.lines:
            values[key] = (placed(value, here, source), Origin(name, source.file, source.line(here)))
    return Layer(Origin(name, source.file, source.line(location)), MappingProxyType(values))
