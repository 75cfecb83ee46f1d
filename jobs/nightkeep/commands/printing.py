"""Documents -> JSON or text on stdout, and the exit status of the worst outcome."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence

import typer

from nightkeep.model import Outcome
from nightkeep.records import RunDocument


def show(documents: Sequence[RunDocument], *, as_json: bool, text: str) -> None:
    """Print the documents as JSON (a list if there are several) or the text. Exits as the worst of them ended."""
    status = Outcome.worst(document.outcome for document in documents).exit_status
    try:
        put(_printed(documents) if as_json else text, as_json=as_json)
        sys.stdout.flush()
    except OSError as failure:
        _report_elsewhere(documents, failure)
    raise typer.Exit(status)


def _printed(documents: Sequence[RunDocument]) -> object:
    printed = [document.to_json() for document in documents]
    return printed[0] if len(printed) == 1 else printed


def _report_elsewhere(documents: Sequence[RunDocument], failure: OSError) -> None:
    """Print one line per document to stderr, because stdout cannot be written. The exit status stays the same."""
    with open(os.devnull, "wb") as nowhere:
        # Otherwise Python writes the rest of its buffer to stdout when the process ends.
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    for done in documents if failure.errno != errno.EPIPE else ():
        published = "" if done.committed_version is None else f", version {done.committed_version} was published"
        text = (
            f"{done.table}: {done.operation}: {done.outcome}{published}; stdout cannot be written: {failure.strerror}"
        )
        print(f"nightkeep: {text}", file=sys.stderr)


def put(value: object, *, as_json: bool) -> None:
    """Print to stdout: the JSON value as one document, or the text."""
    print(json.dumps(value, indent=2) if as_json else value)
