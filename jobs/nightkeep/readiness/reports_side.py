"""The place of reports -> whether a run can write, read, list and remove there, and as whom."""

from __future__ import annotations

import getpass
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from uuid import uuid4

from nightkeep.causes import advice_on
from nightkeep.errors import NightkeepError, RefusedTable, UsageError
from nightkeep.places import is_address, report_store
from nightkeep.readiness.finding import Finding, Readiness
from nightkeep.storage.kept import KeptFiles

_CREDENTIALS: Final[Mapping[str, tuple[str, ...]]] = {
    "s3": ("AWS_",),
    "s3a": ("AWS_",),
    "gs": ("GOOGLE_", "GCS_"),
    "abfss": ("AZURE_",),
    "abfs": ("AZURE_",),
    "hdfs": ("HADOOP_", "KRB5"),
}
"""Beginnings of the variables that clients of a scheme read."""
_EXPECTED: Final = "a place where documents can be written, read, listed and removed"
_BYTES: Final = b"nightkeep looks whether it can write here\n" * 100


def try_reports(place: str) -> Finding:
    """Write a small file, read it back, find it in the list and remove it. In a bucket also the conditional writes are
    tried, on which holds depend."""
    try:
        store = report_store(place)
        _try(store)
    except UsageError as failure:
        return _row(place, Readiness.FAILED, str(failure), "name another place by --reports or NIGHTKEEP_REPORTS")
    except RefusedTable as failure:
        return _row(place, Readiness.FAILED, failure.feature, failure.advice)
    except (NightkeepError, OSError) as failure:
        why = str(failure) or type(failure).__name__
        advice = advice_on(why) or "let this user write there, or name another place by --reports or NIGHTKEEP_REPORTS"
        denied = isinstance(failure, PermissionError) or "ermission" in why or "denied" in why.lower()
        return _row(place, Readiness.FAILED, f"{why}, as {acting_as(place)}", advice, may_pass=not denied)
    return _row(place, Readiness.PASSED, f"written, read, listed and removed as {acting_as(place)}{_readers(place)}")


def _try(store: KeptFiles) -> None:
    store.prepare("")
    name = f"probe-{uuid4()}"
    store.write(name, _BYTES)
    try:
        read = store.read(name).data
        listed = any(each.name == name for each in store.list(""))
    finally:
        store.remove(name, read=None)
    if read != _BYTES or not listed:
        raise OSError("a file that was written is not listed with its content")


def acting_as(place: str) -> str:
    """The user of this process and, for a bucket, which variables of credentials are set, never their values."""
    prefixes = _CREDENTIALS.get(place.partition("://")[0], ()) if is_address(place) else ()
    names = sorted(name for name in os.environ if name.startswith(prefixes)) if prefixes else []
    credentials = f"with {', '.join(names)} set" if names else "with no variable of credentials set"
    return f"user {_user()}, {credentials}" if prefixes else f"user {_user()}"


def _user() -> str:
    try:
        return f"{getpass.getuser()} ({os.getuid()})"
    except (OSError, KeyError):
        return str(os.getuid())


def _readers(place: str) -> str:
    """Who may enter a local folder; the documents in it are readable by all."""
    if is_address(place):
        return ""
    status = Path(place).stat()
    return f"; the folder is of user {status.st_uid} and group {status.st_gid}, {stat.filemode(status.st_mode)}"


def _row(place: str, status: Readiness, found: str, remedy: str | None = None, *, may_pass: bool = False) -> Finding:
    return Finding(
        check="reports", status=status, subject=place, expected=_EXPECTED, found=found, remedy=remedy, may_pass=may_pass
    )
