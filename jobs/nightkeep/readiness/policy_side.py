"""A policy file -> the policy, and a row for each of its faults. Lists no place and opens no table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nightkeep.errors import PolicyError
from nightkeep.model.counted import counted
from nightkeep.places import is_address
from nightkeep.policy import PolicyFile, faults_of, load_usable
from nightkeep.readiness.finding import Concern, Finding, Readiness

_EXPECTED: Final = "a policy without faults"
_REMEDY: Final = "correct it; `nightkeep validate` lists all faults"


def read_policy(file: str | Path) -> tuple[PolicyFile | None, tuple[Finding, ...]]:
    """The policy, None where the file cannot be understood at all. A fault of an entry costs only the tables that the
    entry is about."""
    try:
        loaded = load_usable(file)
    except PolicyError as failure:
        return None, _rows(str(failure).split("\n"), Concern.RUN, may_pass=_is_down(file, failure))
    faults = faults_of(loaded)
    if faults:
        return loaded, _rows(faults, Concern.TABLES)
    places = counted(len(loaded.discoveries), "place")
    found = f"{counted(len(loaded.tables), 'table')} listed, {places} to look for tables in"
    passed = Finding(check="policy", status=Readiness.PASSED, subject=str(file), expected=_EXPECTED, found=found)
    return loaded, (passed,)


def no_policy(places: str) -> Finding:
    """The row of a call without a policy: tables are named by their addresses."""
    return Finding(
        check="policy",
        status=Readiness.NOT_APPLICABLE,
        subject=places,
        expected=_EXPECTED,
        found="no policy file: tables are named by their addresses",
    )


def _is_down(file: str | Path, failure: PolicyError) -> bool:
    """Whether a policy in a store could not be read for another reason than that it is not there."""
    cause = failure.__cause__
    return is_address(file) and isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError)


def _rows(faults: Sequence[str], concerns: Concern, *, may_pass: bool = False) -> tuple[Finding, ...]:
    return tuple(_row(each, concerns, may_pass=may_pass) for each in faults)


def _row(fault: str, concerns: Concern, *, may_pass: bool) -> Finding:
    """A fault is `file:line: subject: expected ..., found ...`; one of another form is shown as what was found."""
    subject, _, rest = fault.partition(": expected ")
    expected, found_it, found = rest.rpartition(", found ")
    is_missing = fault.endswith("found no such file")
    if not found_it:
        subject, _, found = fault.partition(": ")
        expected = _EXPECTED
    return Finding(
        check="policy",
        status=Readiness.MISSING if is_missing else Readiness.FAILED,
        subject=subject,
        expected=expected,
        found=found or fault,
        remedy=None if is_missing else _REMEDY,
        concerns=concerns,
        may_pass=may_pass,
    )
