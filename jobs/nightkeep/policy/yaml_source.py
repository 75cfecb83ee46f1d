"""YAML text -> plain values and the line of every key.

Duplicate keys and aliases are refused, so every value has exactly one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from nightkeep.errors import PolicyError

Location = tuple[str | int, ...]

# Wheels of PyYAML include libyaml; a build from source may not. Both compose the same nodes.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH = 32
"""How deeply lists and mappings may be nested. Settings have four levels, expectations a few more."""
MAX_CHARACTERS = 16 << 20
"""The longest file. A table takes a few hundred characters."""
_NO_VALUE = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError)
"""What PyYAML raises for a text that is no value of its tag: for example KeyError for `!!bool foo`."""


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A parsed file: its `values`, and its `lines` (1-based) by location; `()` is the file itself."""

    file: str
    values: Mapping[str, object]
    lines: Mapping[Location, int]

    def line(self, location: Location) -> int:
        """The line of a key or list item. If it is not in the file, the line of the nearest one around it."""
        while location not in self.lines:
            location = location[:-1]
        return self.lines[location]

    def at(self, location: Location) -> str:
        return f"{self.file}:{self.line(location)}"


def parse(text: str, file: str) -> YamlDocument:
    """Parse `text`; `file` is only its name, for messages. Raises PolicyError for text that is no YAML mapping."""
    try:
        _require_depth(text, file)
        root = yaml.compose(text, Loader=_LOADER)
        walk = _Walk(file)
        values = {} if root is None else walk.value(root, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise PolicyError(f"{file}:{line}: expected YAML, found {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise PolicyError(f"{file}:1: expected YAML, found {error}") from error
    if not isinstance(values, dict):
        raise PolicyError(f"{file}:1: expected a mapping with version and tables, found {values!r:.80}")
    return YamlDocument(file, values, walk.lines | {(): 1})


def _require_depth(text: str, file: str) -> None:
    """Raises PolicyError for text that is nested too deeply. Reads events one by one, as composing nested nodes could
    overflow the C stack."""
    if len(text) > MAX_CHARACTERS:
        raise PolicyError(f"{file}:1: expected at most {MAX_CHARACTERS} characters, found {len(text)}")
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise PolicyError(f"{file}:{line}: expected at most {MAX_DEPTH} levels within each other, found more")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Walk:
    """Nodes -> values, and the lines of their keys."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Location, int] = {}
        self._constructor = yaml.constructor.SafeConstructor()
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, location: Location) -> object:
        if id(node) in self._seen:
            raise PolicyError(
                f"{self.file}:{self._around(location)}: {dotted(location)}: expected a value written here, "
                "found an alias; patterns share values between tables"
            )
        self._seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return {key.value: self._entry(key, child, location) for key, child in node.value}
        if isinstance(node, yaml.SequenceNode):
            return [self._item(child, (*location, i)) for i, child in enumerate(node.value)]
        return self._scalar(node)

    def _entry(self, key: yaml.Node, child: yaml.Node, location: Location) -> object:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise PolicyError(f"{self.file}:{line}: expected a plain key, found a list or mapping as key")
        here = (*location, key.value)
        if here in self.lines:
            raise PolicyError(
                f"{self.file}:{line}: {dotted(here)}: expected once, found before on line {self.lines[here]}"
            )
        self.lines[here] = line
        return self.value(child, here)

    def _item(self, child: yaml.Node, location: Location) -> object:
        self.lines[location] = child.start_mark.line + 1
        return self.value(child, location)

    def _scalar(self, node: yaml.Node) -> object:
        try:
            return self._constructor.construct_object(node)
        except _NO_VALUE as error:
            line, found = node.start_mark.line + 1, f"{node.value!r:.80}"
            kind = node.tag.rpartition(":")[2]
            raise PolicyError(f"{self.file}:{line}: expected a value, found {found}, which is no {kind:.80}") from error

    def _around(self, location: Location) -> int:
        return next((self.lines[location[:n]] for n in range(len(location), 0, -1)), 1)


def dotted(location: Location) -> str:
    """`patterns[0].check.enabled`: how messages name a place in the file."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".") or "policy"
