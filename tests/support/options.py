"""Options of pytest that choose tests: those of `make test-quick`, `make test` and `make test-extended`."""

import pytest
from tests.support import extended, quick


def pytest_addoption(parser: pytest.Parser) -> None:
    quick.add_option(parser)
    extended.add_options(parser)
