"""YAML text -> plain values and the line of every key.

Every value is written once, on a line of its own place: duplicate keys and aliases are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from nightkeep.errors import PolicyError

Location = tuple[str | int, ...]

# Wheels of PyYAML carry libyaml, a build from source may not; both compose the same nodes.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH = 32
"""Lists and mappings within each other: settings have four levels, expectations a few more."""
MAX_CHARACTERS = 16 << 20
"""A table takes a few hundred."""
_NO_VALUE = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError)
"""What PyYAML raises of a text that is no value of its tag: of `!!bool foo` a KeyError."""


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A parsed file: `values` as YAML says them, `lines` (1-based) by location, `()` for the file itself."""

    file: str
    values: Mapping[str, object]
    lines: Mapping[Location, int]

    def line(self, location: Location) -> int:
        """The line of a key or list item, or of the nearest thing around it that is in the file."""
        while location not in self.lines:
            location = location[:-1]
        return self.lines[location]

    def at(self, location: Location) -> str:
        return f"{self.file}:{self.line(location)}"


def parse(text: str, file: str) -> YamlDocument:
    """`text` as a `YamlDocument`; `file` is only its name. Raises PolicyError for what is not a YAML mapping."""
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
    """Events come one by one; composed, what is within each other takes the stack of C, which has an end."""
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
    """Nodes -> values, noting lines on the way."""

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
