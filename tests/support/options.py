"""Options of pytest that choose tests: those of `make test-quick`, `make test`, `make test-extended` and
`make test-cluster`."""

import pytest
from tests.support import extended, quick


def pytest_addoption(parser: pytest.Parser) -> None:
    quick.add_option(parser)
    extended.add_options(parser)
    parser.addoption("--cluster", action="store_true", help="also the faults of a cluster, of make test-cluster")


def deselect_cluster(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Faults of a cluster take half an hour, and run only on request."""
    if not config.getoption("cluster"):
        long = [item for item in items if item.get_closest_marker("cluster") is not None]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
