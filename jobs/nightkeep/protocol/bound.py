"""A function and the arguments that every call of it has in common -> a function of the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, Generic, ParamSpec, TypeVar

A = TypeVar("A")
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Bound(Generic[A, P, R]):
    """`function` with its first argument. It pickles, compares by value, and mypy checks what else is passed."""

    function: Callable[Concatenate[A, P], R]
    first: A

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(self.first, *args, **kwargs)
