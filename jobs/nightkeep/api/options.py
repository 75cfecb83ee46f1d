"""Options that several calls share -> what they override in a table's policy. Each option is a name here, once.

A call takes them as `**options`, and `takes` shows them in its signature, where `help` and the command line read them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict, TypeVar

from nightkeep.api.call_context import choose
from nightkeep.model import VerifyLevel, Writers
from nightkeep.policy import Overrides

Call = TypeVar("Call", bound=Callable[..., Any])
_SPELLED: Final = {"writers": Writers, "verify": VerifyLevel}


class FileOptions(TypedDict, total=False):
    """Which files are written anew, and how large. Sizes include their unit."""

    target_size: str | None
    min_file_size: str | None
    max_deleted_ratio: float | None
    allow_compacting_writers: bool
    writers: str | None


class LayoutOptions(FileOptions, total=False):
    """These, and which partitions are laid out by which columns."""

    where: str | None
    zorder: str | Sequence[str] | None
    hilbert: str | Sequence[str] | None
    full: bool
    spec: str | None


def takes(kind: type) -> Callable[[Call], Call]:
    """Show the options of this TypedDict in the signature of a function, in place of its `**options`."""

    def shown(call: Call) -> Call:
        own = inspect.signature(call)
        named = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        options = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=False if hint == "bool" else None, annotation=hint
            )
            for name, hint in _hints(kind).items()
        ]
        call.__signature__ = own.replace(parameters=[*named, *options])  # type: ignore[attr-defined]
        return call

    return shown


def overrides_of(kind: type, options: Mapping[str, Any], **more: Any) -> Overrides:
    """What the options of this TypedDict override, and `more`. Raises UsageError, and TypeError for another name."""
    unknown = options.keys() - _hints(kind).keys()
    if unknown:
        raise TypeError(f"got an unexpected keyword argument {min(unknown)!r}")
    given = {**options, **more}
    for name, spelled in _SPELLED.items():
        given[name] = choose(f"--{name}", spelled, given.get(name))
    for name in ("zorder", "hilbert"):
        columns = given.get(name)
        given[name] = columns if columns is None or isinstance(columns, str) else ",".join(columns)
    return Overrides(**given)


def _hints(kind: type) -> dict[str, str]:
    return {name: hint.__forward_arg__ for name, hint in kind.__annotations__.items()}
