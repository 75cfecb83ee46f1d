"""Variables of this process -> those that a driver or a worker on another machine needs.

A job reads how to reach stores and catalogs from its environment. What names a place of this machine stays here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, MutableMapping
from typing import Final

from nightkeep.errors import UsageError

ENVIRONMENT_FILE: Final = "NIGHTKEEP_ENVIRONMENT_FILE"
"""Names a file with more variables, as a JSON object: a cluster hands files to a driver that only its user may read,
while variables are in its launch script."""

SPARK_LOG: Final = "NIGHTKEEP_SPARK_LOG"
"""The file that a JVM which this process starts prints to. Without it, that is stderr."""
_PREFIXES: Final = ("AWS_", "AZURE_", "GOOGLE_", "NIGHTKEEP_", "PYICEBERG_")
_OWN: Final = frozenset(
    {
        SPARK_LOG,
        ENVIRONMENT_FILE,
        "NIGHTKEEP_JOBS",
        "NIGHTKEEP_MASTER",
        "NIGHTKEEP_POLICY",
        "NIGHTKEEP_PYTHON",
        "NIGHTKEEP_REPORTS",
        "NIGHTKEEP_SUBMITTED",
    }
)
"""What each process is given by whoever starts it."""
_TOKEN: Final = "AWS_SESSION_TOKEN"
_KEY: Final = "AWS_ACCESS_KEY_ID"


def needed_elsewhere(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables by which stores and catalogs are reached, and the settings of Nightkeep, credentials among them.

    A path of this machine is left out: another machine has another file there, or none. With keys of S3 comes a token,
    empty if there is none, as keys of one place do not go with the token of another.
    """
    found = {
        name: value
        for name, value in environ.items()
        if name.startswith(_PREFIXES) and name not in _OWN and not _is_path(value)
    }
    return found | ({_TOKEN: found.get(_TOKEN, "")} if found.get(_KEY) else {})


def add_from_file(environ: MutableMapping[str, str] = os.environ) -> None:
    """Add the variables of the file that `ENVIRONMENT_FILE` names; what is set stands.

    Raises UsageError for a file that cannot be read. Its content is in no message.
    """
    file = environ.get(ENVIRONMENT_FILE)
    if not file:
        return
    try:
        with open(file, encoding="utf-8") as opened:
            variables = json.load(opened)
        given = {str(name): value for name, value in variables.items() if isinstance(value, str)}
    except (OSError, ValueError, AttributeError) as failure:
        why = failure if isinstance(failure, OSError) else "another text"
        raise UsageError(
            f"{ENVIRONMENT_FILE}: expected a file with a JSON object of texts at {file}, found {why}"
        ) from None
    if len(given) != len(variables):
        raise UsageError(f"{ENVIRONMENT_FILE}: expected texts alone in {file}, found another value")
    for name, value in given.items():
        environ.setdefault(name, value)


def _is_path(value: str) -> bool:
    return value.startswith(("/", "file:/"))
