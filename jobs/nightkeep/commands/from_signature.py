"""A function of the API and the table of options -> the function that Typer makes a command of."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

import nightkeep
from nightkeep.commands.options import OPTIONS
from nightkeep.commands.progress_shown import shown_progress
from nightkeep.commands.stderr import show_log, spark_in_a_file
from nightkeep.errors import STOPS, NightkeepError, Surprise

_ORDER: Final = {name.rpartition(".")[2]: place for place, name in enumerate(OPTIONS)}
_NOT_WRITTEN: Final = frozenset({"spark"})
"""Parameters that only a caller in Python has."""
_OF_ALL: Final = ("json", "verbose", "quiet")
"""Options of every command, which no function has."""
_SHORT: Final = {"verbose": ("-v",), "quiet": ("-q",)}


@dataclass(frozen=True, slots=True)
class Command:
    """A command, by the name of its function in `nightkeep`: who prints what that returns, and its help. `reads`: it
    changes nothing. `shown`: the name of a function beside that one, for people, with the same parameters, where text
    needs less than JSON."""

    name: str
    answer: Callable[..., None]
    help: str
    example: str
    reads: bool = False
    shown: str | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """Imports the modules that it needs."""
        found: Callable[..., Any] = getattr(nightkeep, self.name)
        return found

    def chosen(self, *, as_json: bool) -> Callable[..., Any]:
        if as_json or self.shown is None:
            return self.function
        found: Callable[..., Any] = getattr(sys.modules[self.function.__module__], self.shown)
        return found


def callback(command: Command) -> Callable[..., None]:
    """The function that calls the command's own and prints the answer. Its signature is made of the table's rows.

    The name and the table are added to any unexpected failure.
    """

    def call(*, json: bool, verbose: bool, quiet: bool, **given: Any) -> None:
        show_log(verbose=verbose, quiet=quiet)
        try:
            with spark_in_a_file(verbose=verbose):
                with shown_progress(quiet=quiet or command.reads):
                    result = command.chosen(as_json=json)(**given)
                command.answer(result, as_json=json, dry_run=given.get("dry_run", False))
        except (NightkeepError, typer.Exit, typer.Abort):
            raise
        except STOPS as stop:
            if command.reads and not getattr(stop, "__notes__", None):
                stop.add_note("it changes nothing")
            raise
        except Exception as failure:
            subject = given.get("table") or given.get("statement")
            raise Surprise(f"{subject}: {command.name}" if subject else command.name, failure) from failure

    parameters = list(_parameters(command))
    call.__name__ = command.name
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def _parameters(command: Command) -> Iterator[inspect.Parameter]:
    own = inspect.signature(command.function).parameters
    written = sorted(own.keys() - _NOT_WRITTEN, key=_ORDER.__getitem__)
    for name in sorted(written, key=lambda each: own[each].kind is own[each].KEYWORD_ONLY):
        yield _parameter(command, own[name])
    for name in _OF_ALL:
        yield _parameter(command, inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False))


def _parameter(command: Command, own: inspect.Parameter) -> inspect.Parameter:
    row = OPTIONS.get(f"{command.name}.{own.name}") or OPTIONS[own.name]
    shown: bool | str = row.default or True
    if own.kind is own.KEYWORD_ONLY:
        flags = (f"--{own.name.replace('_', '-')}", *_SHORT.get(own.name, ()))
        how = typer.Option(*flags, help=row.help, metavar=row.value, rich_help_panel=row.group, show_default=shown)
    else:
        how = typer.Argument(help=row.help, metavar=row.value, show_default=shown)
    return inspect.Parameter(own.name, own.KEYWORD_ONLY, default=own.default, annotation=Annotated[row.kind, how])
