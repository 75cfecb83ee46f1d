"""Metadata that was changed anywhere reads as a table or ends in an error of ours, in time and in little memory.

As many mutations as seconds allow; `make soak` reads NIGHTKEEP_MUTATIONS of each format.
"""

import tempfile
from pathlib import Path

import pytest
from tests.mutations.fuzzing import Bench, fuzz
from tests.mutations.tables import NAMES

pytestmark = pytest.mark.slow

COUNT = 150


@pytest.mark.few(1)
@pytest.mark.parametrize("format", NAMES)
def test_what_is_mutated_reads_as_it_is(format: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = Bench(format, Path(folder)).unchanged()
    assert {name: errors for name, errors in told.items() if errors} == {}


@pytest.mark.few(1)
@pytest.mark.parametrize("format", NAMES)
def test_a_mutation_ends_in_a_result_or_an_error_of_ours(format: str) -> None:
    refused, failures = fuzz(format, 0, COUNT)
    assert not failures
    # Some of what is changed is never read, and some is as good as what was there.
    assert COUNT // 5 < refused < COUNT
