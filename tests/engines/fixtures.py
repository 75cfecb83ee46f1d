"""Engines as fixtures: one process of each serves a whole session."""

from collections.abc import Iterator

import pytest
from tests.engines.paimon_java import PaimonJava


@pytest.fixture(scope="session")
def paimon_java() -> Iterator[PaimonJava]:
    with PaimonJava() as engine:
        yield engine
