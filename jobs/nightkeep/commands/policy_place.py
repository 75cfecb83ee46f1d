"""Where a command finds its policy and keeps its documents, and how it says what it found."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from nightkeep.model import Outcome
from nightkeep.policy import EffectivePolicy, Overrides, PolicyFile, load_usable
from nightkeep.reports import RunDocument

POLICY_PLACES = ("tables.yaml", "dags/tables.yaml")


@dataclass(frozen=True, slots=True)
class Place:
    """The policy file in force and where documents are kept."""

    policy: PolicyFile
    reports: str

    def effective(self, table: str, said: Overrides) -> EffectivePolicy:
        """The table's policy with what the command line says on top. Raises UsageError."""
        chosen = self.policy.effective(table)
        return replace(chosen, settings=said.over(chosen.settings))


def find_place(policy: Path | None, reports: str | None) -> Place:
    """What the options name, else the environment, else what is nearby; without any file an empty policy."""
    named = policy or os.environ.get("NIGHTKEEP_POLICY")
    file = Path(named) if named else next((Path(p) for p in POLICY_PLACES if Path(p).exists()), None)
    loaded = load_usable(file) if file else load_usable("tables.yaml", text="version: 1")
    beside = (file.parent if file else Path.cwd()) / "reports"
    return Place(loaded, reports or os.environ.get("NIGHTKEEP_REPORTS") or str(beside))


def show(documents: Sequence[RunDocument], *, as_json: bool, text: str) -> None:
    """Print the documents, a list where they are several, or the text; then exit as the worst of them ended."""
    printed = [document.to_json() for document in documents]
    status = Outcome.worst(document.outcome for document in documents).exit_status
    try:
        put((printed[0] if len(printed) == 1 else printed) if as_json else text, as_json=as_json)
        sys.stdout.flush()
    except OSError as failure:
        _say_elsewhere(documents, failure)
    raise typer.Exit(status)


def _say_elsewhere(documents: Sequence[RunDocument], failure: OSError) -> None:
    """Nobody reads stdout any more: what was done is told in a line each, and the status stays what it is."""
    with open(os.devnull, "wb") as nowhere:
        # What is left in the buffer is written when the process ends.
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    for each in documents if failure.errno != errno.EPIPE else ():
        published = "" if each.committed_version is None else f", version {each.committed_version} was published"
        text = (
            f"{each.table}: {each.operation}: {each.outcome}{published}; stdout cannot be written: {failure.strerror}"
        )
        print(f"nightkeep: {text}", file=sys.stderr)


def put(value: Any, *, as_json: bool) -> None:
    """Print to stdout: the JSON value as one document, or the text."""
    print(json.dumps(value, indent=2) if as_json else value)
