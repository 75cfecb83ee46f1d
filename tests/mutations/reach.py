"""Tests, run once -> which of them reach a line. A fixture that tests share reaches lines for all that ask for it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

_SHARED = "fixture "


@dataclass(frozen=True, slots=True)
class Reach:
    """What tests reach, and the CPU seconds that each takes. Tests are places among the items of the session."""

    tests: Mapping[tuple[Path, int], frozenset[int]]
    seconds: Sequence[float]
    failed: frozenset[int]

    def of(self, file: Path, lines: range) -> list[int]:
        """Tests that reach one of the lines, the quickest first."""
        reaching = {place for line in lines for place in self.tests.get((file, line), ())}
        return sorted(reaching - self.failed, key=lambda place: self.seconds[place])


class ReachedLines:
    """A plugin of pytest, for one run of all items of a session, that notes the lines of `files`."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = {str(file.resolve()): file for file in files}
        self._coverage = coverage.Coverage(config_file=False, data_file=None, include=list(self._files))
        self._running = ""

    def run(self, session: pytest.Session) -> Reach:
        seconds: list[float] = []
        failed = set()
        self._coverage.start()
        for place, item in enumerate(session.items):
            self._running = str(place)
            self._coverage.switch_context(self._running)
            before, begun = session.testsfailed, time.process_time()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=(*session.items, None)[place + 1])
            seconds.append(time.process_time() - begun)
            failed |= {place} if session.testsfailed > before else set()
        self._coverage.stop()
        return Reach(self._by_line(session.items), seconds, frozenset(failed))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        self._coverage.switch_context(_SHARED + fixturedef.argname)
        try:
            return (yield)
        finally:
            self._coverage.switch_context(self._running)

    def _by_line(self, items: Sequence[pytest.Item]) -> dict[tuple[Path, int], frozenset[int]]:
        asking = defaultdict(set)
        for place, item in enumerate(items):
            asking[str(place)].add(place)
            for name in getattr(item, "fixturenames", ()):
                asking[_SHARED + name].add(place)
        data = self._coverage.get_data()
        return {
            (file, line): frozenset(place for context in contexts for place in asking[context])
            for name, file in self._files.items()
            for line, contexts in data.contexts_by_lineno(name).items()
        }
