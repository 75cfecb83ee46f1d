"""Where a value of the policy in force comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Who set a value: the layer, and its place in the file (None for built-in values)."""

    layer: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        return self.layer if self.file is None else f"{self.file}:{self.line}  {self.layer}"
