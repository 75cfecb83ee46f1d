"""The metadata of the installed wheel -> whether this Python and its packages are within the stated ranges.

The ranges are those of the wheel alone. In a clone or an image, where the package is only on the path, a lock decides.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from nightkeep.extras import EXTRAS
from nightkeep.model.counted import counted
from nightkeep.readiness.finding import Finding, Readiness

_WHEEL: Final = "nightkeep"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


def find_python() -> Finding:
    """This Python against the range of the wheel."""
    subject, found = sys.executable or "python", f"Python {platform.python_version()}"
    try:
        stated = metadata(_WHEEL)["Requires-Python"] or ""
    except PackageNotFoundError:
        return _python(Readiness.NOT_APPLICABLE, subject, "the range of an installed wheel", f"{found}, and no wheel")
    fits = SpecifierSet(stated).contains(platform.python_version(), prereleases=True)
    return _python(Readiness.PASSED if fits else Readiness.FAILED, subject, f"Python {stated}", found)


def _python(status: Readiness, subject: str, expected: str, found: str) -> Finding:
    remedy = "install Nightkeep with such a Python" if status is Readiness.FAILED else None
    return Finding(check="python", status=status, subject=subject, expected=expected, found=found, remedy=remedy)


def find_packages(extra: str | None = None, brought: Mapping[str, str] = _NONE) -> tuple[Finding, ...]:
    """The packages that the library needs, or those that an extra adds: one row if all are there, else one for each
    that is not. `brought`: versions of packages that will be on the path, whatever is installed."""
    check = "packages" if extra is None else f"extra {extra}"
    asked = _stated(extra) or [Requirement(name.replace("_", "-")) for name, of in EXTRAS.items() if of == extra]
    faults = tuple(fault for each in asked if (fault := _fault(check, each, extra, brought)))
    if faults:
        return faults
    found = counted(len(asked), "package")
    expected = "packages within the ranges of the wheel"
    status = Readiness.PASSED if asked else Readiness.NOT_APPLICABLE
    return (Finding(check=check, status=status, subject=sys.prefix, expected=expected, found=found),)


def _stated(extra: str | None) -> list[Requirement]:
    try:
        return [*_requirements(requires(_WHEEL) or (), extra)]
    except PackageNotFoundError:
        return []


def _requirements(stated: Iterable[str], extra: str | None) -> Iterator[Requirement]:
    for requirement in map(Requirement, stated):
        marker = requirement.marker
        of_extra = marker is not None and "extra" in str(marker)
        if of_extra != (extra is not None):
            continue
        if marker is None or marker.evaluate({"extra": extra or ""}):
            yield requirement


def _fault(check: str, asked: Requirement, extra: str | None, brought: Mapping[str, str]) -> Finding | None:
    found = brought.get(asked.name) or installed_version(asked.name)
    if found is not None and asked.specifier.contains(found, prereleases=True):
        return None
    wheel = _WHEEL if extra is None else f"{_WHEEL}[{extra}]"
    return Finding(
        check=check,
        status=Readiness.MISSING if found is None else Readiness.FAILED,
        subject=asked.name,
        expected=f"{asked.name}{asked.specifier}",
        found="none" if found is None else f"{asked.name} {found}",
        remedy=f'pip install "{wheel}" installs it',
    )


def installed_version(name: str) -> str | None:
    """The version of an installed package. Of one that is only on the path, as a cluster brings pyspark, its file
    `version.py` states it: to import the package takes long."""
    try:
        return version(name)
    except PackageNotFoundError:
        spec = find_spec(name.replace("-", "_"))
    if spec is None or spec.origin is None:
        return None
    return stated_version(Path(spec.origin).with_name("version.py"))


def stated_version(file: Path) -> str | None:
    """The version in a module that states it; None where there is none."""
    match = _VERSION.search(file.read_text(encoding="utf-8") if file.is_file() else "")
    return match[1] if match else None


_VERSION: Final = re.compile(r"""__version__[^=\n]*=\s*["']([^"']+)["']""")
