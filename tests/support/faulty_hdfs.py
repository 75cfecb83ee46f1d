"""A client of HDFS of which one change fails, or is made twice, as the real one repeats a request without an answer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

_CHANGES = frozenset({"create", "mkdirs", "rename", "delete", "write", "close"})


class Trouble(Enum):
    BEFORE = "fails before"
    AFTER = "fails after"
    TWICE = "is made twice"


@dataclass
class FaultyHdfs:
    """Stands for `client`: what that gives, of whose changes the `at`-th, counted from 1, is in trouble."""

    give: Callable[[str], Any]
    trouble: Trouble = Trouble.BEFORE
    at: int = 0
    passed: list[str] = field(default_factory=list)
    meet: Callable[[str, str], None] = lambda name, path: None
    """Called before each change with the last of its texts, such as the new name of a renamed file."""

    def __call__(self, authority: str) -> Any:
        return _Watched(self, self.give(authority))

    def change(self, name: str, path: str, act: Callable[[], Any]) -> Any:
        self.meet(name, path)
        self.passed.append(name)
        if len(self.passed) != self.at:
            return act()
        if self.trouble is Trouble.BEFORE:
            raise OSError("injected")
        answer = act()
        if self.trouble is Trouble.TWICE:
            # Bytes go to datanodes, which are not asked again.
            return answer if name == "write" else act()
        raise OSError(f"injected after {answer}")


class _Watched:
    """Answers as the object that it watches, a client or a writer."""

    def __init__(self, faulty: FaultyHdfs, watched: Any) -> None:
        self._faulty, self._watched = faulty, watched

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._watched, name)
        if name not in _CHANGES:
            return found

        def change(*arguments: Any, **named: Any) -> Any:
            path = next((each for each in reversed(arguments) if isinstance(each, str)), "")
            answer = self._faulty.change(name, path, lambda: found(*arguments, **named))
            return _Watched(self._faulty, answer) if name == "create" else answer

        return change
