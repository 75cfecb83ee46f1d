"""A package that an extra of the wheel brings -> UsageError where it is not installed. It is found, not imported.

The library alone plans, lists, reads and reports. What starts Spark needs the extra `spark`. A cluster may bring
pyspark itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Final

from nightkeep.errors import UsageError

EXTRAS: Final = {"pyspark": "spark", "great_expectations": "spark"}
"""The extra of each package that may be missing, by the name under which the package is imported."""


def missing_module(subject: str, failure: ModuleNotFoundError) -> Exception:
    """The failure of `subject`, whose module could not be imported; `failure` itself where no extra brings the package.

    `pyspark.sql.datasource` is in Spark 4 and later.
    """
    package = (failure.name or "").split(".")[0]
    if package not in EXTRAS:
        return failure
    found = "none" if failure.name == package else f"a release without {failure.name}"
    return UsageError(f"{subject}: expected {package} 4 or later, found {found}; {_installing(package)}")


def require_packages(packages: Iterable[str]) -> None:
    """Raise UsageError, which names the extras, unless all `packages` can be imported."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        named = " and ".join(missing)
        raise UsageError(f"expected {named}, which this work needs, found none; {_installing(*missing)}")


def _installing(*packages: str) -> str:
    extras = ",".join(dict.fromkeys(EXTRAS[name] for name in packages))
    return f'pip install "nightkeep[{extras}]" installs it'
