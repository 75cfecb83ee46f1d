"""A function and its first argument -> a function of the other arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, Generic, ParamSpec, TypeVar

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Bound(Generic[A, P, R]):
    """`function` with its first argument. Pickles and compares by value; mypy checks the other arguments."""

    function: Callable[Concatenate[A, P], R]
    first: A

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(self.first, *args, **kwargs)
